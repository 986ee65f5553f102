"""Setting how many hours of devices a project, or a tenant with all below it, may use, and taking
such a budget away."""

from collections.abc import Mapping
from copy import copy
from dataclasses import asdict, dataclass
from datetime import date, datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F

from controlplane.audit import services as audit
from controlplane.audit.services import Entry
from controlplane.kernel import hints
from controlplane.kernel.errors import Invalid, NotFound
from tenants import access
from tenants.access import Actor
from tenants.models import MAX_BUDGET_H, Budget, BudgetMode, Period, Project, Tenant
from tenants.services import quotas, trail
from tenants.services.enforcement import ACTOR, NAME
from tenants.services.quotas import VersionMismatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """`limit_h` device-hours. `starts_on` is the first day (UTC) of a budget for once, and
    `ends_on` the day after its last."""

    limit_h: int
    mode: BudgetMode
    starts_on: date | None = None
    ends_on: date | None = None


def as_set(
    *, actor: Actor, of: Project | Tenant, period: Period, terms: Terms, version: int | None
) -> Budget:
    """What `set_budget` would make of it, as a row that is not stored. Raises what that does."""
    quotas.authorize(actor, of)
    _check(period, terms)
    project, tenant = access.project_and_tenant(of)
    there = Budget.objects.filter(project=project, tenant=tenant, period=period).first()
    _check_version(there.version if there else 0, version)
    used_up_at = _still_used_up(there, terms) if there else None
    return Budget(
        project=project, tenant=tenant, period=period, **asdict(terms), used_up_at=used_up_at
    )


def _check_version(there: int, seen: int | None) -> None:
    if seen is not None and seen != there:
        raise VersionMismatch(f"The budget is at version {there} by now, not {seen}.")


def _still_used_up(budget: Budget, terms: Terms) -> datetime | None:
    """Since when work was stopped for it; None where that is over, as it is raised."""
    stays = terms.mode == BudgetMode.HARD and terms.limit_h <= budget.limit_h
    return budget.used_up_at if stays else None


def _check(period: Period, terms: Terms) -> None:
    if not 0 <= terms.limit_h <= MAX_BUDGET_H:
        raise Invalid(
            f"{terms.limit_h} is not between 0 and {MAX_BUDGET_H}.",
            pointer="/limit_h",
            code="out-of-range",
        )
    if period != Period.ONCE:
        for name in ("starts_on", "ends_on"):
            if getattr(terms, name) is not None:
                raise Invalid(
                    f"A budget for each {period} begins and ends with it: leave this out.",
                    pointer=f"/{name}",
                )
        return
    if terms.starts_on is None or terms.ends_on is None:
        name = "starts_on" if terms.starts_on is None else "ends_on"
        raise Invalid("A budget for once says its first day and the one after its last.",
                      pointer=f"/{name}", code="required")  # fmt: skip
    if terms.ends_on <= terms.starts_on:
        raise Invalid("It has to end after it begins.", pointer="/ends_on")


def set_budget(
    *,
    actor: Actor,
    of: Project | Tenant,
    period: Period,
    terms: Terms,
    at: datetime,
    version: int | None = None,
) -> Budget:
    """Make the budget of the project or tenant for such periods be this, as whoever may set its
    quotas.

    It holds for what was used in its period before, too. What runs goes on, whatever it is
    lowered to, unless it is to be hard: then the next cycle stops what runs under it on devices,
    if it is used up. Once that was done it takes more hours for anything to start in its period.
    `version` is the one the caller saw, 0 for none yet; None overwrites whatever is
    there. Raises NotFound or NotAllowed for the project, NotAllowed for a tenant, Invalid for a
    number out of range or days that are none, VersionMismatch when somebody edited it meanwhile.
    """
    quotas.authorize(actor, of)
    _check(period, terms)
    project, tenant = access.project_and_tenant(of)
    with transaction.atomic():
        budget, made = Budget.objects.select_for_update().get_or_create(
            project=project, tenant=tenant, period=period, defaults=asdict(terms)
        )
        _check_version(0 if made else budget.version, version)
        before = None if made else copy(budget)
        if before:
            Budget.objects.filter(id=budget.id).update(
                version=F("version") + 1,
                limit_h=terms.limit_h,
                mode=terms.mode,
                starts_on=terms.starts_on,
                ends_on=terms.ends_on,
                used_up_at=_still_used_up(budget, terms),
            )
            budget.refresh_from_db()
        entry = _entry("budget.set", budget, before=before, after=budget)
        trail.record(entry, actor=actor, at=at)
        hints.hint(hints.CYCLE)
    return budget


def remove(*, actor: Actor, budget: Budget, at: datetime) -> None:
    """Nobody is kept waiting by it any more; what was used stays counted.

    Raises NotFound when it is gone already, or for its project, NotAllowed.
    """
    quotas.authorize(actor, budget.owner)
    with transaction.atomic():
        row = Budget.objects.select_for_update().filter(id=budget.id).first()
        if row is None:
            raise NotFound("There is no such budget.")
        entry = _entry("budget.remove", row, before=row, after=None)
        row.delete()
        trail.record(entry, actor=actor, at=at)
        hints.hint(hints.CYCLE)


def mark_used_up(*, limits_h: Mapping[UUID, int], at: datetime) -> int:
    """Work is stopped for these budgets from now on; how many. One that has another limit by now,
    or stops nothing any more, is left as it is: the next plan looks at it anew. In the caller's
    transaction."""
    rows = Budget.objects.select_for_update(of=["self"]).select_related("project")
    found = [
        row
        for row in rows.filter(id__in=limits_h, mode=BudgetMode.HARD).order_by("id")
        if row.limit_h == limits_h[row.id]
    ]
    Budget.objects.filter(id__in=[row.id for row in found]).update(used_up_at=at)
    entries = [
        Entry(
            action="budget.used-up",
            target_type="budget",
            target_id=row.id,
            tenant_id=row.project.tenant_id if row.project else row.tenant_id,
            project_id=row.project_id,
            before={"used_up_at": row.used_up_at and row.used_up_at.isoformat()},
            after={"used_up_at": at.isoformat()},
        )
        for row in found
    ]
    audit.record(actor=ACTOR, actor_name=NAME, at=at, entries=entries)
    return len(found)


def _entry(action: str, of: Budget, *, before: Budget | None, after: Budget | None) -> Entry:
    return Entry(
        action=action,
        target_type="budget",
        target_id=of.id,
        tenant_id=of.project.tenant_id if of.project else of.tenant_id,
        project_id=of.project_id,
        before=_told(before) if before else {},
        after=_told(after) if after else {},
    )


def _told(budget: Budget) -> dict[str, object]:
    return {
        "period": budget.period,
        "limit_h": budget.limit_h,
        "mode": budget.mode,
        "starts_on": budget.starts_on and budget.starts_on.isoformat(),
        "ends_on": budget.ends_on and budget.ends_on.isoformat(),
        "version": budget.version,
    }
