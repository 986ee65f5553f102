"""Keeping an amount of a flavor for a project or a tenant in a window, and giving it up."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import accumulate
from zoneinfo import ZoneInfo, available_timezones

from django.db import transaction
from django.db.models import Q, QuerySet, Sum

from clusters.models import Flavor, FlavorKind
from controlplane.audit.services import Entry
from controlplane.kernel import hints, text
from controlplane.kernel.errors import Conflict, Invalid
from tenants import access
from tenants.access import Action, Actor
from tenants.models import LONGEST_WEEKLY, WEEK, Project, Quota, Reservation, Tenant, TenantQuota
from tenants.services import quotas, trail
from tenants.services.quotas import MAX_MILLI

MAX_NOTE = 500
MOST_WEEKS = 104


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekly:
    """Each week at the same hour of the zone's clocks (an IANA name), the last time on `until` or
    before."""

    zone: str
    until: date


def make(
    *,
    actor: Actor,
    of: Project | Tenant,
    flavor: Flavor,
    amount_milli: int,
    starts_at: datetime,
    ends_at: datetime,
    note: str,
    there_milli: int,
    at: datetime,
    weekly: Weekly | None = None,
) -> Reservation:
    """Keep `amount_milli` thousandths of the flavor for the project, or for all below the tenant
    together, in [starts_at, ends_at), and if it is `weekly` as long in each week from then on.
    `there_milli` is what clusters have of it.

    From the next cycle on, work of others that might still run then does not start on it. What
    runs already is not stopped, and quota stays as it is. A window may have begun. Raises NotFound
    or NotAllowed for the project, NotAllowed for a tenant, Invalid for an amount that may not be
    held there or that is not there, a window that is over or none, weeks that are too many or
    none, a note that is none.
    """
    quotas.authorize(actor, of)
    note = note.strip()
    fault = text.fault(note)
    if fault:
        raise Invalid(fault, pointer="/note", code="bad-character")
    if len(note) > MAX_NOTE:
        raise Invalid(f"A note has at most {MAX_NOTE} characters.", pointer="/note")
    if ends_at <= starts_at:
        raise Invalid("It has to end after it begins.", pointer="/ends_at")
    if ends_at <= at:
        raise Invalid("It has to end in the future.", pointer="/ends_at")
    if flavor.kind == FlavorKind.MODEL:
        raise Invalid(
            f"{flavor.name} is a quota over all of {flavor.model}: reserve what work asks for.",
            pointer="/flavor",
            code="wrong-flavor",
        )
    project, tenant = access.project_and_tenant(of)
    made = Reservation(
        project=project,
        tenant=tenant,
        flavor=flavor,
        amount_milli=amount_milli,
        starts_at=starts_at,
        ends_at=ends_at,
        note=note,
        made_by=actor.user,
        made_at=at,
        zone=weekly.zone if weekly else "",
        last_ends_at=_last_end(starts_at, ends_at, weekly) if weekly else None,
    )
    with transaction.atomic():
        _check_amount(actor, made, at)
        _check_there(flavor, amount_milli, there_milli)
        made.save(force_insert=True)
        _record(actor, made, "reservation.make", at=at)
        hints.hint(hints.CYCLE)
    return made


def cancel(*, actor: Actor, reservation: Reservation, at: datetime) -> Reservation:
    """Keep nothing by it any more.

    Raises NotFound or NotAllowed as `make` does, Conflict when it is over or cancelled already.
    """
    quotas.authorize(actor, reservation.owner)
    with transaction.atomic():
        live = Reservation.objects.filter(
            Reservation.lasts_beyond(at), id=reservation.id, cancelled_at=None
        )
        if not live.update(cancelled_at=at):
            raise Conflict("The reservation is over already.")
        reservation.refresh_from_db()
        _record(actor, reservation, "reservation.cancel", at=at)
        hints.hint(hints.CYCLE)
    return reservation


def _last_end(starts_at: datetime, ends_at: datetime, weekly: Weekly) -> datetime:
    """When the last of its windows ends."""
    if weekly.zone not in available_timezones():
        raise Invalid(f"{weekly.zone!r} is no time zone; Europe/Berlin is one.", pointer="/zone")
    if ends_at - starts_at > LONGEST_WEEKLY:
        raise Invalid("A weekly one lasts six days at most.", pointer="/ends_at")
    local = starts_at.astimezone(ZoneInfo(weekly.zone)).replace(tzinfo=None)
    weeks = (weekly.until - local.date()) // WEEK
    if not 0 <= weeks <= MOST_WEEKS:
        raise Invalid(
            f"{weekly.until} is not between the day on which it begins, {local.date()}, and"
            f" {MOST_WEEKS} weeks later.",
            pointer="/weekly_until",
            code="out-of-range",
        )
    if not weeks:
        return ends_at
    last = (local + weeks * WEEK).replace(tzinfo=ZoneInfo(weekly.zone))
    return last.astimezone(UTC) + (ends_at - starts_at)


def _most_kept(made: Reservation, rows: Iterable[Reservation]) -> int:
    """The most that these keep together at one moment in which it does, too."""
    changes: list[tuple[datetime, int]] = []
    for start, end in made.windows(after=made.starts_at, before=made.last_ends_at or made.ends_at):
        for row in rows:
            for begins, ends in row.windows(after=start, before=end):
                changes += [
                    (max(start, begins), row.amount_milli),
                    (min(end, ends), -row.amount_milli),
                ]
    # Of one moment what ends comes first: a window holds up to its end, and not then.
    return max(accumulate((amount for _, amount in sorted(changes)), initial=0))


def _check_amount(actor: Actor, made: Reservation, at: datetime) -> None:
    """What could never be used, by its owner or within a tenant above that, with all that is kept
    there in that time, would only keep others away."""
    flavor, amount = made.flavor, made.amount_milli
    for place, most in _bounds(actor, made.owner, flavor):
        if not 1 <= amount <= most:
            raise Invalid(
                f"{place.name} may hold {Decimal(most) / 1000:f} of {flavor.name} at most, and"
                f" {Decimal(amount) / 1000:f} is asked for; more than 0 and no more is right.",
                pointer="/amount_milli",
                code="out-of-range",
            )
        rows = _within(actor, place).filter(
            Reservation.lasts_beyond(max(at, made.starts_at)),
            flavor=flavor,
            starts_at__lt=made.last_ends_at or made.ends_at,
        )
        kept = _most_kept(made, list(rows))
        if kept + amount > most:
            # What its neighbours reserve is told to nobody who sees the project alone.
            told = (
                f"{Decimal(kept) / 1000:f} are reserved for it in that time already"
                if access.allowed_at(actor, Action.VIEW, place=place)
                else "not as much of that is left in that time"
            )
            raise Invalid(
                f"{place.name} may hold {Decimal(most) / 1000:f} of {flavor.name} at most, and"
                f" {told}.",
                pointer="/amount_milli",
                code="out-of-range",
            )


def _within(actor: Actor, place: Project | Tenant) -> QuerySet[Reservation]:
    """Those of it and of all below it that are not cancelled."""
    rows = Reservation.objects.filter(cancelled_at=None)
    if isinstance(place, Project):
        return rows.filter(project=place)
    below = actor.tenants_below(place.id)
    return rows.filter(Q(tenant__in=below) | Q(project__tenant__in=below))


def _bounds(
    actor: Actor, of: Project | Tenant, flavor: Flavor
) -> Iterator[tuple[Project | Tenant, int]]:
    """How much of the flavor it may hold at most, and each tenant above it that has a limit.

    Of a project it is its nominal quota and what it may borrow; of a tenant all that is nominal in
    it and below it and what it may borrow: more is never held there, be it lent or not. Locks
    those quotas, so that two at once are checked one after the other. Raises Invalid where nobody
    may hold any.
    """
    if isinstance(of, Project):
        rows = Quota.objects.filter(project=of, flavor=flavor)
        own = rows.select_for_update(no_key=True).first()
        if own is None:
            raise _no_quota(f"{of.name} has no quota of {flavor.name}: give it some first.")
        limit = own.borrowing_limit_milli
        yield of, MAX_MILLI if limit is None else min(MAX_MILLI, own.nominal_milli + limit)
    elif not _quotas_below(actor, of, flavor).exists():
        raise _no_quota(
            f"No project of {of.name} has quota of {flavor.name}: give one some first."
        )
    above = list(actor.tenants_above(of.tenant_id if isinstance(of, Project) else of.id))
    limited = (
        TenantQuota.objects.filter(
            tenant__in=above, flavor=flavor, borrowing_limit_milli__isnull=False
        )
        .select_related("tenant")
        .order_by("id")
        .select_for_update(no_key=True, of=["self"])
    )
    limits = {row.tenant_id: row for row in limited}
    if isinstance(of, Tenant) and of.id not in limits:
        yield of, MAX_MILLI
    for row in (limits[id] for id in above if id in limits):
        departments = TenantQuota.objects.filter(
            tenant__in=actor.tenants_below(row.tenant_id), flavor=flavor
        )
        nominal = _nominal(departments) + _nominal(_quotas_below(actor, row.tenant, flavor))
        yield row.tenant, min(MAX_MILLI, nominal + (row.borrowing_limit_milli or 0))


def _no_quota(message: str) -> Invalid:
    return Invalid(message, pointer="/flavor", code="no-quota")


def _quotas_below(actor: Actor, tenant: Tenant, flavor: Flavor) -> QuerySet[Quota]:
    return Quota.objects.filter(project__tenant__in=actor.tenants_below(tenant.id), flavor=flavor)


def _nominal(rows: QuerySet[Quota] | QuerySet[TenantQuota]) -> int:
    found: int | None = rows.aggregate(sum=Sum("nominal_milli"))["sum"]
    return int(found or 0)


def _check_there(flavor: Flavor, amount_milli: int, there_milli: int) -> None:
    if amount_milli > there_milli:
        raise Invalid(
            f"The clusters have {Decimal(there_milli) / 1000:f} {flavor.name}, and"
            f" {Decimal(amount_milli) / 1000:f} is asked for: what is not there can't be kept.",
            pointer="/amount_milli",
            code="out-of-range",
        )


def _record(actor: Actor, of: Reservation, action: str, *, at: datetime) -> None:
    tenant_id, project_id = access.ids_at(of.owner)
    trail.record(
        Entry(
            action=action,
            target_type="reservation",
            target_id=of.id,
            tenant_id=tenant_id,
            project_id=project_id,
            after={
                "flavor": str(of.flavor_id),
                "amount_milli": of.amount_milli,
                "starts_at": of.starts_at.isoformat(),
                "ends_at": of.ends_at.isoformat(),
                "zone": of.zone,
                "last_ends_at": of.last_ends_at.isoformat() if of.last_ends_at else None,
                "note": of.note,
            },
        ),
        actor=actor,
        at=at,
    )
