"""The endpoints of recuts of a cluster's nodes: proposed, previewed, planned, called off."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from clusters import selectors as clusters
from controlplane.api.fields import Integer, Moment, StrictSerializer, Text
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from scheduler.core.node.ways import Way, ways_of
from scheduler.models import Recut, RecutMode
from scheduler.selectors import recuts as reading
from scheduler.selectors.recuts import Preview
from scheduler.services import asking, recuts
from tenants import access
from tenants.access import Action

type Out = dict[str, Any]  # Any: JSON values

MOST_DEVICES = 128


class WayIn(StrictSerializer):
    count = Integer(low=1, high=MOST_DEVICES, help_text="How many devices are cut so.")
    slices = serializers.DictField(
        child=Integer(low=1, high=8),
        help_text="How many slices of each profile; {} leaves them whole.",
    )


class NodeIn(StrictSerializer):
    node = Text(max_length=253)
    devices = WayIn(many=True, allow_empty=False)


class RecutIn(NodeIn):
    mode = serializers.ChoiceField(
        RecutMode.choices, help_text="Wait until it is empty, or preempt what may be preempted."
    )
    starts_at = Moment(required=False, help_text="Now, where nothing is said.")
    ends_at = Moment(
        required=False,
        help_text="What is not empty by then is left as it is; a day later where nothing is said.",
    )


class WayOut(serializers.Serializer[Out]):
    count = serializers.IntegerField()
    slices = serializers.DictField(child=serializers.IntegerField())


class StopOut(serializers.Serializer[Out]):
    workload = serializers.UUIDField()
    name = serializers.CharField()
    lost_s = serializers.IntegerField(
        help_text="Of its work, in seconds of a GPU: a slice counts as the part that it is of one."
    )


class WaitOut(StopOut):
    ends_at = serializers.DateTimeField(
        allow_null=True, help_text="At the latest, by its run-time limit; null: nobody knows."
    )


class PreviewOut(serializers.Serializer[Out]):
    node = serializers.CharField()
    now = WayOut(many=True)
    devices = WayOut(many=True)
    stops = StopOut(many=True, help_text="Preempted, in the mode preempt.")
    waits_for = WaitOut(many=True, help_text="These can only be waited for.")
    foreign = serializers.BooleanField(help_text="Pods of others hold devices there.")
    lost_s = serializers.IntegerField()
    at_once = serializers.BooleanField(help_text="Nobody has to be waited for.")
    empty_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When all that is waited for has ended, at the latest; null: nobody knows, or"
        " there is none.",
    )


class ProposalOut(PreviewOut):
    model = serializers.CharField()
    why = serializers.CharField(help_text="waiting: for what waits; advice: towards the advice.")
    serves = serializers.IntegerField()


class ProposalsOut(serializers.Serializer[Out]):
    proposals = ProposalOut(many=True)


class StepOut(serializers.Serializer[Out]):
    state = serializers.CharField()
    at = serializers.DateTimeField()
    by = serializers.CharField()


class RecutOut(serializers.Serializer[Out]):
    id = serializers.UUIDField()
    node = serializers.CharField()
    devices = WayOut(many=True)
    before = WayOut(many=True)
    mode = serializers.CharField()
    state = serializers.CharField()
    trouble = serializers.CharField()
    stuck = serializers.BooleanField(help_text="The node stays cordoned: see to it by hand.")
    planned_by = serializers.CharField()
    planned_at = serializers.DateTimeField()
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    steps = StepOut(many=True)


class RecutsOut(serializers.Serializer[Out]):
    """The newest first, fifty at most."""

    recuts = RecutOut(many=True)


class RecutsApi(ApiView):
    @operation(
        "clusters_recuts",
        tag="clusters",
        summary="Nodes that are cut anew, and how far each is (operators)",
        answers={200: RecutsOut},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        access.authorize_fleet(self.actor, Action.OPERATE)
        found = reading.of_cluster(cluster=clusters.cluster(id=id))
        shown = [_recut(each.row) | {"steps": each.steps} for each in found]
        return Response(RecutsOut({"recuts": shown}).data)

    @operation(
        "clusters_plan_recut",
        tag="clusters",
        summary="Have a node cut anew (operators)",
        takes=RecutIn,
        answers={201: RecutOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            access.authorize_fleet(self.actor, Action.OPERATE)
            body = self.body(RecutIn)
            starts_at: datetime = body.get("starts_at") or self.at
            row = recuts.plan(
                asked=recuts.Asked(
                    node=reading.node(cluster=clusters.cluster(id=id), name=body["node"]),
                    cuts=_cuts(body["devices"]),
                    mode=RecutMode(body["mode"]),
                    starts_at=starts_at,
                    ends_at=body.get("ends_at") or starts_at + recuts.WINDOW,
                    actor=self.actor.label,
                    actor_name=self.actor.name,
                ),
                at=self.at,
            )
            return RecutOut(_recut(row) | {"steps": ()}).data

        return self.once(make)


class RecutApi(ApiView):
    @operation(
        "clusters_call_off_recut",
        tag="clusters",
        summary="Call off a recut that has not cut its node yet (operators)",
        answers={204: None},
        problems=(404, 409),
    )
    def delete(self, request: Request, id: UUID, recut: UUID) -> Response:
        access.authorize_fleet(self.actor, Action.OPERATE)
        row = reading.one(cluster=clusters.cluster(id=id), id=recut)
        recuts.call_off(recut=row, actor=self.actor.label, actor_name=self.actor.name, at=self.at)
        return Response(status=204)


class RecutPreviewApi(ApiView):
    @operation(
        "clusters_preview_recut",
        tag="clusters",
        summary="What a recut of a node would stop now; stores nothing (operators)",
        takes=NodeIn,
        answers={200: PreviewOut},
        problems=(404, 429),
    )
    def post(self, request: Request, id: UUID) -> Response:
        access.authorize_fleet(self.actor, Action.OPERATE)
        body = self.body(NodeIn)
        node = reading.node(cluster=clusters.cluster(id=id), name=body["node"])
        cuts = _cuts(body["devices"])
        recuts.check(node=node, cuts=cuts)
        with asking.turn(actor=self.actor, at=self.at):
            made = reading.preview(
                node=node,
                now=ways_of(recuts.cut_now(node=node)),
                ways=ways_of(cuts),
                at=self.at,
            )
        return Response(PreviewOut(_preview(made)).data)


class RecutProposalsApi(ApiView):
    @operation(
        "clusters_recut_proposals",
        tag="clusters",
        summary="Which nodes had better be cut anew, and how (operators)",
        answers={200: ProposalsOut},
        problems=(404, 429),
    )
    def get(self, request: Request, id: UUID) -> Response:
        access.authorize_fleet(self.actor, Action.OPERATE)
        cluster = clusters.cluster(id=id)
        with asking.turn(actor=self.actor, at=self.at):
            found = reading.proposed(cluster=cluster, at=self.at)
        shown = [
            _preview(each.preview) | {"model": each.model, "why": each.why, "serves": each.serves}
            for each in found
        ]
        return Response(ProposalsOut({"proposals": shown}).data)


def _cuts(devices: Sequence[Out]) -> list[dict[str, int]]:
    return [dict(each["slices"]) for each in devices for _ in range(each["count"])]


def _ways(ways: Sequence[Way]) -> list[Out]:
    return [{"count": count, "slices": dict(way)} for count, way in reading.alike(ways)]


def _preview(made: Preview) -> Out:
    return {
        "node": made.node,
        "now": _ways(made.now),
        "devices": _ways(made.ways),
        "stops": made.stops,
        "waits_for": made.waits_for,
        "foreign": made.foreign,
        "lost_s": made.lost_s,
        "at_once": made.at_once,
        "empty_at": made.empty_at,
    }


def _recut(row: Recut) -> Out:
    told = ("id", "mode", "state", "trouble", "stuck", "planned_by", "planned_at", "starts_at")
    return {name: getattr(row, name) for name in (*told, "ends_at", "ended_at")} | {
        "node": row.node.name,
        "devices": _ways(ways_of(row.wanted)),
        "before": _ways(ways_of(row.before)),
    }
