"""Naming who decides requests for an approver, for a while, and taking it back (ADR 0111)."""

from datetime import datetime

from django.db import transaction

from controlplane.audit.services import Entry
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed
from tenants import access
from tenants.access import Action, Actor
from tenants.models import LONGEST_DELEGATION, Delegation, Member, Project, User
from tenants.selectors import deciders
from tenants.services import trail

MAX_OPEN = 20
"""Delegations of one approver that are not over."""


def make(
    *, actor: Actor, delegate: str, from_at: datetime | None, until_at: datetime, at: datetime
) -> Delegation:
    """That the user of that name decides for the actor, from a moment on, None for at once, until
    another. They see all that the actor decides by a role of their own already.

    Raises NotAllowed for a token and for who holds no role that decides, Invalid for nobody, for
    oneself, for who does not see a place where the actor decides, for moments that are past, in
    the wrong order or too far apart, and when there are too many.
    """
    deciding = [m for m in actor.memberships if m.role in deciders.DECIDING]
    if Action.DECIDE_REQUEST not in actor.ceiling or not deciding:
        raise NotAllowed("Only who decides requests by a role of their own names a delegate.")
    user = User.objects.filter(username=delegate, is_active=True).first()
    if user is None or user == actor.user or user.is_service or user.is_break_glass:
        raise Invalid(
            "Name somebody else who may sign in, and decide.",
            pointer="/delegate",
            code="unknown-user",
        )
    begins = from_at or at
    if begins < at or not begins < until_at <= begins + LONGEST_DELEGATION:
        raise Invalid(
            f"It begins now or later, and ends within {LONGEST_DELEGATION.days} days of that.",
            pointer="/until_at",
            code="out-of-range",
        )
    _check_sees(access.actor_for(user=user), deciding)
    with transaction.atomic():
        if Delegation.objects.filter(
            approver=actor.user, withdrawn_at=None, until_at__gt=at
        ).count() >= MAX_OPEN:  # fmt: skip
            raise Invalid(f"You have {MAX_OPEN} delegations already: withdraw one.")
        made = Delegation.objects.create(
            approver=actor.user, delegate=user, from_at=begins, until_at=until_at
        )
        _record(actor, "delegation.make", made, at)
    return made


def withdraw(*, actor: Actor, delegation: Delegation, at: datetime) -> Delegation:
    """It holds no longer. Raises NotAllowed to all but who gave it, Conflict when it is over."""
    if delegation.approver_id != actor.user.id or Action.DECIDE_REQUEST not in actor.ceiling:
        raise NotAllowed("Only who gave it withdraws it.")
    with transaction.atomic():
        rows = Delegation.objects.filter(id=delegation.id, withdrawn_at=None, until_at__gt=at)
        if not rows.update(withdrawn_at=at):
            raise Conflict("It is over already.")
        delegation.refresh_from_db(fields=["withdrawn_at"])
        _record(actor, "delegation.withdraw", delegation, at)
    return delegation


def _check_sees(delegate: Actor, deciding: list[Member]) -> None:
    for member in deciding:
        place: Project | None = member.project
        if place is not None:
            roles = delegate.roles_at(tenant_id=place.tenant_id, project_id=place.id)
        elif member.tenant_id is not None:
            roles = delegate.roles_at(tenant_id=member.tenant_id)
        else:
            roles = delegate.fleet_roles
        if not roles:
            where = place or member.tenant or "the whole fleet"
            raise Invalid(
                f"{delegate.name} does not see {where}, where you decide: somebody has to give"
                " them a role there first.",
                pointer="/delegate",
                code="does-not-see",
            )


def _record(actor: Actor, action: str, delegation: Delegation, at: datetime) -> None:
    """Once where the approver decides, each, as those who own a place read its own audit; without
    any, for the fleet."""
    deciding = [m for m in actor.memberships if m.role in deciders.DECIDING]
    places = {access.ids_at(m.project or m.tenant) for m in deciding} or {(None, None)}
    entries = [
        Entry(
            action=action,
            target_type="delegation",
            target_id=delegation.id,
            tenant_id=tenant_id,
            project_id=project_id,
            after={
                "delegate": str(delegation.delegate_id),
                "from_at": delegation.from_at.isoformat(),
                "until_at": delegation.until_at.isoformat(),
            },
        )
        for tenant_id, project_id in sorted(places, key=str)
    ]
    trail.record(*entries, actor=actor, at=at)
