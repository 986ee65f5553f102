"""The law of quota stands twice: in the core and in a trigger. They admit the same, to a
thousandth, over any tree of tenants, with quotas of their own and without."""

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusters.models import Flavor
from scheduler.core.quota.quota import Book
from scheduler.core.units import FlavorId, ProjectId
from scheduler.selectors import fleet
from tenants.models import Project, Quota, Tenant, TenantQuota
from tests.constraints.rows import make

pytestmark = pytest.mark.django_db

_limit = st.none() | st.integers(0, 6)
_row = st.tuples(st.integers(0, 6), _limit, _limit)
_above = st.integers(0, 3)
"""The number of the tenant above, counted from 1; 0 and those that there are not: the fleet, and
for a project a tenant of its own."""
_tenants = st.lists(st.tuples(_above, st.none() | _row), max_size=3)
_projects = st.lists(st.tuples(_above, _row), min_size=1, max_size=4)
_steps = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 8)), max_size=8)
_cuts = st.lists(st.integers(0, 6), max_size=4)

type Amounts = tuple[int, int | None, int | None]


def amounts(row: Amounts) -> dict[str, int | None]:
    names = ("nominal_milli", "borrowing_limit_milli", "lending_limit_milli")
    return dict(zip(names, row, strict=True))


def admits(quota: Quota, more: int, *, undo: bool = True) -> bool:
    try:
        with transaction.atomic():
            Quota.objects.filter(pk=quota.pk).update(used_milli=F("used_milli") + more)
            transaction.set_rollback(undo)
    except IntegrityError:
        return False
    return True


def build(
    flavor: Flavor,
    tenants: list[tuple[int, Amounts | None]],
    projects: list[tuple[int, Amounts]],
) -> list[Quota]:
    """A forest of tenants, each below an earlier one or none, and the quotas of the projects."""
    tree: list[Tenant] = []
    for above, row in tenants:
        tree.append(make(Tenant, parent=tree[above - 1] if 0 < above <= len(tree) else None))
        if row is not None:
            make(TenantQuota, tenant=tree[-1], flavor=flavor, **amounts(row))
    return [
        make(
            Quota,
            flavor=flavor,
            project=make(Project, tenant=tree[above - 1])
            if 0 < above <= len(tree)
            else make(Project),
            **amounts(row),
        )
        for above, row in projects
    ]


def book() -> Book:
    """What the core is told of the rows."""
    made = Book(cohorts=fleet.cohorts(), queues=fleet.queues())
    for quota in Quota.objects.all():
        made.charge(
            project=ProjectId(str(quota.project_id)),
            flavor=FlavorId(str(quota.flavor_id)),
            amount_milli=quota.used_milli,
        )
    return made


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tenants=_tenants, projects=_projects, steps=_steps, cuts=_cuts)
def test_the_trigger_admits_what_the_core_calls_available(
    tenants: list[tuple[int, Amounts | None]],
    projects: list[tuple[int, Amounts]],
    steps: list[tuple[int, int]],
    cuts: list[int],
) -> None:
    """Usage grows as it may, quotas are cut below it, and each project asks for the most."""
    with transaction.atomic():
        flavor = make(Flavor)
        made = build(flavor, tenants, projects)
        for number, more in steps:
            if number < len(made):
                admits(made[number], more, undo=False)
        for quota, cut in zip(made, cuts, strict=False):
            Quota.objects.filter(pk=quota.pk, nominal_milli__gt=cut).update(nominal_milli=cut)
        for cut in cuts[:1]:
            TenantQuota.objects.filter(nominal_milli__gt=cut).update(nominal_milli=cut)
        law = book()
        for quota in made:
            available = law.available(
                project=ProjectId(str(quota.project_id)), flavor=FlavorId(str(flavor.pk))
            )
            assert available is not None
            most = max(0, available)
            assert most == 0 or admits(quota, most)
            assert not admits(quota, most + 1)
        transaction.set_rollback(True)


def test_all_that_one_statement_raises_is_asked() -> None:
    """Two tenants take what they keep; the one between them takes more than the fleet lends."""
    flavor = make(Flavor)
    kept: Amounts = (4, None, 0)
    quotas = build(
        flavor,
        [(0, kept), (0, None), (0, kept)],
        [(1, (0, None, None)), (2, (3, None, None)), (3, (0, None, None))],
    )
    rows = Quota.objects.filter(flavor=flavor)
    refusal = "4 borrowed would pass the 3 that the fleet lends"
    with pytest.raises(IntegrityError, match=refusal), transaction.atomic():
        rows.update(used_milli=4)
    assert rows.update(used_milli=3) == len(quotas)
