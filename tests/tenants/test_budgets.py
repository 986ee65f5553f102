"""Budgets: who sets them, what is refused, what is written down, and which period it is."""

from datetime import UTC, date, datetime

import pytest

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Invalid, NotAllowed, NotFound
from tenants.access import actor_for
from tenants.models import MAX_BUDGET_H, Budget, BudgetMode, Period, Role, User
from tenants.services import budgets
from tenants.services.budgets import Terms
from tenants.services.quotas import VersionMismatch
from tests import factories
from tests.conftest import Cast

pytestmark = pytest.mark.django_db


def put(
    cast: Cast,
    *,
    by: User | None = None,
    of_tenant: bool = False,
    period: Period = Period.MONTH,
    version: int | None = None,
    limit_h: int = 100,
    starts_on: date | None = None,
    ends_on: date | None = None,
) -> Budget:
    return budgets.set_budget(
        actor=actor_for(user=by or cast.oz),
        of=cast.vision if of_tenant else cast.detection,
        period=period,
        terms=Terms(limit_h=limit_h, mode=BudgetMode.SOFT, starts_on=starts_on, ends_on=ends_on),
        version=version,
        at=factories.AT,
    )


def test_it_is_made_and_changed_with_an_audit_row_each(cast: Cast) -> None:
    assert put(cast, version=0).version == 1
    assert put(cast, limit_h=200, version=1).version == 2
    assert Budget.objects.get().limit_h == 200
    first, second = AuditEvent.objects.filter(action="budget.set").order_by("id")
    assert (first.before, first.after["limit_h"]) == ({}, 100)
    assert (second.before["limit_h"], second.after["limit_h"]) == (100, 200)
    assert (second.target_type, second.project_id) == ("budget", cast.detection.id)
    put(cast, of_tenant=True)
    assert Budget.objects.get(tenant=cast.vision).project_id is None


def test_whom_somebody_else_was_quicker_than_is_told_and_changes_nothing(cast: Cast) -> None:
    put(cast)
    with pytest.raises(VersionMismatch, match="at version 1 by now, not 0"):
        put(cast, limit_h=7, version=0)
    assert Budget.objects.get().limit_h == 100


def test_those_who_set_quotas_set_budgets(cast: Cast) -> None:
    otto = factories.user("otto")
    factories.member(otto, Role.OPERATOR, at=cast.vision)
    put(cast, by=otto)
    for who, error in ((cast.ada, NotAllowed), (cast.ben, NotAllowed), (cast.cleo, NotFound)):
        with pytest.raises(error):
            put(cast, by=who)
    for who in (otto, cast.ada, cast.cleo):
        with pytest.raises(NotAllowed):
            put(cast, by=who, of_tenant=True)
    assert Budget.objects.count() == 1


@pytest.mark.parametrize(
    ("period", "wrong", "pointer", "text"),
    [
        (Period.MONTH, {"limit_h": -1}, "/limit_h", "-1 is not between 0 and"),
        (Period.MONTH, {"limit_h": MAX_BUDGET_H + 1}, "/limit_h", "is not between"),
        (Period.MONTH, {"starts_on": date(2026, 1, 1)}, "/starts_on", "leave this out"),
        (Period.QUARTER, {"ends_on": date(2026, 1, 1)}, "/ends_on", "leave this out"),
        (Period.ONCE, {}, "/starts_on", "says its first day"),
        (Period.ONCE, {"starts_on": date(2026, 1, 1)}, "/ends_on", "the one after its last"),
        (
            Period.ONCE,
            {"starts_on": date(2026, 1, 1), "ends_on": date(2026, 1, 1)},
            "/ends_on",
            "has to end after it begins",
        ),
    ],
)
def test_what_nobody_can_mean_is_refused(
    cast: Cast, period: Period, wrong: dict[str, int], pointer: str, text: str
) -> None:
    with pytest.raises(Invalid, match=text) as refused:
        put(cast, period=period, **wrong)  # type: ignore[arg-type]  # what the test says
    assert refused.value.pointer == pointer
    assert not Budget.objects.exists()


@pytest.mark.parametrize(
    ("period", "at", "days"),
    [
        (Period.MONTH, (2026, 1, 31, 23), ("2026-01-01", "2026-02-01")),
        (Period.MONTH, (2026, 12, 1, 0), ("2026-12-01", "2027-01-01")),
        (Period.QUARTER, (2026, 2, 1, 0), ("2026-01-01", "2026-04-01")),
        (Period.QUARTER, (2026, 12, 31, 23), ("2026-10-01", "2027-01-01")),
        (Period.ONCE, (2026, 3, 5, 0), ("2026-03-05", "2026-03-07")),
        (Period.ONCE, (2026, 3, 6, 23), ("2026-03-05", "2026-03-07")),
        (Period.ONCE, (2026, 3, 4, 23), None),
        (Period.ONCE, (2026, 3, 7, 0), None),
    ],
)
def test_its_period_is_of_the_calendar_in_utc(
    period: Period, at: tuple[int, int, int, int], days: tuple[str, str] | None
) -> None:
    once = {"starts_on": date(2026, 3, 5), "ends_on": date(2026, 3, 7)}
    of = Budget(period=period, limit_h=1, **(once if period == Period.ONCE else {}))
    window = of.window(at=datetime(*at, tzinfo=UTC))
    assert (window and tuple(f"{each:%Y-%m-%d}" for each in window)) == days
