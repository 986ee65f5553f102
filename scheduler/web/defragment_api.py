"""The endpoint of a cluster's defragmentation: what would move, and what is planned."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from clusters import selectors as clusters
from controlplane.api.fields import Integer, Moment, StrictSerializer
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from scheduler.core.moving.defragment import Proposal
from scheduler.core.units import ONE_MILLI
from scheduler.models import Defragmentation
from scheduler.services import asking, defragmentations
from tenants import access
from tenants.access import Action

type Out = dict[str, Any]  # Any: JSON values

MOST_BUDGET_S = 1 << 30


class BudgetQuery(StrictSerializer):
    budget_s = serializers.IntegerField(
        default=defragmentations.BUDGET_S,
        min_value=1,
        max_value=MOST_BUDGET_S,
        help_text="Most work that may be lost, in seconds of a GPU.",
    )


class DefragmentationIn(StrictSerializer):
    budget_s = Integer(
        low=1, high=MOST_BUDGET_S, help_text="Most work that may be lost, in seconds of a GPU."
    )
    starts_at = Moment()
    ends_at = Moment(help_text="At most seven days later.")


class MoveOut(serializers.Serializer[dict[str, object]]):
    workload = serializers.UUIDField()
    name = serializers.CharField()
    frees = serializers.CharField(help_text="The node that it leaves, to make room there.")
    lands_on = serializers.ListField(
        child=serializers.CharField(), help_text="The nodes that it starts again on."
    )
    lost_s = serializers.IntegerField(
        help_text="Of its work, in seconds of a GPU: a slice counts as the part that it is of one."
    )


class RoomOut(serializers.Serializer[dict[str, object]]):
    free_nodes = serializers.IntegerField(help_text="Nodes with devices that nothing is on.")
    slices = serializers.IntegerField(help_text="Waiting slices that have a span.")


class PlannedOut(serializers.Serializer[Defragmentation]):
    budget_s = serializers.IntegerField()
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    planned_by = serializers.CharField()
    planned_at = serializers.DateTimeField()


class DefragmentationOut(serializers.Serializer[dict[str, object]]):
    """What would move now. It is worked out anew when it is carried out."""

    moves = MoveOut(many=True)
    before = RoomOut()
    after = RoomOut()
    planned = PlannedOut(allow_null=True)


class DefragmentationApi(ApiView):
    @operation(
        "clusters_defragmentation",
        tag="clusters",
        summary="What a defragmentation of a cluster would move, and what is planned (operators)",
        answers={200: DefragmentationOut},
        query=BudgetQuery,
        problems=(404, 429),
    )
    def get(self, request: Request, id: UUID) -> Response:
        access.authorize_fleet(self.actor, Action.OPERATE)
        budget_s = self.query(BudgetQuery)["budget_s"]
        cluster = clusters.cluster(id=id)
        with asking.turn(actor=self.actor, at=self.at):
            made = defragmentations.preview(cluster=cluster, budget_s=budget_s, at=self.at)
        found = shown(made) | {"planned": defragmentations.planned(cluster=cluster)}
        return Response(DefragmentationOut(found).data)

    @operation(
        "clusters_plan_defragmentation",
        tag="clusters",
        summary="Plan a defragmentation of a cluster for a window (operators)",
        takes=DefragmentationIn,
        answers={201: PlannedOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            access.authorize_fleet(self.actor, Action.OPERATE)
            body = self.body(DefragmentationIn)
            made = defragmentations.plan(
                cluster=clusters.cluster(id=id),
                budget_s=body["budget_s"],
                starts_at=body["starts_at"],
                ends_at=body["ends_at"],
                actor=self.actor.label,
                actor_name=self.actor.name,
                at=self.at,
            )
            return PlannedOut(made).data

        return self.once(make)

    @operation(
        "clusters_call_off_defragmentation",
        tag="clusters",
        summary="Call off the planned defragmentation of a cluster (operators)",
        answers={204: None},
        problems=(404, 409),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        access.authorize_fleet(self.actor, Action.OPERATE)
        defragmentations.call_off(
            cluster=clusters.cluster(id=id),
            actor=self.actor.label,
            actor_name=self.actor.name,
            at=self.at,
        )
        return Response(status=204)


def shown(made: Proposal) -> dict[str, object]:
    """A proposal with the names of what moves, and of the nodes."""
    names = defragmentations.names(made)
    return {
        "moves": [
            {
                "workload": step.landing.workload,
                "name": names.get(step.landing.workload, ""),
                "frees": names.get(step.frees, ""),
                "lands_on": sorted({names.get(p.node, "") for p in step.landing.places}),
                "lost_s": -(-step.lost_milli_s // ONE_MILLI),
            }
            for step in made.steps
        ],
        "before": {"free_nodes": made.before.free_nodes, "slices": made.before.slices},
        "after": {"free_nodes": made.after.free_nodes, "slices": made.after.slices},
    }
