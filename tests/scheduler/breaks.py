"""The ways to break a promise by hand, once the walls are down, and the words that tell of each.

What must not live here: tests, and the rows that are broken (test_invariants.py).
"""

from collections.abc import Callable
from typing import Any

from django.db import connection
from django.db.models import F

from controlplane.audit.models import AuditEvent
from scheduler.loop.measuring import meter
from scheduler.models import Attempt, Operation, Placement, PlacementSpan, Workload
from tenants.models import Charge, Quota, TenantQuota, UsageInterval
from tests import factories
from tests.scheduler.stage import LATER
from tests.scheduler.test_meter import TEN

HOURS = TEN + meter.LAG


def sql(statement: str, *parameters: Any) -> None:  # Any: as psycopg's
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        assert cursor.rowcount > 0, "nothing was broken"


def double_book() -> None:
    held = PlacementSpan.objects.filter(released_at=None).first()
    assert held
    other = PlacementSpan.objects.exclude(device=held.device).filter(released_at=None).first()
    assert other
    sql(
        "UPDATE scheduler_placementspan SET device_id = %s WHERE id = %s", held.device_id, other.id
    )


def run_at_once() -> None:
    past = PlacementSpan.objects.filter(placement__workload__name="done").first()
    now = PlacementSpan.objects.filter(placement__workload__name="runs").first()
    assert past
    assert now
    sql("UPDATE scheduler_placementspan SET device_id = %s WHERE id = %s", now.device_id, past.id)
    sql("UPDATE scheduler_placement SET ended_at = %s WHERE id = %s", HOURS, past.placement_id)


def only_span_released() -> None:
    sql("UPDATE scheduler_placementspan SET released_at = %s WHERE released_at IS NULL", LATER)


def without_device() -> None:
    sql(
        "DELETE FROM scheduler_placementspan WHERE placement_id IN"
        " (SELECT id FROM scheduler_placement WHERE released_at IS NULL)"
    )


def small_node() -> None:
    sql("UPDATE clusters_node SET cpu_milli = 10")


def wrong_sum() -> None:
    Quota.objects.update(used_milli=F("used_milli") + 1)


def over_limit() -> None:
    Quota.objects.update(nominal_milli=7000, borrowing_limit_milli=500)


def over_fleet() -> None:
    Quota.objects.update(nominal_milli=7000, borrowing_limit_milli=None)


def over_tenant() -> None:
    """The fleet has enough, and the tenant may not borrow all that it holds."""
    Quota.objects.update(nominal_milli=7000, borrowing_limit_milli=None)
    own = Quota.objects.get()
    factories.quota(factories.project(factories.tenant("Elsewhere")), own.flavor, 8000)
    TenantQuota.objects.create(
        tenant=own.project.tenant, flavor=own.flavor, nominal_milli=0, borrowing_limit_milli=500
    )


def one_pod_twice() -> None:
    uid = Placement.objects.get(workload__name="runs").pod_uid
    sql("UPDATE scheduler_placement SET pod_uid = %s WHERE released_at IS NOT NULL", uid)


def no_attempt() -> None:
    sql("UPDATE scheduler_workload SET state = 'RUNNING' WHERE name = 'waits'")


def two_attempts() -> None:
    done = Attempt.objects.get(workload__name="done")
    runs = Workload.objects.get(name="runs")
    sql(
        "UPDATE scheduler_attempt SET workload_id = %s, ended_at = NULL WHERE id = %s",
        runs.id,
        done.id,
    )


def nothing_held() -> None:
    sql("UPDATE scheduler_placement SET released_at = %s WHERE released_at IS NULL", LATER)


def nothing_due() -> None:
    sql("UPDATE scheduler_placement SET opened_at = NULL, pod_uid = '' WHERE released_at IS NULL")


def not_told() -> None:
    sql("UPDATE scheduler_workload SET state = 'PREEMPTING' WHERE name = 'runs'")


def still_due() -> None:
    ended = Attempt.objects.filter(ended_at__isnull=False)
    assert Operation.objects.filter(attempt__in=ended).update(done_at=None)


def ended_and_holding() -> None:
    sql(
        "UPDATE scheduler_placement SET released_at = NULL WHERE workload_id ="
        " (SELECT id FROM scheduler_workload WHERE name = 'done')"
    )


def unaudited() -> None:
    AuditEvent.objects.filter(action="workload.state", after__state="SUCCEEDED").delete()


def audited_twice() -> None:
    row = AuditEvent.objects.filter(action="workload.state").first()
    assert row
    AuditEvent(
        at=row.at, actor=row.actor, action=row.action, target_type=row.target_type,
        target_id=row.target_id, before=row.before, after=row.after,
    ).save()  # fmt: skip


def submitted_unaudited() -> None:
    AuditEvent.objects.filter(action="workload.submit").delete()


def jumped() -> None:
    sql("UPDATE scheduler_workload SET state = 'FAILED' WHERE name = 'gone'")


def old_version() -> None:
    sql("UPDATE scheduler_workload SET version = 1 WHERE name = 'runs'")


def no_such_step() -> None:
    sql(
        "UPDATE scheduler_workloadevent SET before = 'CANCELLED' WHERE after = 'SUCCEEDED'",
    )


def unmetered() -> None:
    Charge.objects.all().delete()
    UsageInterval.objects.filter(placement_id__in=_placements("done")).delete()


def metered_twice() -> None:
    for usage in UsageInterval.objects.filter(placement_id__in=_placements("runs")):
        usage.pk = None
        usage.save(force_insert=True)


def a_gap() -> None:
    sql(
        "UPDATE tenants_usageinterval SET during ="
        " tstzrange(lower(during) + interval '1 second', upper(during))"
    )


def nobodys_usage() -> None:
    sql("UPDATE tenants_usageinterval SET placement_id = id")


def wrong_amount() -> None:
    UsageInterval.objects.update(amount_milli=F("amount_milli") + 1)


def never_ended() -> None:
    sql("UPDATE scheduler_placement SET ended_at = NULL WHERE released_at IS NOT NULL")


def wrong_price() -> None:
    Charge.objects.update(amount=F("amount") + 1)


def charged_twice() -> None:
    for charge in Charge.objects.all():
        charge.pk = None
        charge.save(force_insert=True)


def _placements(name: str) -> list[Any]:  # Any: ids
    return list(Placement.objects.filter(workload__name=name).values_list("id", flat=True))


BREAKS: dict[Callable[[], None], str] = {
    double_book: "P1: device",
    run_at_once: "ran at once on one span",
    only_span_released: "are not released together",
    without_device: "and no device",
    small_node: "room: node",
    wrong_sum: "P2: project",
    over_limit: "held of 7500 at most",
    over_tenant: "8000 are held of the 7500 that Vision Lab has and may borrow",
    over_fleet: "8000 are held of the 7000 that the fleet has",
    one_pod_twice: "P3: the pod",
    no_attempt: "is RUNNING and has 0 live attempts",
    two_attempts: "is RUNNING and has 2 live attempts",
    nothing_held: "it holds nothing",
    nothing_due: "it has no pods",
    not_told: "its pods were not told",
    still_due: "an operation on it is open",
    ended_and_holding: "still holds room",
    unaudited: "SUCCEEDED: 1 times in its timeline, 0 in the audit",
    audited_twice: "1 times in its timeline, 2 in the audit",
    submitted_unaudited: "→ PENDING: 1 times in its timeline, 0 in the audit",
    jumped: "is FAILED, and its timeline ends at: CANCELLED",
    old_version: "is at version 1 after",
    no_such_step: "from CANCELLED to SUCCEEDED, which is no step",
    unmetered: "P6:",
    metered_twice: "is metered twice",
    a_gap: "in sum; it ran from",
    nobodys_usage: "P6: placement",
    wrong_amount: "is not its placement's",
    never_ended: "is released and did not end",
    wrong_price: "is charged 1 times",
    charged_twice: "is charged 2 times",
}
