"""Keeping an amount of a flavor for a project in a window, and giving it up."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo, available_timezones

from django.db import transaction

from clusters.models import Flavor, FlavorKind
from controlplane.audit.services import Entry
from controlplane.kernel import hints, text
from controlplane.kernel.errors import Conflict, Invalid
from tenants import access
from tenants.access import Action, Actor
from tenants.models import LONGEST_WEEKLY, WEEK, Project, Quota, Reservation
from tenants.services import trail
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
    project: Project,
    flavor: Flavor,
    amount_milli: int,
    starts_at: datetime,
    ends_at: datetime,
    note: str,
    there_milli: int,
    at: datetime,
    weekly: Weekly | None = None,
) -> Reservation:
    """Keep `amount_milli` thousandths of the flavor for the project in [starts_at, ends_at), and
    if it is `weekly` as long in each week from then on. `there_milli` is what clusters have of it.

    From the next cycle on, work of others that might still run then does not start on it. What
    runs already is not stopped, and the project's quota stays as it is. A window may have begun.
    Raises NotFound or NotAllowed for the project, Invalid for an amount that it may not hold or
    that is not there, a window that is over or none, weeks that are too many or none, a note that
    is none.
    """
    access.authorize(actor, Action.EDIT_QUOTA, project=project)
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
    made = Reservation(
        project=project,
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
        rows = Reservation.objects.filter(project=project, flavor=flavor, cancelled_at=None)
        meanwhile = (
            other for other in rows.filter(Reservation.lasts_beyond(at)) if _meet(made, other)
        )
        _check_amount(project, flavor, amount_milli, meanwhile)
        _check_there(flavor, amount_milli, there_milli)
        made.save(force_insert=True)
        _record(actor, made, "reservation.make", at=at)
        hints.hint(hints.CYCLE)
    return made


def cancel(*, actor: Actor, reservation: Reservation, at: datetime) -> Reservation:
    """Keep nothing by it any more.

    Raises NotFound or NotAllowed for its project, Conflict when it is over or cancelled already.
    """
    access.authorize(actor, Action.EDIT_QUOTA, project=reservation.project)
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


def _meet(one: Reservation, other: Reservation) -> bool:
    """Whether both keep something at some time."""
    beyond = one.last_ends_at or one.ends_at
    return any(
        True
        for start, end in one.windows(after=one.starts_at, before=beyond)
        for _ in other.windows(after=start, before=end)
    )


def _check_amount(
    project: Project, flavor: Flavor, amount_milli: int, meanwhile: Iterable[Reservation]
) -> None:
    """What the project could never use, with what is kept for it `meanwhile`, would only keep
    others away. Locks the project's quota, so that two at once are checked one after the other."""
    rows = Quota.objects.filter(project=project, flavor=flavor)
    quota = rows.select_for_update(no_key=True).first()
    if quota is None:
        raise Invalid(
            f"{project.name} has no quota of {flavor.name}: give it some first.",
            pointer="/flavor",
            code="no-quota",
        )
    most = MAX_MILLI
    if quota.borrowing_limit_milli is not None:
        most = min(most, quota.nominal_milli + quota.borrowing_limit_milli)
    kept = sum(other.amount_milli for other in meanwhile)
    if 1 <= amount_milli <= most < kept + amount_milli:
        raise Invalid(
            f"{project.name} may hold {Decimal(most) / 1000:f} of {flavor.name} at most, and"
            f" {Decimal(kept) / 1000:f} are reserved for it in that time already.",
            pointer="/amount_milli",
            code="out-of-range",
        )
    if not 1 <= amount_milli <= most:
        raise Invalid(
            f"{project.name} may hold {Decimal(most) / 1000:f} of {flavor.name} at most, and"
            f" {Decimal(amount_milli) / 1000:f} is asked for; more than 0 and no more is right.",
            pointer="/amount_milli",
            code="out-of-range",
        )


def _check_there(flavor: Flavor, amount_milli: int, there_milli: int) -> None:
    if amount_milli > there_milli:
        raise Invalid(
            f"The clusters have {Decimal(there_milli) / 1000:f} {flavor.name}, and"
            f" {Decimal(amount_milli) / 1000:f} is asked for: what is not there can't be kept.",
            pointer="/amount_milli",
            code="out-of-range",
        )


def _record(actor: Actor, of: Reservation, action: str, *, at: datetime) -> None:
    trail.record(
        Entry(
            action=action,
            target_type="reservation",
            target_id=of.id,
            tenant_id=of.project.tenant_id,
            project_id=of.project_id,
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
