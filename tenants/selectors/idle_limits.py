"""For how long a project's work may leave its devices unused: by its own word, else by that of
the nearest tenant above it that has one, else by the fleet's."""

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import connection

from tenants.models import Project

NEAREST = """
idle_limit (id, timeout_s, warning_s, by) AS (
    SELECT id, idle_timeout_s, idle_warning_s,
           CASE WHEN idle_timeout_s IS NOT NULL THEN name::text END
    FROM tenants_tenant WHERE parent_id IS NULL
  UNION ALL
    SELECT t.id, coalesce(t.idle_timeout_s, i.timeout_s), coalesce(t.idle_warning_s, i.warning_s),
           CASE WHEN t.idle_timeout_s IS NULL THEN i.by ELSE t.name::text END
    FROM tenants_tenant t JOIN idle_limit i ON i.id = t.parent_id)
"""
"""What each tenant says for its projects, and whose word that is; NULL: the fleet's. To stand
after WITH RECURSIVE."""
_OF_TENANT = (
    "WITH RECURSIVE "  # noqa: S608  # constants
    + NEAREST
    + "SELECT timeout_s, warning_s, by FROM idle_limit WHERE id = %s"
)


@dataclass(frozen=True, slots=True)
class IdleLimit:
    """After `timeout_s`, 0 is never, idle work is freed, and told `warning_s` before."""

    timeout_s: int
    warning_s: int


@dataclass(frozen=True, slots=True)
class InheritedLimit:
    """What the project would have without a word of its own. `by` "" is the fleet."""

    limit: IdleLimit
    by: str


def of_fleet() -> IdleLimit:
    """What holds where neither project nor tenant says anything."""
    return IdleLimit(settings.BERTH_IDLE_TIMEOUT_S, settings.BERTH_IDLE_WARNING_S)


def own(project: Project) -> IdleLimit | None:
    """What the project says itself."""
    if project.idle_timeout_s is None or project.idle_warning_s is None:
        return None
    return IdleLimit(project.idle_timeout_s, project.idle_warning_s)


def in_force(*, project: Project) -> IdleLimit:
    """Its own, else the inherited one. One query at most."""
    return own(project) or inherited(project=project).limit


def inherited(*, project: Project) -> InheritedLimit:
    """One query."""
    return said(tenant_id=project.tenant_id) or InheritedLimit(of_fleet(), "")


def said(*, tenant_id: UUID | None) -> InheritedLimit | None:
    """What the tenant, or the nearest above it, says; None where none does. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_OF_TENANT, [tenant_id])
        timeout_s, warning_s, by = cursor.fetchone() or (None, None, None)
    if timeout_s is None or warning_s is None:
        return None
    return InheritedLimit(IdleLimit(timeout_s, warning_s), by or "")
