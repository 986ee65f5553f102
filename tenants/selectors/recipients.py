"""Who is told of what happens in a project: people with an address, by their roles."""

from collections.abc import Iterable

from django.db.models import QuerySet

from tenants.access import ROLE_ACTIONS, Action
from tenants.models import Project, Role, User

_WITH_ROLES = """
WITH RECURSIVE above (id, parent_id) AS (
    SELECT id, parent_id FROM tenants_tenant WHERE id = %(tenant)s
  UNION ALL
    SELECT t.id, t.parent_id FROM tenants_tenant t JOIN above a ON a.parent_id = t.id)
SELECT m.user_id AS id FROM tenants_member m
WHERE m.role = ANY(%(roles)s)
  AND (m.project_id = %(project)s OR m.tenant_id IN (SELECT id FROM above)
       OR (%(fleet)s AND m.project_id IS NULL AND m.tenant_id IS NULL))
"""


def deciders(project: Project) -> QuerySet[User]:
    """Who may decide what is asked for there, by a role at it or anywhere above."""
    roles = [role for role, actions in ROLE_ACTIONS.items() if Action.DECIDE_REQUEST in actions]
    return _told(project, roles, fleet=True)


def owners(project: Project) -> QuerySet[User]:
    """Its owners and those of the tenants above it. Those of the whole fleet own all of it, and
    would be told of everything."""
    return _told(project, [Role.OWNER], fleet=False)


def _told(project: Project, roles: Iterable[Role], *, fleet: bool) -> QuerySet[User]:
    found = User.objects.raw(
        _WITH_ROLES,
        {
            "tenant": project.tenant_id,
            "project": project.id,
            "roles": [role.value for role in roles],
            "fleet": fleet,
        },
    )
    return User.objects.filter(id__in={user.id for user in found}).order_by("id")
