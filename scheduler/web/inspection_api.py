"""Endpoints about what a cluster says of a pod: its events, and the end of its log."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from clusters.inspection import LOG_KIB, MOST_EVENTS
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from controlplane.kernel.errors import NotFound
from scheduler.selectors import inspections as selectors
from scheduler.services import inspections

type Out = dict[str, Any]  # Any: JSON values


class ClusterEventOut(serializers.Serializer[Any]):  # Any: plain rows
    at = serializers.DateTimeField(allow_null=True, help_text="When it was last seen.")
    reason = serializers.CharField(allow_blank=True)
    said = serializers.CharField(allow_blank=True)
    count = serializers.IntegerField(help_text="How often it was seen.")
    component = serializers.CharField(allow_blank=True, help_text="Who says so.")
    is_warning = serializers.BooleanField()


class InspectionOut(serializers.Serializer[Any]):  # Any: plain rows
    """Under way until `ended_at`; kept for 15 minutes."""

    asked_at = serializers.DateTimeField()
    asked_by = serializers.CharField()
    ended_at = serializers.DateTimeField(allow_null=True)
    events = ClusterEventOut(many=True, help_text=f"The latest first, at most {MOST_EVENTS}.")
    events_why = serializers.CharField(allow_blank=True, help_text="Why there are none.")
    log = serializers.CharField(
        allow_blank=True,
        help_text=f"The end of its container's, at most {LOG_KIB} KiB; text of the work's own.",
    )
    log_is_cut = serializers.BooleanField(help_text="There may be more before it.")
    log_why = serializers.CharField(allow_blank=True, help_text="Why there is none.")


class InspectionApi(ApiView):
    @operation(
        "workloads_inspection",
        tag="workloads",
        summary="What the cluster said of a pod when somebody asked last: events, and its log",
        answers={200: InspectionOut},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID, placement: UUID) -> Response:
        self.query()
        found = selectors.newest(
            placement=selectors.placement(actor=self.actor, workload_id=id, id=placement)
        )
        if found is None:
            raise NotFound("Nobody asked in the last 15 minutes: POST here.")
        return Response(InspectionOut(found).data)

    @operation(
        "workloads_inspect",
        tag="workloads",
        summary="Have the events and the end of the log of a pod fetched from its cluster",
        answers={202: InspectionOut},
        problems=(404, 429),
        keyed=True,
    )
    def post(self, request: Request, id: UUID, placement: UUID) -> Response:
        """One that is under way is the answer. GET it until it has ended."""

        def make() -> Out:
            self.no_body()
            row = selectors.placement(actor=self.actor, workload_id=id, id=placement)
            asked = inspections.ask(actor=self.actor, placement=row, at=self.at)
            shown: Out = InspectionOut(asked).data
            return shown

        return self.once(make, status=202)
