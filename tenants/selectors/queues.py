"""Whose queues are closed: that of a tenant is so for all below it."""

from dataclasses import dataclass
from uuid import UUID

from django.db import connection

CLOSED = """
closed (id, above) AS (
    SELECT id, CASE WHEN queue_state = 'open' THEN '{}' ELSE ARRAY[id] END
    FROM tenants_tenant WHERE parent_id IS NULL
  UNION ALL
    SELECT t.id, CASE WHEN t.queue_state = 'open' THEN c.above ELSE t.id || c.above END
    FROM tenants_tenant t JOIN closed c ON c.id = t.parent_id)
"""
"""Of each tenant, which of itself and those above it are not open, the nearest first. To stand
after WITH RECURSIVE."""
_BY_TENANT = (
    "WITH RECURSIVE "  # constants
    + CLOSED
    + """
SELECT c.id, t.name, t.queue_state, t.queue_note
FROM closed c CROSS JOIN LATERAL unnest(c.above) WITH ORDINALITY AS up (id, nth)
JOIN tenants_tenant t ON t.id = up.id ORDER BY c.id, up.nth
"""
)


@dataclass(frozen=True, slots=True)
class ClosedTenant:
    """A tenant whose queue is held or draining, and why."""

    name: str
    state: str
    note: str


def closed_tenants() -> dict[UUID, tuple[ClosedTenant, ...]]:
    """By tenant, which of itself and those above it are not open, the nearest first; without those
    for which all are. One query."""
    found: dict[UUID, tuple[ClosedTenant, ...]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_BY_TENANT)
        for tenant, *above in cursor.fetchall():
            found[tenant] = (*found.get(tenant, ()), ClosedTenant(*above))
    return found
