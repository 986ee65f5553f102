"""Which groups of a provider have which roles: who may give a role says so of a group too."""

from datetime import datetime

from django.conf import settings
from django.db import transaction

from controlplane.audit.services import Entry
from controlplane.kernel import text
from controlplane.kernel.errors import Invalid, NotFound
from tenants import access
from tenants.access import Actor, Place
from tenants.models import MAX_GROUP, GroupRole, Member, Role
from tenants.services import members, trail


def add(
    *, actor: Actor, provider: str, group: str, role: Role, place: Place, at: datetime
) -> GroupRole:
    """From their next sign-in on, whoever is in the group has the role there, but for the actor:
    nobody makes themself stronger. One that is there is left as it is.

    Raises NotFound and NotAllowed as `members.grant`, Invalid for a provider that tells no groups
    and for what no group can be called.
    """
    through = members.authorize(actor, place, role)
    if provider not in providers_with_groups():
        raise Invalid("No such provider tells groups.", pointer="/provider", code="unknown")
    fault = text.fault(group)
    if fault or not 1 <= len(group) <= MAX_GROUP:
        message = f"{fault}." if fault else f"A group's name has 1 to {MAX_GROUP} characters."
        code = "bad-character" if fault else "invalid"
        raise Invalid(message, pointer="/group", code=code)
    project, tenant = access.project_and_tenant(place)
    with transaction.atomic():
        made, is_new = GroupRole.objects.get_or_create(
            provider=provider,
            group=group,
            role=role,
            tenant=tenant,
            project=project,
            defaults={
                "made_by": actor.user,
                "made_at": at,
                "givers": members.givers(actor, through)[1:],
            },
        )
        if is_new:
            trail.record(_entry("group-role.add", made), actor=actor, at=at)
    return made


def remove(*, actor: Actor, group_role: GroupRole, at: datetime) -> int:
    """Take it away, and at once the roles that came by it; of how many people.

    Raises as `add`, and NotFound for one that is gone.
    """
    members.authorize(actor, group_role.project or group_role.tenant, Role(group_role.role))
    with transaction.atomic():
        locked = GroupRole.objects.select_for_update().filter(id=group_role.id)
        if not locked.exists():
            raise NotFound("There is no such role of a group.")
        held = list(Member.objects.filter(group_role=group_role))
        Member.objects.filter(group_role=group_role).delete()
        GroupRole.objects.filter(id=group_role.id).delete()
        trail.record(
            *(members.entry("member.revoke", each) for each in held),
            _entry("group-role.remove", group_role),
            actor=actor,
            at=at,
        )
    return len(held)


def providers_with_groups() -> dict[str, str]:
    """Name → label of those that tell groups."""
    found = settings.BERTH_PROVIDERS.values()
    return {each.name: each.label for each in found if each.tells_groups}


def _entry(action: str, of: GroupRole) -> Entry:
    return Entry(
        action,
        "group-role",
        of.id,
        tenant_id=of.project.tenant_id if of.project else of.tenant_id,
        project_id=of.project_id,
        after={"provider": of.provider, "group": of.group, "role": of.role},
    )
