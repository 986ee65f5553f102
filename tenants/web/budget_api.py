"""Endpoints about budgets of device-hours, of projects and of tenants."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.fields import Id, Integer, StrictSerializer
from controlplane.api.pagination import Keyset
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from scheduler.selectors.budgets import standings
from scheduler.services import stopping
from tenants.access import Actor
from tenants.models import MAX_BUDGET_H, Budget, BudgetMode, Period
from tenants.selectors import budgets as selectors
from tenants.services import budgets
from tenants.web.lowering_api import VictimOut, seconds, victims_shown
from tenants.web.named_place import one_named

type Out = dict[str, Any]  # Any: JSON values

PERIODS = Period.values
MODES = BudgetMode.values
_MODES = (
    "warn keeps nothing from starting; soft all that is new, once it is used up; safe also what"
    " would pass it by its run-time limit times what it asks for; hard as soft, and what runs on"
    " devices is stopped, with its notice and grace, also what may not be preempted. It waits for"
    " the next period, or for more hours."
)


class BudgetOut(serializers.Serializer[Any]):  # Any: plain rows
    """Device-hours of a project, or of a tenant with all below it: one of the two is null. Of a
    month or quarter the days are null.

    `standing` is null before and after the days of a budget for once.
    """

    id = serializers.UUIDField()
    project = serializers.UUIDField(source="project_id", allow_null=True)
    tenant = serializers.UUIDField(source="tenant_id", allow_null=True)
    period = serializers.ChoiceField(choices=PERIODS)
    limit_h = serializers.IntegerField()
    mode = serializers.ChoiceField(choices=MODES, help_text=_MODES)
    starts_on = serializers.DateField(allow_null=True)
    ends_on = serializers.DateField(allow_null=True)
    version = serializers.IntegerField()


class BudgetStandingOut(serializers.Serializer[Any]):  # Any: plain values
    """In the period that it is; hours in thousandths. `warned` is from 80 % on, `used` at 100 %.
    `lasts_until` is when it is used up if as much runs on as now, null when that is later."""

    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    used_milli_h = serializers.IntegerField()
    left_milli_h = serializers.IntegerField()
    running_milli = serializers.IntegerField(
        help_text="Devices that run under it, in thousandths."
    )
    state = serializers.ChoiceField(choices=["ok", "warned", "used"])
    lasts_until = serializers.DateTimeField(allow_null=True)
    stopped_at = serializers.DateTimeField(
        allow_null=True, help_text="When work was last stopped for it; it is used up since."
    )


class BudgetUseOut(BudgetOut):
    standing = BudgetStandingOut(allow_null=True)


class BudgetIn(StrictSerializer):
    project = Id(required=False, allow_null=True, default=None, help_text="This or the tenant.")
    tenant = Id(required=False, allow_null=True, default=None)
    period = serializers.ChoiceField(choices=PERIODS)
    limit_h = Integer(high=MAX_BUDGET_H, help_text="Device-hours in each period.")
    mode = serializers.ChoiceField(choices=MODES, help_text=_MODES)
    starts_on = serializers.DateField(
        required=False, allow_null=True, default=None, help_text="The first day (UTC), if once."
    )
    ends_on = serializers.DateField(
        required=False, allow_null=True, default=None, help_text="The day after the last, if once."
    )
    version = Integer(
        high=2**31 - 1, help_text="The version you saw, 0 where there is no such budget yet."
    )


class StopsOut(serializers.Serializer[Any]):  # Any: plain values
    """Were it so from now on. It is worked out anew when it is."""

    standing = BudgetStandingOut(allow_null=True)
    lost_s = serializers.IntegerField(help_text="In all, as of each.")
    victims = VictimOut(many=True, help_text="In the order in which they would go.")


class BudgetsQuery(StrictSerializer):
    project = Id(required=False)
    tenant = Id(required=False)


class BudgetsApi(ApiView):
    pagination_class = Keyset

    @operation(
        "budgets_list",
        tag="budgets",
        summary="Budgets of your projects and tenants, with what is used of them",
        answers={200: BudgetUseOut(many=True)},
        query=BudgetsQuery,
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        asked = self.query(BudgetsQuery)
        return self.page(
            selectors.budgets(
                actor=self.actor, project_id=asked.get("project"), tenant_id=asked.get("tenant")
            ),
            order=["id"],
            shape=self._shaped,
        )

    @operation(
        "budgets_set",
        tag="budgets",
        summary="Set a budget of a project, or of a tenant (whoever sets its quotas)",
        takes=BudgetIn,
        answers={200: BudgetOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def make() -> Out:
            asked = _asked(self.actor, self.body(BudgetIn))
            made = budgets.set_budget(actor=self.actor, at=self.at, **asked)
            return BudgetOut(made).data

        return self.once(make, status=200)

    def _shaped(self, rows: list[Budget]) -> Sequence[Mapping[str, Any]]:  # Any: JSON values
        known = {each.budget.id: each for each in standings(budgets=rows, at=self.at)}
        return [
            {
                **BudgetOut(row).data,
                "standing": BudgetStandingOut(known[row.id]).data if row.id in known else None,
            }
            for row in rows
        ]


class BudgetDryRunApi(ApiView):
    @operation(
        "budgets_dry_run",
        tag="budgets",
        summary="Who would be stopped at once if a budget became this (whoever sets its quotas);"
        " nothing is stored",
        takes=BudgetIn,
        answers={200: StopsOut},
        problems=(404, 409, 429),
    )
    def post(self, request: Request) -> Response:
        asked = _asked(self.actor, self.body(BudgetIn))
        found = stopping.preview(actor=self.actor, at=self.at, **asked)
        return Response(StopsOut(stops_shown(found)).data)


class BudgetApi(ApiView):
    @operation(
        "budgets_remove",
        tag="budgets",
        summary="Keep nobody waiting by a budget any more (whoever sets its quotas)",
        answers={204: None},
        problems=(404,),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        budgets.remove(
            actor=self.actor, budget=selectors.budget(actor=self.actor, id=id), at=self.at
        )
        return Response(status=204)


def stops_shown(found: stopping.Stops) -> Out:
    """As StopsOut has them."""
    return {
        "standing": found.standing,
        "lost_s": seconds(found.lost_milli_s),
        "victims": victims_shown(found.losses),
    }


def _asked(actor: Actor, body: Out) -> Out:
    """Of which owner, and for what, as the services take it. Raises NotFound, and Invalid where it
    is of none or of two."""
    terms = budgets.Terms(
        limit_h=body["limit_h"],
        mode=BudgetMode(body["mode"]),
        starts_on=body["starts_on"],
        ends_on=body["ends_on"],
    )
    period, version = Period(body["period"]), body["version"]
    return {"of": one_named(actor, body), "period": period, "terms": terms, "version": version}
