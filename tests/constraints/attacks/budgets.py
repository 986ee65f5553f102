"""Attacks on budgets."""

from datetime import date
from typing import Any

from tenants.models import Budget, Project, Tenant
from tests.constraints.attack import Attack
from tests.constraints.moves import Move, Sql, Statement, change, insert_like
from tests.constraints.rows import make

DAYS = {"starts_on": date(2030, 1, 1), "ends_on": date(2030, 2, 1)}
OF_PROJECT = {"project": lambda: make(Project), "period": "month"}
OF_TENANT = {"tenant": lambda: make(Tenant), "period": "once", **DAYS}


def _again(of: dict[str, Any]) -> Move:  # Any: as rows.Values
    def prepare() -> Statement:
        return insert_like(make(Budget, **of))

    return prepare


ATTACKS = (
    Attack("budget_of_one", "a budget is nobody's", change(Budget, OF_PROJECT, project_id=None)),
    Attack(
        "budget_of_one",
        "a budget is a project's and a tenant's",
        change(Budget, OF_PROJECT, tenant_id=lambda: make(Tenant).pk),
    ),
    Attack(
        "budget_once_a_project_and_period",
        "a project has two budgets for each month",
        _again(OF_PROJECT),
    ),
    Attack("budget_once_a_tenant_and_period", "a tenant has two for once", _again(OF_TENANT)),
    Attack(
        "budget_limit_in_range",
        "less than nothing may be used",
        change(Budget, OF_PROJECT, limit_h=-1),
    ),
    Attack(
        "budget_limit_in_range",
        "more may be used than adds up",
        change(Budget, OF_PROJECT, limit_h=10**9 + 1),
    ),
    Attack(
        "budget_mode_known", "nobody knows what it does", change(Budget, OF_PROJECT, mode="loud")
    ),
    Attack(
        "budget_used_up_where_hard",
        "work was stopped for a budget that stops nothing",
        change(Budget, {**OF_PROJECT, "mode": "soft"}, used_up_at=Sql("now()")),
    ),
    Attack(
        "tenants_budget_version_check",
        "a budget was edited less than never",
        change(Budget, OF_PROJECT, version=-1),
    ),
    *(
        Attack("budget_days_of_its_period", what, change(Budget, of, **columns))
        for what, of, columns in (
            ("a budget for once ends as it begins", OF_TENANT, {"ends_on": Sql("starts_on")}),
            ("a budget for once never begins", OF_TENANT, {"starts_on": None}),
            ("a budget for once never ends", OF_TENANT, {"ends_on": None}),
            ("a budget for each month has days", OF_PROJECT, DAYS),
            ("a budget is for each week", OF_PROJECT, {"period": "week"}),
        )
    ),
)
