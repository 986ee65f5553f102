"""The endpoints that reorder what waits."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import Integer, StrictSerializer
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from scheduler.selectors import arrays, queues, workloads
from scheduler.services import reordering
from scheduler.services.reordering import Change, To
from scheduler.services.specs import PRIORITY_CLASSES
from scheduler.web import array_api, array_input, outputs, shapes


class OrderIn(StrictSerializer):
    """A priority, a place, or both: then it is placed among those of the new priority."""

    priority_class = serializers.ChoiceField(
        choices=list(PRIORITY_CLASSES), required=False, allow_null=True, default=None
    )
    to = serializers.ChoiceField(
        choices=[each.value for each in To],
        required=False,
        allow_null=True,
        default=None,
        help_text="Before or behind those of its priority that wait: its submitter's in the"
        " project, or, for who administers that, all of them.",
    )


class WorkloadOrderIn(OrderIn):
    version = Integer(
        low=1,
        high=2**31 - 1,
        required=False,
        allow_null=True,
        default=None,
        help_text="The version you saw; null changes whatever is there.",
    )


class OrderedOut(outputs.SubmittedOut):
    version = serializers.IntegerField()
    priority_class = serializers.CharField()
    position = serializers.IntegerField(help_text="From 1, in its project's queue.")


class OrderApi(ApiView):
    @operation(
        "workloads_reorder",
        tag="workloads",
        summary="Give a workload that waits another priority, or another turn in its queue",
        takes=WorkloadOrderIn,
        answers={200: OrderedOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> shapes.Out:
            row = workloads.seen(actor=self.actor, id=id)
            change = _change(self.body(WorkloadOrderIn))
            reordering.reorder(actor=self.actor, work=row, change=change, at=self.at)
            return {
                **shapes.submitted([row])[0],
                "version": row.version,
                "priority_class": row.priority_class,
                "position": queues.position_of(row),
            }

        return self.once(make, status=200)


class ArrayOrderApi(ApiView):
    @operation(
        "arrays_reorder",
        tag="workloads",
        summary="Reorder what waits of an array, as one",
        takes=OrderIn,
        answers={200: array_input.ArrayOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> shapes.Out:
            row = arrays.array(actor=self.actor, id=id)
            change = _change(self.body(OrderIn))
            reordering.reorder(actor=self.actor, work=row, change=change, at=self.at)
            return array_api.shape(row)

        return self.once(make, status=200)


def _change(body: dict[str, Any]) -> Change:  # Any: validated input
    to = body["to"]
    return Change(body["priority_class"], To(to) if to else None, body.get("version"))
