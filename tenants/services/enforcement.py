"""What becomes of what is held beyond a quota that was lowered: from when on it is taken back, and
when that is over. Who is taken back is for the scheduler."""

from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from django.db.models import QuerySet

from controlplane.audit import services as audit
from controlplane.kernel.errors import Invalid
from tenants.models import Quota, TenantQuota
from tenants.services.quotas import Amounts

ACTOR, NAME = "system:scheduler", "scheduler"
LONGEST_DELAY = timedelta(days=366)


class Excess(StrEnum):
    """What becomes of what is held beyond a quota."""

    DRAIN = "drain"  # it ends by itself
    DELAY = "delay"  # it is preempted from a moment on
    PREEMPT = "preempt"  # it is preempted now


def begins_at(*, excess: Excess, delayed_until: datetime | None, at: datetime) -> datetime | None:
    """From when on a quota that is set at `at` is enforced; None is never.

    Raises Invalid when `delayed_until` is missing for a delay, is not in the future, is more than
    LONGEST_DELAY away, or is given for anything else.
    """
    if excess is not Excess.DELAY:
        if delayed_until is not None:
            raise Invalid(f"Only {Excess.DELAY} has a moment, {excess} none.", pointer=_POINTER)
        return at if excess is Excess.PREEMPT else None
    if delayed_until is None:
        raise Invalid("A delay needs the moment that ends it.", pointer=_POINTER, code="required")
    if not at < delayed_until <= at + LONGEST_DELAY:
        raise Invalid(
            f"The delay has to end in the future, and within {LONGEST_DELAY.days} days: it ends"
            f" {delayed_until:%F %R %Z}.",
            pointer=_POINTER,
        )
    return delayed_until


_POINTER = "/enforce_at"


def settle(*, owner_id: UUID, flavor_id: UUID, seen: Amounts, at: datetime) -> bool:
    """No more is held of a project's or tenant's quota than it allows: nothing of it is to be
    taken back any more. False when the quota is no longer as it was `seen`, whose `enforce_at` is
    rounded up to seconds. In the caller's transaction."""
    found = _as_seen(Quota.objects.filter(project_id=owner_id), flavor_id, seen)
    found = found or _as_seen(TenantQuota.objects.filter(tenant_id=owner_id), flavor_id, seen)
    if found is None:
        return False
    _end(found, at)
    return True


def _as_seen[Q: (Quota, TenantQuota)](
    rows: QuerySet[Q], flavor_id: UUID, seen: Amounts
) -> Quota | TenantQuota | None:
    if seen.enforce_at is None:
        return None
    return (
        rows.filter(
            flavor_id=flavor_id,
            nominal_milli=seen.nominal_milli,
            borrowing_limit_milli=seen.borrowing_limit_milli,
            enforce_at__gt=seen.enforce_at - timedelta(seconds=1),
            enforce_at__lte=seen.enforce_at,
        )
        .select_for_update()
        .first()
    )


def _end(quota: Quota | TenantQuota, at: datetime) -> None:
    before, quota.enforce_at = quota.enforce_at, None
    quota.save(update_fields=["enforce_at"])
    if isinstance(quota, Quota):
        kind, tenant_id, project_id = "quota", quota.project.tenant_id, quota.project_id
    else:
        kind, tenant_id, project_id = "tenant-quota", quota.tenant_id, None
    audit.record(
        actor=ACTOR,
        actor_name=NAME,
        at=at,
        entries=[
            audit.Entry(
                action=f"{kind}.kept",
                target_type=kind,
                target_id=quota.id,
                tenant_id=tenant_id,
                project_id=project_id,
                before={"enforce_at": before.isoformat() if before else None},
                after={"enforce_at": None},
            )
        ],
    )
