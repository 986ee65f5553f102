"""How long a project's work runs before it may be evicted: the shortest time that it and the
tenants above it say; where none says one, the fleet's (ADR 0103)."""

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import connection

from tenants.access import Place
from tenants.models import Project

_HELD = """least({0}.min_run_time_s, a.seconds),
    CASE WHEN {0}.min_run_time_s IS NULL OR {0}.min_run_time_s > a.seconds
         THEN a.by ELSE {0}.name::text END"""
IN_FORCE = f"""
granted_above (id, seconds, by) AS (
    SELECT id, min_run_time_s, CASE WHEN min_run_time_s IS NOT NULL THEN name::text END
    FROM tenants_tenant WHERE parent_id IS NULL
  UNION ALL
    SELECT t.id, {_HELD.format("t")}
    FROM tenants_tenant t JOIN granted_above a ON a.id = t.parent_id),
granted (id, seconds, by) AS (
    SELECT p.id, {_HELD.format("p")}
    FROM tenants_project p JOIN granted_above a ON a.id = p.tenant_id)
"""  # noqa: S608  # columns
"""What holds of each tenant (`granted_above`) and project (`granted`), and whose word that is;
NULL: the fleet's. To stand after WITH RECURSIVE."""
_OF = "WITH RECURSIVE " + IN_FORCE + "SELECT seconds, by FROM {} WHERE id = %s"  # noqa: S608  # constants


@dataclass(frozen=True, slots=True)
class HeldTime:
    """What holds, and by whose word; "" is the fleet."""

    seconds: int
    by: str


def fleet_s() -> int:
    """The fleet's: what holds where neither project nor tenant says anything."""
    seconds: int = settings.BERTH_MIN_RUN_TIME_S
    return seconds


def in_force(*, of: Place) -> HeldTime:
    """One query, none for the fleet."""
    found = None
    if isinstance(of, Project):
        found = _read("granted", of.id)
    elif of is not None:
        found = said(tenant_id=of.id)
    return found or HeldTime(fleet_s(), "")


def said(*, tenant_id: UUID | None) -> HeldTime | None:
    """What the tenant and those above it say together; None where none says anything. One
    query."""
    return _read("granted_above", tenant_id)


def _read(table: str, id: UUID | None) -> HeldTime | None:
    with connection.cursor() as cursor:
        cursor.execute(_OF.format(table), [id])
        seconds, by = cursor.fetchone() or (None, "")
    return None if seconds is None else HeldTime(seconds, by or "")
