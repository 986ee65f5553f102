"""Endpoints of delegations: who decides requests for quota for an approver, for a while."""

from datetime import datetime
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import Moment, StrictSerializer, Text
from controlplane.api.pagination import Keyset
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from tenants.models import Delegation
from tenants.selectors import delegations as selectors
from tenants.services import delegations

type Out = dict[str, Any]  # Any: JSON values
STATES = ["later", "live", "ended", "withdrawn"]


class DelegationOut(serializers.Serializer[Any]):  # Any: rows
    id = serializers.UUIDField()
    approver = serializers.CharField(source="approver.username")
    delegate = serializers.CharField(source="delegate.username")
    from_at = serializers.DateTimeField()
    until_at = serializers.DateTimeField()
    withdrawn_at = serializers.DateTimeField(allow_null=True)
    state = serializers.ChoiceField(choices=STATES)


class DelegationIn(StrictSerializer):
    delegate = Text(max_length=150, help_text="User name. They see already where you decide.")
    from_at = Moment(required=False, default=None, allow_null=True, help_text="Null is at once.")
    until_at = Moment(help_text="At most 90 days after it begins.")


def _told(row: Delegation, at: datetime) -> Out:
    row_with_state = {
        "id": row.id,
        "approver": row.approver,
        "delegate": row.delegate,
        "from_at": row.from_at,
        "until_at": row.until_at,
        "withdrawn_at": row.withdrawn_at,
        "state": row.state(at=at),
    }
    return DelegationOut(row_with_state).data


class DelegationsApi(ApiView):
    pagination_class = Keyset

    @operation(
        "delegations_list",
        tag="quota requests",
        summary="Who decides for you, and for whom you decide, the newest first",
        answers={200: DelegationOut(many=True)},
    )
    def get(self, request: Request) -> Response:
        self.query()
        return self.page(
            selectors.own(actor=self.actor),
            order=["-id"],
            shape=lambda rows: [_told(row, self.at) for row in rows],
        )

    @operation(
        "delegations_make",
        tag="quota requests",
        summary="Have somebody decide for you, for a while (approvers, no token)",
        takes=DelegationIn,
        answers={201: DelegationOut},
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def make() -> Out:
            body = self.body(DelegationIn)
            made = delegations.make(
                actor=self.actor,
                delegate=body["delegate"],
                from_at=body["from_at"],
                until_at=body["until_at"],
                at=self.at,
            )
            return _told(made, self.at)

        return self.once(make)


class WithdrawDelegationApi(ApiView):
    session_only = True

    @operation(
        "delegations_withdraw",
        tag="quota requests",
        summary="Have them decide for you no longer (who gave it, session only)",
        answers={200: DelegationOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        self.no_body()

        def make() -> Out:
            given = selectors.given(actor=self.actor, id=id)
            delegations.withdraw(actor=self.actor, delegation=given, at=self.at)
            return _told(given, self.at)

        return self.once(make, status=200)
