"""What projects hold of their quotas now. Written only here, in the transactions that place and
release; a trigger refuses what would pass the limits."""

from collections.abc import Mapping
from uuid import UUID

from controlplane.kernel import statements
from tenants.models import Quota

type Amounts = Mapping[tuple[UUID, UUID], int]
"""(project, flavor) → thousandths of the flavor; negative gives back."""


MAX_MILLI = 10**12
"""The most that a quota may be."""


class MissingQuota(Exception):
    """Usage of a flavor for which the project has no quota row: it was deleted since the plan."""


_ASKED = "unnest(%s::uuid[], %s::uuid[], %s::bigint[]) AS asked(project, flavor, amount)"
_CHARGED = f"""
SELECT project, flavor, amount FROM {_ASKED} UNION ALL
SELECT project, whole_id, amount * milli / 1000 FROM {_ASKED}
JOIN clusters_flavorpart ON part_id = flavor
"""  # noqa: S608  # constants
_LOCK = f"""
SELECT 1 FROM tenants_quota WHERE (project_id, flavor_id) IN
(SELECT project, flavor FROM ({_CHARGED})) ORDER BY id FOR NO KEY UPDATE
"""  # noqa: S608  # constants
_ADD = f"""
UPDATE tenants_quota q SET used_milli = q.used_milli + a.amount
FROM (SELECT project, flavor, sum(amount)::bigint AS amount FROM ({_CHARGED}) GROUP BY 1, 2) a
WHERE q.project_id = a.project AND q.flavor_id = a.flavor
RETURNING q.project_id, q.flavor_id
"""  # noqa: S608  # constants


def lock(amounts: Amounts) -> None:
    """Lock the quota rows, their models' too, in id order, before any workload row: the order all
    writers keep."""
    if not amounts:
        return
    with statements.cursor() as cursor:
        cursor.execute(_LOCK, 2 * _columns(amounts))


def add(amounts: Amounts) -> None:
    """Add to the used amounts, in the caller's transaction, and to those of the model where the
    project has a quota of it.

    Raises IntegrityError (constraint `quota_within_limit`, `quota_within_tenant`,
    `quota_within_fleet` or `quota_amounts_in_range`) when a limit would be passed, MissingQuota
    when there is no row.
    """
    moved = {key: amount for key, amount in amounts.items() if amount}
    if not moved:
        return
    with statements.cursor() as cursor:
        cursor.execute(_ADD, 2 * _columns(moved))
        missing = sorted(moved.keys() - set(cursor.fetchall()))
    if missing:
        raise MissingQuota(
            "; ".join(f"project {p} has no quota of flavor {f}" for p, f in missing)
        )


def count(quota: Quota) -> None:
    """Let a quota of a model, made just now, tell what the project holds already; even more than
    it grants, as of one that is cut. In the caller's transaction."""
    with statements.cursor() as cursor:
        # Locked first, so that what others place or release meanwhile is seen, or sees the row.
        cursor.execute(
            "SELECT 1 FROM tenants_quota WHERE project_id = %(project)s AND flavor_id IN"
            " (SELECT part_id FROM clusters_flavorpart WHERE whole_id = %(flavor)s)"
            " ORDER BY id FOR NO KEY UPDATE",
            {"project": quota.project_id, "flavor": quota.flavor_id},
        )
        # The law is of what grows: so it grows under a quota that is large enough, for a moment.
        cursor.execute(
            "UPDATE tenants_quota SET nominal_milli = %(most)s, used_milli ="
            " (SELECT coalesce(sum(q.used_milli * p.milli / 1000), 0)::bigint FROM tenants_quota q"
            "  JOIN clusters_flavorpart p ON p.part_id = q.flavor_id"
            "  WHERE q.project_id = %(project)s AND p.whole_id = %(flavor)s) WHERE id = %(id)s",
            {
                "most": MAX_MILLI,
                "project": quota.project_id,
                "flavor": quota.flavor_id,
                "id": quota.id,
            },
        )
        cursor.execute(
            "UPDATE tenants_quota SET nominal_milli = %s WHERE id = %s",
            [quota.nominal_milli, quota.id],
        )
    quota.refresh_from_db(fields=["used_milli"])


def _columns(amounts: Amounts) -> list[list[object]]:
    projects, flavors = zip(*amounts, strict=True)
    return [list(projects), list(flavors), list(amounts.values())]
