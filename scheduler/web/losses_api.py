"""The endpoint for what failed and what was lost, by project."""

from dataclasses import asdict
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import Id, Moment, StrictSerializer
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from scheduler.selectors import losses
from tenants import access


class LossesQuery(StrictSerializer):
    project = Id(required=False)
    since = Moment(required=False, help_text="Ended at or after.")
    until = Moment(required=False, help_text="Ended before.")


class LossOut(serializers.Serializer[Any]):  # Any: plain rows
    """Attempts of one project that ended for one cause."""

    project = serializers.UUIDField()
    cause = serializers.ChoiceField(
        choices=losses.CAUSES, help_text="preempted, or the class of the failure."
    )
    count = serializers.IntegerField(
        help_text="How many; of those that were preempted, how many lost any work."
    )
    lost_milli_s = serializers.IntegerField(
        help_text="Work since the last checkpoint: thousandths of devices x seconds."
    )


class LossesOut(serializers.Serializer[Any]):  # Any: plain rows
    items = LossOut(many=True)


class LossesApi(ApiView):
    @operation(
        "losses_list",
        tag="workloads",
        summary="What failed and what work was lost, by project and cause",
        answers={200: LossesOut},
        query=LossesQuery,
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        asked = self.query(LossesQuery)
        project = asked.get("project")
        if project is not None:
            access.project_or_404(self.actor, project)
        found = losses.by_project(
            actor=self.actor,
            project_id=project,
            since=asked.get("since"),
            until=asked.get("until"),
        )
        return Response({"items": [asdict(each) for each in found]})
