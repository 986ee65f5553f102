"""Usage → past use by project, flavor and day. Written only here, by the ledger."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import NamedTuple
from uuid import UUID

from controlplane.kernel import statements
from controlplane.kernel.ids import uuid7s


class Interval(NamedTuple):
    """A usage interval that is to be stored, from `begins_at` up to before `ends_at`: aware, and
    the one before the other. The others are columns of its table."""

    project_id: UUID
    flavor_id: UUID
    cluster_id: UUID
    user_id: UUID
    placement_id: UUID
    workload_id: UUID
    amount_milli: int
    begins_at: datetime
    ends_at: datetime


def add(usages: Iterable[Interval]) -> None:
    """Add these intervals to what was used on the days (UTC) on which they began.

    In the caller's transaction, which stores them: so each of them counts once. Seconds are full
    ones of the clock, so that intervals which touch make up the time from first to last.
    """
    sums: Counter[tuple[date, UUID, UUID]] = Counter()
    for usage in usages:
        seconds = int(usage.ends_at.timestamp()) - int(usage.begins_at.timestamp())
        day = usage.begins_at.astimezone(UTC).date()
        sums[day, usage.project_id, usage.flavor_id] += usage.amount_milli * seconds
    # In one order, so that no two transactions wait for each other.
    rows = sorted((*key, milli_s) for key, milli_s in sums.items() if milli_s)
    if not rows:
        return
    days, projects, flavors, amounts = zip(*rows, strict=True)
    with statements.cursor() as cursor:
        cursor.execute(
            "INSERT INTO tenants_pastuse AS p (id, day, project_id, flavor_id, milli_s)"
            " SELECT * FROM unnest(%s::uuid[], %s::date[], %s::uuid[], %s::uuid[], %s::bigint[])"
            " ON CONFLICT (day, project_id, flavor_id)"
            " DO UPDATE SET milli_s = p.milli_s + excluded.milli_s",
            [uuid7s(len(rows)), list(days), list(projects), list(flavors), list(amounts)],
        )
