"""How long a project's work runs before it may be evicted: by its own word, else by that of the
nearest tenant above it that has one, else by the fleet's."""

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import connection

from tenants.models import Project

GRANTED = """
WITH RECURSIVE granted (id, seconds, by) AS (
    SELECT id, min_run_time_s, CASE WHEN min_run_time_s IS NOT NULL THEN name::text END
    FROM tenants_tenant WHERE parent_id IS NULL
  UNION ALL
    SELECT t.id, coalesce(t.min_run_time_s, g.seconds),
           CASE WHEN t.min_run_time_s IS NULL THEN g.by ELSE t.name::text END
    FROM tenants_tenant t JOIN granted g ON g.id = t.parent_id)
"""
"""What each tenant grants its projects, and whose word that is; NULL: the fleet's."""
_OF_TENANT = GRANTED + "SELECT seconds, by FROM granted WHERE id = %s"  # noqa: S608  # constants


@dataclass(frozen=True, slots=True)
class Inherited:
    """What the project would have without a word of its own. `by` "" is the fleet."""

    seconds: int
    by: str


def fleet_s() -> int:
    """The fleet's: what holds where neither project nor tenant says anything."""
    seconds: int = settings.BERTH_MIN_RUN_TIME_S
    return seconds


def in_force_s(*, project: Project) -> int:
    """Its own, else the inherited one. One query at most."""
    own = project.min_run_time_s
    return inherited(project=project).seconds if own is None else own


def inherited(*, project: Project) -> Inherited:
    """One query."""
    return said(tenant_id=project.tenant_id) or Inherited(fleet_s(), "")


def said(*, tenant_id: UUID | None) -> Inherited | None:
    """What the tenant, or the nearest above it, says; None where none does. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_OF_TENANT, [tenant_id])
        seconds, by = cursor.fetchone() or (None, "")
    return None if seconds is None else Inherited(seconds, by or "")
