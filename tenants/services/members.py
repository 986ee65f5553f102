"""Granting and taking roles. Nobody grants more than they hold at that place."""

from datetime import datetime

from django.db import transaction

from controlplane.audit import services as audit
from controlplane.kernel.errors import Conflict, NotAllowed, NotFound
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Member, Project, Role, Tenant, User

type Place = Project | Tenant | None
"""Where a role is held; None is the whole fleet."""


def grant(*, actor: Actor, user: User, role: Role, place: Place, at: datetime) -> Member:
    """Give `user` a role at `place`; an existing one is left as it is.

    Raises NotFound when the actor does not see the place, NotAllowed when they may not manage
    members there or the role permits what they may not do themselves.
    """
    _authorize(actor, place)
    missing = access.ROLE_ACTIONS[role] - _held(actor, place)
    if missing:
        names = ", ".join(sorted(missing))
        raise NotAllowed(f"You can't grant {role}: you don't hold {names} there.")
    with transaction.atomic():
        member, made = Member.objects.get_or_create(
            user=user, role=role, tenant=_tenant(place), project=_project(place)
        )
        if made:
            _record(actor, "member.grant", member, at)
    return member


def revoke(*, actor: Actor, member: Member, at: datetime) -> None:
    """Take a role back. Raises as `grant`, and Conflict for the last owner of a tenant or
    fleet."""
    place: Place = member.project or member.tenant
    _authorize(actor, place)
    if access.ROLE_ACTIONS[Role(member.role)] - _held(actor, place):
        raise NotAllowed("You can't take back a role that permits more than you may do there.")
    with transaction.atomic():
        if member.role == Role.OWNER and not isinstance(place, Project):
            owners = Member.objects.select_for_update().filter(
                role=Role.OWNER, tenant=_tenant(place), project=_project(place)
            )
            if {owner.id for owner in owners} <= {member.id}:
                raise Conflict("The last owner can't leave; make somebody else an owner first.")
        deleted, _ = Member.objects.filter(id=member.id).delete()
        if not deleted:
            raise NotFound("There is no such member.")
        _record(actor, "member.revoke", member, at)


def _authorize(actor: Actor, place: Place) -> None:
    match place:
        case Project():
            access.authorize(actor, Action.MANAGE_MEMBERS, project=place)
        case Tenant():
            access.authorize_tenant(actor, Action.MANAGE_MEMBERS, tenant=place)
        case None:
            access.authorize_fleet(actor, Action.MANAGE_MEMBERS)


def _held(actor: Actor, place: Place) -> frozenset[Action]:
    """All that the actor's roles permit at `place`."""
    match place:
        case Project():
            roles = actor.roles_at(tenant_id=place.tenant_id, project_id=place.id)
        case Tenant():
            roles = actor.roles_at(tenant_id=place.id)
        case None:
            roles = actor.fleet_roles
    return frozenset().union(*(access.ROLE_ACTIONS[role] for role in roles))


def _tenant(place: Place) -> Tenant | None:
    return place if isinstance(place, Tenant) else None


def _project(place: Place) -> Project | None:
    return place if isinstance(place, Project) else None


def _record(actor: Actor, action: str, member: Member, at: datetime) -> None:
    audit.record(
        actor=actor.label,
        actor_name=actor.name,
        at=at,
        entries=[
            audit.Entry(
                action=action,
                target_type="member",
                target_id=member.id,
                tenant_id=member.project.tenant_id if member.project else member.tenant_id,
                project_id=member.project_id,
                after={"user": str(member.user_id), "role": member.role},
            )
        ],
    )
