"""Charging what had no price, and the day and month that a charge counts to."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from threading import Barrier
from uuid import UUID

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from clusters.models import Flavor
from scheduler.models import Placement
from tenants.access import actor_for
from tenants.models import Charge, Project, Role, User
from tenants.selectors import spend
from tenants.services import ledger
from tests import factories
from tests.scheduler.locks import at_once
from tests.waiting import PATIENCE_S

DECEMBER = datetime(2026, 12, 1, tzinfo=UTC)


def owner() -> User:
    ada = factories.user("ada")
    tenant = factories.tenant()
    factories.project(tenant)
    factories.member(ada, Role.OWNER, at=tenant)
    return ada


def flavor(name: str) -> Flavor:
    return factories.flavor(name, model=name)


def placement(of: User, held: Flavor) -> Placement:
    project = Project.objects.get()
    node = factories.node(factories.cluster(f"c-{held.name}"), gpus=1)
    return factories.place(factories.workload(project, of, [held], held.name), node, held)


def used(of: Placement, hours: int, *, start: datetime = factories.AT) -> None:
    """So many hours, each an interval."""
    for n in range(hours):
        factories.usage(of, start=start + timedelta(hours=n))


@pytest.mark.django_db
def test_usage_without_a_price_does_not_keep_later_usage_from_being_charged() -> None:
    ada = owner()
    free, priced = (placement(ada, flavor(name)) for name in ("free", "priced"))
    used(free, 3)
    used(priced, 2)
    factories.rate(priced.flavor, "2")
    assert ledger.charge_unpriced(limit=2) == 2
    assert [charge.amount for charge in Charge.objects.all()] == [2, 2]
    assert ledger.charge_unpriced(limit=2) == 0


@pytest.mark.django_db
def test_only_a_price_of_its_flavor_cluster_and_time_charges_usage() -> None:
    ada = owner()
    mine = placement(ada, flavor("mine"))
    other = placement(ada, flavor("other"))
    used(mine, 1)
    factories.rate(other.flavor)
    factories.rate(mine.flavor, cluster=other.node.cluster)
    later = DateTimeTZRange(factories.AT + timedelta(minutes=30), None)
    factories.rate(mine.flavor, during=later)
    assert ledger.charge_unpriced() == 0
    factories.rate(mine.flavor, "3", cluster=mine.node.cluster)
    assert ledger.charge_unpriced() == 1
    assert Charge.objects.get().amount == 3


@pytest.mark.django_db(transaction=True)
def test_two_meters_that_charge_the_same_usage_at_once_charge_it_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ada = owner()
    held = placement(ada, factories.flavor())
    used(held, 3)
    factories.rate(held.flavor)
    both_have_read = Barrier(2, timeout=PATIENCE_S)
    read = ledger._rates

    def reading(flavors: set[UUID]) -> dict[UUID, list[ledger._Rate]]:
        found = read(flavors)
        both_have_read.wait()
        return found

    monkeypatch.setattr(ledger, "_rates", reading)
    at_once(ledger.charge_unpriced, ledger.charge_unpriced)
    assert Charge.objects.count() == 3


@pytest.mark.django_db
def test_the_last_hour_of_a_month_counts_to_its_last_day_and_its_month() -> None:
    ada = owner()
    held = placement(ada, factories.flavor())
    factories.rate(held.flavor, "1")
    used(held, 3, start=DECEMBER - timedelta(hours=2))
    ledger.charge_unpriced()
    actor = actor_for(user=ada)

    def days(filters: spend.Filters) -> list[tuple[date, Decimal]]:
        return [(one.day, one.amount) for one in spend.by_day(actor=actor, filters=filters)]

    november = spend.Filters(until=DECEMBER)
    december = spend.Filters(since=DECEMBER)
    assert days(spend.ALL) == [(date(2026, 11, 30), Decimal(2)), (date(2026, 12, 1), Decimal(1))]
    assert days(november) == [(date(2026, 11, 30), Decimal(2))]
    assert days(december) == [(date(2026, 12, 1), Decimal(1))]
    assert spend.total(actor=actor, filters=november) == 2
    assert spend.charges(actor=actor, filters=december).count() == 1
