"""Endpoints of reservations."""

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.pagination import Keyset
from controlplane.api.schema import operation
from controlplane.api.views import ApiView, many
from controlplane.kernel.errors import Invalid
from scheduler.selectors import capacity
from tenants.selectors import reservations as selectors
from tenants.services import reservations
from tenants.web import reservation_serializers as s
from tenants.web.named_place import one_named, place_named
from tenants.web.quota_api import flavor_named

type Out = dict[str, Any]  # Any: JSON values


class ReservationsApi(ApiView):
    pagination_class = Keyset

    @operation(
        "reservations_list",
        tag="reservations",
        summary="Reservations of your projects and tenants that are not over",
        answers={200: s.ReservationOut(many=True)},
        query=s.ReservationsQuery,
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        asked = self.query(s.ReservationsQuery)
        of = place_named(self.actor, asked, root="?")
        return self.page(
            selectors.reservations(actor=self.actor, at=self.at, of=of),
            order=["id"],
            shape=many(s.ReservationOut),
        )

    @operation(
        "reservations_make",
        tag="reservations",
        summary="Keep an amount of a flavor for a project, or for a tenant with all below it, in a"
        " window (whoever sets its quotas)",
        takes=s.ReservationIn,
        answers={201: s.ReservationOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def make() -> Out:
            body = self.body(s.ReservationIn)
            of = one_named(self.actor, body)
            flavor = flavor_named(body["flavor"])
            made = reservations.make(
                actor=self.actor,
                of=of,
                flavor=flavor,
                amount_milli=body["amount_milli"],
                starts_at=body["starts_at"],
                ends_at=body["ends_at"],
                note=body["note"],
                weekly=_weekly(body),
                there_milli=capacity.there_milli(flavor=flavor),
                at=self.at,
            )
            return s.ReservationOut(made).data

        return self.once(make)


def _weekly(body: Out) -> reservations.Weekly | None:
    zone, until = body["zone"], body["weekly_until"]
    if bool(zone) != (until is not None):
        missing = "zone" if until else "weekly_until"
        raise Invalid(
            "A weekly one has both zone and weekly_until.", pointer=f"/{missing}", code="required"
        )
    return reservations.Weekly(zone=zone, until=until) if until else None


class ReservationApi(ApiView):
    @operation(
        "reservations_cancel",
        tag="reservations",
        summary="Keep nothing by a reservation any more (whoever sets its quotas)",
        answers={204: None},
        problems=(404, 409),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        found = selectors.reservation(actor=self.actor, id=id)
        reservations.cancel(actor=self.actor, reservation=found, at=self.at)
        return Response(status=204)
