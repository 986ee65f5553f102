"""What the walls must let through; each case names the wall that would be in the way."""

import pytest
from django.db import connection
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from clusters.models import Cluster, Device, DeviceSlice, Flavor
from scheduler.models import Attempt, PlacementSpan, Workload
from tenants.models import Charge, Member, Project, Quota, Rate, Tenant, UsageInterval
from tests.constraints.moves import Move, Statement, change, copy, insert_like, update
from tests.constraints.rows import HOUR, NOON, make

pytestmark = pytest.mark.django_db

NEXT_HOUR = DateTimeTZRange(NOON + HOUR, NOON + 2 * HOUR)


def _department_moves() -> Statement:
    old, new = make(Tenant), make(Tenant)
    return update(make(Tenant, parent=old), parent_id=new.pk)


def _borrows_what_is_lent() -> Statement:
    flavor = make(Flavor)
    make(Quota, flavor=flavor, nominal_milli=1000, lending_limit_milli=400)
    return update(make(Quota, flavor=flavor, nominal_milli=1000), used_milli=1400)


def _uses_less_after_a_cut() -> Statement:
    quota = make(Quota, nominal_milli=1000, used_milli=1000)
    Quota.objects.filter(pk=quota.pk).update(nominal_milli=10, borrowing_limit_milli=0)
    return update(quota, used_milli=999)


def _refunds() -> Statement:
    charge = make(Charge)
    return insert_like(charge, amount=-1, corrects_id=charge.pk)


LEGAL: dict[str, Move] = {
    "device_slices_apart: an instance beside another": copy(DeviceSlice, span="[4,8)"),
    "device_slices_apart: an instance where one was": copy(DeviceSlice, {"gone_at": NOON}),
    "device_uuid_once: a second device that the plugin does not name": copy(Device, ordinal=2),
    "span_held_once: the neighbouring share of a device": copy(
        PlacementSpan, {"span": "[0,500)"}, span="[500,1000)"
    ),
    "span_held_once: a span that was released": copy(PlacementSpan, {"released_at": NOON}),
    "attempt_one_live: the next try": copy(
        Attempt, {"ended_at": NOON, "outcome": "lost"}, number=2, ended_at=None, outcome=""
    ),
    "workload_ended_iff_terminal: it ends": change(Workload, state="FAILED", ended_at=NOON),
    "tenant_no_cycle: a department moves": _department_moves,
    "member_role_once: one person is two things": copy(Member, role="viewer"),
    "member_of_one_scope: a role in a project": change(
        Member, project_id=lambda: make(Project).pk
    ),
    "quota_within_limits_on_update: a project borrows what is lent": _borrows_what_is_lent,
    "quota_within_limits_on_update: a quota is cut below its use": change(
        Quota,
        {"nominal_milli": 1000, "used_milli": 1000},
        nominal_milli=10,
        borrowing_limit_milli=0,
    ),
    "quota_within_limits_on_update: use over a cut quota shrinks": _uses_less_after_a_cut,
    "rate_one_at_a_time_anywhere: the next price": copy(Rate, during=NEXT_HOUR),
    "rate_one_at_a_time_anywhere: one cluster's own price": copy(
        Rate, cluster_id=lambda: make(Cluster).pk
    ),
    "usage_metered_once: the next hour": copy(UsageInterval, during=NEXT_HOUR),
    "charge_once_a_usage: a refund that names its charge": _refunds,
}


@pytest.mark.parametrize("move", LEGAL.values(), ids=LEGAL.keys())
def test_the_walls_leave_room(move: Move) -> None:
    sql, parameters = move()
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        assert cursor.rowcount == 1
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
