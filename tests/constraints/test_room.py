"""What the walls must let through; each case names the wall that would be in the way."""

import pytest
from django.db import connection
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from clusters.models import (
    Cluster,
    Device,
    DeviceMode,
    DeviceSlice,
    Flavor,
    ForeignSpan,
    Isolation,
    Node,
)
from scheduler.models import (
    Attempt,
    Estimate,
    Placement,
    PlacementSpan,
    PodSetFlavor,
    SchedulerLease,
    Workload,
)
from tenants.models import (
    Charge,
    Member,
    Project,
    Quota,
    Rate,
    Tenant,
    TenantQuota,
    UsageInterval,
)
from tests.constraints.attacks.held import RELEASED, UID, second
from tests.constraints.attacks.tenants import after_a_cut_elsewhere
from tests.constraints.moves import Move, Sql, Statement, change, copy, insert_like, remove, update
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


def _uses_its_own_after_a_cut_elsewhere() -> Statement:
    quota, _ = after_a_cut_elsewhere()
    return update(quota, used_milli=500)


def _takes_what_its_tenant_keeps() -> Statement:
    """The other tenant holds more than is left of the fleet's."""
    flavor = make(Flavor)
    cut = make(Quota, flavor=flavor, nominal_milli=9000, used_milli=9000)
    Quota.objects.filter(pk=cut.pk).update(nominal_milli=10)
    own = make(Quota, flavor=flavor, nominal_milli=0)
    tenant = own.project.tenant
    make(TenantQuota, tenant=tenant, flavor=flavor, nominal_milli=500, lending_limit_milli=0)
    return update(own, used_milli=500)


def _uses_less_after_a_cut() -> Statement:
    quota = make(Quota, nominal_milli=1000, used_milli=1000)
    Quota.objects.filter(pk=quota.pk).update(nominal_milli=10, borrowing_limit_milli=0)
    return update(quota, used_milli=999)


def _refunds() -> Statement:
    charge = make(Charge)
    return insert_like(charge, amount=-1, corrects_id=charge.pk)


def _takes_half_a_refund_back() -> Statement:
    charge = make(Charge, amount=2)
    refund = make(Charge, usage=charge.usage, rate=charge.rate, corrects=charge, amount=-2)
    return insert_like(charge, amount=1, corrects_id=refund.pk)


def _releases_a_pod_and_then_its_span() -> Statement:
    span = make(PlacementSpan)
    Placement.objects.filter(pk=span.placement.pk).update(released_at=NOON)
    return update(span, released_at=NOON)


def _releases_a_span_and_then_its_pod() -> Statement:
    span = make(PlacementSpan)
    PlacementSpan.objects.filter(pk=span.pk).update(released_at=NOON)
    return update(span.placement, released_at=NOON)


def _accepts_two_flavors() -> Statement:
    pod = make(Placement)
    other = make(PodSetFlavor, pod_set=pod.pod_set, position=1, flavor=make(Flavor))
    return insert_like(pod, rank=2, pod_name="the-second", flavor_id=other.flavor.pk)


LEGAL: dict[str, Move] = {
    "device_slices_apart: an instance beside another": copy(DeviceSlice, span="[4,8)"),
    "device_slices_apart: an instance where one was": copy(DeviceSlice, {"gone_at": NOON}),
    "foreign_spans_apart: the next part of a device": copy(ForeignSpan, span="[4,8)"),
    "device_uuid_once: a second device that the plugin does not name": copy(Device, ordinal=2),
    "span_held_once: the neighbouring share of a device": copy(
        PlacementSpan, {"span": "[0,500)"}, span="[500,1000)"
    ),
    "span_held_once: a span that was released": copy(PlacementSpan, RELEASED),
    "span_fits: all of a MIG device": copy(
        PlacementSpan,
        {"device": lambda: make(Device, mode=DeviceMode.MIG_STATIC), "span": "[0,1)"},
        span="[1,8)",
    ),
    "placement_released_with_spans: a pod and then its span": _releases_a_pod_and_then_its_span,
    "span_released_with_placement: a span and then its pod": _releases_a_span_and_then_its_pod,
    "placement_released_with_spans: a pod without a device": change(Placement, released_at=NOON),
    "placement_held_is_kept: what is not held is forgotten": remove(
        Placement, {"released_at": NOON}
    ),
    "placement_uid_once: two pods that have no uid yet": second(),
    "placement_uid_stays: a pod's uid becomes known": change(Placement, pod_uid="uid"),
    "placement_uid_stays: a pod's uid is told again": change(Placement, UID, pod_uid="uid"),
    "placement_stays: it starts": change(Placement, UID, opened_at=NOON, started_at=NOON),
    "placement_fits: the second flavor that it accepts": _accepts_two_flavors,
    "attempt_one_live: the next try": copy(
        Attempt, {"ended_at": NOON, "outcome": "lost"}, number=2, ended_at=None, outcome=""
    ),
    "lease_epoch_never_falls: the next leader": change(SchedulerLease, {"epoch": 1}, epoch=2),
    "lease_epoch_never_falls: the leader stays": change(SchedulerLease, {"epoch": 1}, epoch=1),
    "workload_ended_iff_terminal: it ends": change(
        Workload, state="FAILED", ended_at=NOON, version=2
    ),
    "workload_end_is_final: a failed one is told why": change(
        Workload, {"state": "FAILED", "ended_at": NOON}, state="FAILED", reason=Sql("'{}'")
    ),
    "workload_version_grows: why it waits": change(Workload, reason=Sql("'{}'")),
    "attempt_stays: it ends": change(Attempt, ended_at=NOON, outcome="lost"),
    "estimate_in_order: no basis": change(Estimate, {"p50_s": 1}, p50_s=None),
    "estimate_in_order: no late forecast": change(Estimate, p50_s=60),
    "estimate_in_order: both at once": change(Estimate, p50_s=60, p90_s=60),
    "node_share_isolation_known: not shared": change(
        Node, {"share_isolation": Isolation.NONE}, share_isolation=""
    ),
    "node_share_isolation_known: memory": change(Node, share_isolation=Isolation.MEMORY),
    "tenant_no_cycle: a department moves": _department_moves,
    "member_role_once: one person is two things": copy(Member, role="viewer"),
    "member_of_one_scope: a role in a project": copy(Member, project_id=lambda: make(Project).pk),
    "quota_within_limits_on_update: a project borrows what is lent": _borrows_what_is_lent,
    "quota_within_limits_on_update: what is not lent, after a cut elsewhere": (
        _uses_its_own_after_a_cut_elsewhere
    ),
    "quota_within_limits_on_update: a tenant takes what it keeps, after a cut elsewhere": (
        _takes_what_its_tenant_keeps
    ),
    "quota_within_limits_on_update: a quota is cut below its use": change(
        Quota,
        {"nominal_milli": 1000, "used_milli": 1000},
        nominal_milli=10,
        borrowing_limit_milli=0,
    ),
    "quota_within_limits_on_update: use over a cut quota shrinks": _uses_less_after_a_cut,
    "quota_in_use_stays: one that nobody uses moves": change(
        Quota, project_id=lambda: make(Project).pk
    ),
    "quota_in_use_is_kept: one that nobody uses": remove(Quota),
    "quota_amounts_in_range: the most that there can be": change(
        Quota,
        nominal_milli=10**12,
        borrowing_limit_milli=10**12,
        lending_limit_milli=10**12,
        used_milli=10**12,
    ),
    "rate_only_ends: a price ends": change(
        Rate, {"during": DateTimeTZRange(NOON, None)}, during=DateTimeTZRange(NOON, NOON + HOUR)
    ),
    "rate_one_at_a_time_anywhere: the next price": copy(Rate, during=NEXT_HOUR),
    "rate_one_at_a_time_anywhere: one cluster's own price": copy(
        Rate, cluster_id=lambda: make(Cluster).pk
    ),
    "usage_metered_once: the next hour": copy(UsageInterval, during=NEXT_HOUR),
    "charge_once_a_usage: a refund that names its charge": _refunds,
    "correction_fits: half of a refund is taken back": _takes_half_a_refund_back,
}


@pytest.mark.parametrize("move", LEGAL.values(), ids=LEGAL.keys())
def test_the_walls_leave_room(move: Move) -> None:
    sql, parameters = move()
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        assert cursor.rowcount == 1
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
