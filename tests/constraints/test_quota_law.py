"""The law of quota, without limits of tenants, stands twice: in the core and in a trigger. They
admit the same, to a thousandth. Limits of tenants, which no row has yet, would be the core's."""

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusters.models import Flavor
from scheduler.core.quota import Book
from scheduler.core.snapshot import QueueView, QuotaView
from scheduler.core.units import FlavorId, ProjectId
from tenants.models import Quota
from tests.constraints.rows import make

pytestmark = pytest.mark.django_db

_limit = st.none() | st.integers(0, 6)
_quotas = st.lists(st.tuples(st.integers(0, 6), _limit, _limit), min_size=1, max_size=4)
_steps = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 8)), max_size=8)
_cuts = st.lists(st.integers(0, 6), max_size=4)


def admits(quota: Quota, more: int, *, undo: bool = True) -> bool:
    try:
        with transaction.atomic():
            Quota.objects.filter(pk=quota.pk).update(used_milli=F("used_milli") + more)
            transaction.set_rollback(undo)
    except IntegrityError:
        return False
    return True


def book(quotas: list[Quota]) -> Book:
    """What the core knows of these rows."""
    made = Book(
        queues=[
            QueueView(
                ProjectId(str(q.project_id)),
                None,
                1,
                (
                    QuotaView(
                        FlavorId(str(q.flavor_id)),
                        q.nominal_milli,
                        q.borrowing_limit_milli,
                        q.lending_limit_milli,
                    ),
                ),
            )
            for q in quotas
        ]
    )
    for q in quotas:
        made.charge(
            project=ProjectId(str(q.project_id)),
            flavor=FlavorId(str(q.flavor_id)),
            amount_milli=q.used_milli,
        )
    return made


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=_quotas, steps=_steps, cuts=_cuts)
def test_the_trigger_admits_what_the_core_calls_available(
    rows: list[tuple[int, int | None, int | None]],
    steps: list[tuple[int, int]],
    cuts: list[int],
) -> None:
    """Usage grows as it may, quotas are cut below it, and each project asks for the most."""
    with transaction.atomic():
        flavor = make(Flavor)
        made = [
            make(
                Quota,
                flavor=flavor,
                nominal_milli=nominal,
                borrowing_limit_milli=borrowing,
                lending_limit_milli=lending,
            )
            for nominal, borrowing, lending in rows
        ]
        for number, more in steps:
            if number < len(made):
                admits(made[number], more, undo=False)
        for quota, cut in zip(made, cuts, strict=False):
            Quota.objects.filter(pk=quota.pk, nominal_milli__gt=cut).update(nominal_milli=cut)
        quotas = list(Quota.objects.filter(flavor=flavor))
        law = book(quotas)
        for quota in quotas:
            available = law.available(
                project=ProjectId(str(quota.project_id)), flavor=FlavorId(str(flavor.pk))
            )
            assert available is not None
            most = max(0, available)
            assert most == 0 or admits(quota, most)
            assert not admits(quota, most + 1)
        transaction.set_rollback(True)
