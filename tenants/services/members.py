"""Granting and taking roles, as `access.ROLE_GRANTS` says. Nobody makes themself stronger."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from controlplane.audit.services import Entry
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed, NotFound
from tenants import access
from tenants.access import Action, Actor, Place
from tenants.models import Member, Project, Role, Tenant, User
from tenants.services import trail

"""Where a role is held; None is the whole fleet."""


def grant(*, actor: Actor, user: User, role: Role, place: Place, at: datetime) -> Member:
    """Give `user` a role at `place`; an existing one is left as it is.

    Raises NotFound when the actor does not see the place, NotAllowed when they may not give that
    role there, or would give themself what they may not do yet, Invalid for a service account of
    another place, for a role that none has, and for the account behind glass.
    """
    through = authorize(actor, place, role)
    if user.is_break_glass:
        raise Invalid(
            "The break-glass account owns and operates the fleet, and is nothing else: it needs no"
            " second factor.",
            pointer="/user",
        )
    if user.is_service:
        _check_serves(user, role, place)
    if user == actor.user:
        held = (access.ROLE_ACTIONS[Role(own.role)] for own in _memberships(actor, place))
        missing = access.ROLE_ACTIONS[role].difference(*held)
        if missing:
            names = ", ".join(sorted(missing))
            raise NotAllowed(f"Somebody else has to make you {role}: it would add {names}.")
    project, tenant = access.project_and_tenant(place)
    with transaction.atomic():
        member, made = Member.objects.get_or_create(
            user=user,
            role=role,
            tenant=tenant,
            project=project,
            group_role=None,
            defaults={
                "granted_by": actor.user,
                "granted_at": at,
                "givers": givers(actor, through),
            },
        )
        if made:
            _record(actor, "member.grant", member, at)
    return member


def named(*, actor: Actor, username: str, role: Role, place: Place) -> User:
    """Whom to give the role. Raises as `grant` first, for who exists is told to nobody else, then
    Invalid where nobody of that name may sign in, and it is no service account of the place."""
    authorize(actor, place, role)
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None or (user.is_service and user.service_place != place):
        raise Invalid("There is no such user.", pointer="/user", code="unknown-user")
    return user


def revoke(*, actor: Actor, member: Member, at: datetime) -> None:
    """Take a role back. Raises as `grant`, and Conflict for one that came by a group, and for the
    last owner of a tenant or the fleet and the last operator of the fleet, not counting who can't
    sign in any more and who is one by a group, as a provider may take that back any time."""
    place: Place = member.project or member.tenant
    role = Role(member.role)
    authorize(actor, place, role)
    if (of := member.group_role) is not None:
        raise Conflict(
            f"It came by the group {of.group!r} of {of.provider}: take the role from the group."
        )
    project, tenant = access.project_and_tenant(place)
    with transaction.atomic():
        if role in _never_vacant(place):
            holders = Member.objects.select_for_update(of=("self",)).filter(
                role=role,
                tenant=tenant,
                project=project,
                user__is_active=True,
                group_role=None,
            )
            if {holder.id for holder in holders} <= {member.id}:
                raise Conflict(f"The last {role} can't leave; make somebody else an {role} first.")
        deleted, _ = Member.objects.filter(id=member.id).delete()
        if not deleted:
            raise NotFound("There is no such member.")
        _record(actor, "member.revoke", member, at)


def _check_serves(account: User, role: Role, place: Place) -> None:
    if account.service_place != place:
        raise Invalid("A service account has roles at its own place alone.", pointer="/user")
    if role not in access.SERVICE_ROLES:
        able = " or ".join(access.SERVICE_ROLES)
        raise Invalid(f"A service account is {able}: it gives and decides nothing.",
                      pointer="/role", code="invalid-choice")  # fmt: skip


def _never_vacant(place: Place) -> frozenset[Role]:
    """Roles that somebody always holds there."""
    match place:
        case Project():
            return frozenset()
        case Tenant():
            return frozenset({Role.OWNER})
        case None:
            return frozenset({Role.OWNER, Role.OPERATOR})


def authorize(actor: Actor, place: Place, role: Role) -> Member:
    """By which membership they may give or take the role there: of several, the one that came
    about through the fewest. Raises as `grant`, but for oneself."""
    access.authorize_at(actor, Action.MANAGE_MEMBERS, place=place)
    held = _memberships(actor, place)
    able = [own for own in held if role in access.ROLE_GRANTS[Role(own.role)]]
    if not able:
        raise NotAllowed(f"Your role there does not permit to give or take: {role}.")
    return min(able, key=lambda own: (len(own.givers), own.id))


def givers(actor: Actor, through: Member) -> list[UUID]:
    """Through whom a role comes about that the actor gives by that membership."""
    before = [giver for giver in through.givers if giver != actor.user.id]
    return [actor.user.id, *before]


def _memberships(actor: Actor, place: Place) -> list[Member]:
    """The actor's at `place`: its own, inherited and fleet-wide."""
    match place:
        case Project():
            return actor.memberships_at(tenant_id=place.tenant_id, project_id=place.id)
        case Tenant():
            return actor.memberships_at(tenant_id=place.id)
        case None:
            return [m for m in actor.memberships if m.tenant_id is None and m.project_id is None]


def entry(action: str, member: Member) -> Entry:
    """What the audit is told of a role that was given or taken."""
    return Entry(
        action=action,
        target_type="member",
        target_id=member.id,
        tenant_id=member.project.tenant_id if member.project else member.tenant_id,
        project_id=member.project_id,
        after={"user": str(member.user_id), "role": member.role},
    )


def _record(actor: Actor, action: str, member: Member, at: datetime) -> None:
    trail.record(entry(action, member), actor=actor, at=at)
