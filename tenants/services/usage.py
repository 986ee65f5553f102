"""What projects hold of their quotas now. Written only here, in the transactions that place and
release; a trigger refuses what would pass the limits."""

from collections.abc import Mapping
from uuid import UUID

from django.db import connection

type Amounts = Mapping[tuple[UUID, UUID], int]
"""(project, flavor) → thousandths of the flavor; negative gives back."""


class MissingQuota(Exception):
    """Usage of a flavor for which the project has no quota row: it was deleted since the plan."""


def lock(amounts: Amounts) -> None:
    """Lock the quota rows in id order, before any workload row: the order all writers keep."""
    if not amounts:
        return
    projects, flavors = zip(*amounts, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM tenants_quota WHERE (project_id, flavor_id) IN"
            " (SELECT * FROM unnest(%s::uuid[], %s::uuid[])) ORDER BY id FOR NO KEY UPDATE",
            [list(projects), list(flavors)],
        )


def add(amounts: Amounts) -> None:
    """Add to the used amounts, in the caller's transaction.

    Raises IntegrityError (constraint `quota_within_limit`, `quota_within_tenant`,
    `quota_within_fleet` or `quota_amounts_in_range`) when a limit would be passed, MissingQuota
    when there is no row.
    """
    moved = {key: amount for key, amount in amounts.items() if amount}
    if not moved:
        return
    projects, flavors = zip(*moved, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tenants_quota q SET used_milli = q.used_milli + a.amount"
            " FROM unnest(%s::uuid[], %s::uuid[], %s::bigint[]) AS a(project, flavor, amount)"
            " WHERE q.project_id = a.project AND q.flavor_id = a.flavor"
            " RETURNING q.project_id, q.flavor_id",
            [list(projects), list(flavors), list(moved.values())],
        )
        missing = sorted(moved.keys() - set(cursor.fetchall()))
    if missing:
        raise MissingQuota(
            "; ".join(f"project {p} has no quota of flavor {f}" for p, f in missing)
        )
