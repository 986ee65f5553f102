"""For how long a project's work may leave its devices unused: the shortest time that it and the
tenants above it say, never being the longest; where none says one, the fleet's (ADR 0103)."""

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import connection

from tenants.access import Place
from tenants.models import MAX_IDLE_TIMEOUT_S, Project


def _held(own: str) -> str:
    """Of a row and what holds above it: the one of both that is shorter, its own where they are
    alike, for the sake of its warning."""
    never = MAX_IDLE_TIMEOUT_S + 1
    is_looser = (
        f"{own}.idle_timeout_s IS NULL OR coalesce(nullif({own}.idle_timeout_s, 0), {never})"
        f" > coalesce(nullif(a.timeout_s, 0), {never})"
    )
    return ", ".join(
        f"CASE WHEN {is_looser} THEN a.{above} ELSE {own}.{said} END"
        for above, said in (
            ("timeout_s", "idle_timeout_s"),
            ("warning_s", "idle_warning_s"),
            ("by", "name::text"),
        )
    )


IN_FORCE = f"""
idle_above (id, timeout_s, warning_s, by) AS (
    SELECT id, idle_timeout_s, idle_warning_s,
           CASE WHEN idle_timeout_s IS NOT NULL THEN name::text END
    FROM tenants_tenant WHERE parent_id IS NULL
  UNION ALL
    SELECT t.id, {_held("t")} FROM tenants_tenant t JOIN idle_above a ON a.id = t.parent_id),
idle_limit (id, timeout_s, warning_s, by) AS (
    SELECT p.id, {_held("p")} FROM tenants_project p JOIN idle_above a ON a.id = p.tenant_id)
"""  # noqa: S608  # columns
"""What holds of each tenant (`idle_above`) and project (`idle_limit`), and whose word that is;
NULL: the fleet's. To stand after WITH RECURSIVE."""
_OF = (
    "WITH RECURSIVE " + IN_FORCE + "SELECT timeout_s, warning_s, by FROM {} WHERE id = %s"  # noqa: S608  # constants
)


@dataclass(frozen=True, slots=True)
class IdleLimit:
    """After `timeout_s`, 0 is never, idle work is freed, and told `warning_s` before."""

    timeout_s: int
    warning_s: int


@dataclass(frozen=True, slots=True)
class HeldLimit:
    """What holds, and by whose word; "" is the fleet."""

    limit: IdleLimit
    by: str


def of_fleet() -> IdleLimit:
    """What holds where neither project nor tenant says anything."""
    return IdleLimit(settings.BERTH_IDLE_TIMEOUT_S, settings.BERTH_IDLE_WARNING_S)


def in_force(*, of: Place) -> HeldLimit:
    """One query, none for the fleet."""
    found = None
    if isinstance(of, Project):
        found = _read("idle_limit", of.id)
    elif of is not None:
        found = said(tenant_id=of.id)
    return found or HeldLimit(of_fleet(), "")


def said(*, tenant_id: UUID | None) -> HeldLimit | None:
    """What the tenant and those above it say together; None where none says anything. One
    query."""
    return _read("idle_above", tenant_id)


def _read(table: str, id: UUID | None) -> HeldLimit | None:
    with connection.cursor() as cursor:
        cursor.execute(_OF.format(table), [id])
        timeout_s, warning_s, by = cursor.fetchone() or (None, None, None)
    if timeout_s is None or warning_s is None:
        return None
    return HeldLimit(IdleLimit(timeout_s, warning_s), by or "")
