"""What a replay came to, read from the database: counts, sums, times. Reads only.

Times are in seconds of the trace's clock, amounts of GPUs in thousandths.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from controlplane.trace.fleet import CPU, TENANTS
from scheduler.selectors.fleet import rows

type Row = tuple[Any, ...]  # Any: a database row of mixed columns

_LIVE = ("PENDING", "ADMITTED", "BOUND", "RUNNING", "PREEMPTING", "CANCELLING")


def states() -> dict[str, int]:
    """Workloads by state."""
    return dict(rows("SELECT state, count(*) FROM scheduler_workload GROUP BY state"))


def unfinished(counted: dict[str, int]) -> int:
    return sum(counted.get(state, 0) for state in _LIVE)


def bound(counted: dict[str, int]) -> int:
    """Workloads that have come at least as far as BOUND."""
    waiting = counted.get("PENDING", 0) + counted.get("ADMITTED", 0)
    return sum(counted.values()) - waiting


def devices() -> int:
    """Devices that have been reported, on clusters that take work."""
    found = rows(
        "SELECT count(*) FROM clusters_device d JOIN clusters_node n ON n.id = d.node_id"
        " JOIN clusters_cluster c ON c.id = n.cluster_id WHERE d.gone_at IS NULL AND d.usable"
        " AND c.state = 'active'"
    )
    return int(found[0][0])


@dataclass(frozen=True, slots=True)
class Times:
    """When the first workload was submitted, the last bound, the last pod released."""

    submitted_at: datetime
    bound_at: datetime
    released_at: datetime


def times() -> Times:
    found = rows(
        "SELECT (SELECT min(submitted_at) FROM scheduler_workload),"
        " (SELECT max(at) FROM scheduler_workloadevent WHERE kind = 'state' AND after = 'BOUND'),"
        " (SELECT max(released_at) FROM scheduler_placement)"
    )
    return Times(*found[0])


def reached(state: str) -> int:
    """Workloads that have been in that state."""
    found = rows(
        "SELECT count(DISTINCT workload_id) FROM scheduler_workloadevent"
        " WHERE kind = 'state' AND after = %s",
        [state],
    )
    return int(found[0][0])


_HELD = """
SELECT g.at, coalesce(sum(p.amount_milli), 0)::bigint,
       coalesce(sum(p.amount_milli) FILTER (WHERE p.started_at <= g.at), 0)::bigint
FROM unnest(%s::timestamptz[]) AS g(at)
LEFT JOIN (SELECT p.*, f.kind FROM scheduler_placement p
           JOIN clusters_flavor f ON f.id = p.flavor_id WHERE f.kind <> 'cpu') p
  ON p.created_at <= g.at AND (p.released_at IS NULL OR p.released_at > g.at)
GROUP BY g.at ORDER BY g.at
"""


def held(moments: Sequence[datetime]) -> list[Row]:
    """(moment, GPU thousandths held, of those running) for each moment."""
    return rows(_HELD, [list(moments)])


def cycles() -> list[Row]:
    """(load, plan, apply) in milliseconds and (pending, admitted) of each cycle."""
    return rows(
        "SELECT load_ms, plan_ms, apply_ms, pending_count, admitted_count"
        " FROM scheduler_cyclerecord ORDER BY id"
    )


_SPEND = """
SELECT t.slug, f.name = %s, count(DISTINCT u.placement_id), sum(u.units)::numeric,
       coalesce(sum(c.amount), 0)
FROM (SELECT id, project_id, flavor_id, placement_id, amount_milli::numeric
             * (extract(epoch FROM upper(during) - lower(during)) * 1000000)::bigint AS units
      FROM tenants_usageinterval) u
JOIN tenants_project p ON p.id = u.project_id JOIN tenants_tenant t ON t.id = p.tenant_id
JOIN clusters_flavor f ON f.id = u.flavor_id
LEFT JOIN (SELECT usage_id, sum(amount) AS amount FROM tenants_charge GROUP BY usage_id) c
  ON c.usage_id = u.id
GROUP BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class Spend:
    """Of one tenant. `gpu_units` and `cpu_units` are thousandths (of a GPU, of a core) times
    microseconds: exact."""

    pods: int = 0
    gpu_units: int = 0
    cpu_units: int = 0
    cost: Decimal = Decimal(0)


def spend() -> dict[str, Spend]:
    """By tenant's slug, in the order of the trace's classes."""
    found = {slug: Spend() for slug, _ in TENANTS.values()}
    for slug, is_cpu, pods, units, cost in rows(_SPEND, [CPU]):
        had = found[slug]
        found[slug] = Spend(
            had.pods + pods,
            had.gpu_units + (0 if is_cpu else int(units)),
            had.cpu_units + (int(units) if is_cpu else 0),
            had.cost + cost,
        )
    return found


def charges() -> int:
    """How many there are."""
    return int(rows("SELECT count(*) FROM tenants_charge")[0][0])


def hours(units: int) -> Decimal:
    """Thousandths times microseconds as hours of a whole."""
    return Decimal(units) / (1000 * 3600 * 1_000_000)


def moments(start: datetime, end: datetime, count: int) -> list[datetime]:
    """`count` moments, the middles of equal parts."""
    part: timedelta = (end - start) / count
    return [start + part * index + part / 2 for index in range(count)]
