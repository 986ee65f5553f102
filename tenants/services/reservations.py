"""Keeping an amount of a flavor for a project in a window, and giving it up."""

from datetime import datetime
from decimal import Decimal

from django.db import transaction
from django.db.models import QuerySet, Sum

from clusters.models import Flavor
from controlplane.audit.services import Entry
from controlplane.kernel import hints, text
from controlplane.kernel.errors import Conflict, Invalid
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Project, Quota, Reservation
from tenants.services import trail
from tenants.services.quotas import MAX_MILLI

MAX_NOTE = 500


def make(
    *,
    actor: Actor,
    project: Project,
    flavor: Flavor,
    amount_milli: int,
    starts_at: datetime,
    ends_at: datetime,
    note: str,
    at: datetime,
) -> Reservation:
    """Keep `amount_milli` thousandths of the flavor for the project in [starts_at, ends_at).

    From the next cycle on, work of others that might still run then does not start on it. What
    runs already is not stopped, and the project's quota stays as it is. A window may have begun.
    Raises NotFound or NotAllowed for the project, Invalid for an amount that it may not hold, a
    window that is over or none, a note that is none.
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
    with transaction.atomic():
        meanwhile = Reservation.objects.filter(
            project=project,
            flavor=flavor,
            cancelled_at=None,
            starts_at__lt=ends_at,
            ends_at__gt=starts_at,
        )
        _check_amount(project, flavor, amount_milli, meanwhile)
        made = Reservation.objects.create(
            project=project,
            flavor=flavor,
            amount_milli=amount_milli,
            starts_at=starts_at,
            ends_at=ends_at,
            note=note,
            made_by=actor.user,
            made_at=at,
        )
        _record(actor, made, "reservation.make", at=at)
        hints.hint(hints.CYCLE)
    return made


def cancel(*, actor: Actor, reservation: Reservation, at: datetime) -> Reservation:
    """Keep nothing by it any more.

    Raises NotFound or NotAllowed for its project, Conflict when it is over or cancelled already.
    """
    access.authorize(actor, Action.EDIT_QUOTA, project=reservation.project)
    with transaction.atomic():
        live = Reservation.objects.filter(id=reservation.id, cancelled_at=None, ends_at__gt=at)
        if not live.update(cancelled_at=at):
            raise Conflict("The reservation is over already.")
        reservation.refresh_from_db()
        _record(actor, reservation, "reservation.cancel", at=at)
        hints.hint(hints.CYCLE)
    return reservation


def _check_amount(
    project: Project, flavor: Flavor, amount_milli: int, meanwhile: QuerySet[Reservation]
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
    kept = meanwhile.aggregate(milli=Sum("amount_milli"))["milli"] or 0
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
                "note": of.note,
            },
        ),
        actor=actor,
        at=at,
    )
