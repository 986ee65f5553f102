"""Work that leaves all its devices unused, with the limit that holds for it.

What must not live here: what follows of it (`loop/idle`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from scheduler.core.idle import frees_at, warns_at
from scheduler.core.lifecycle import State
from scheduler.models import Workload
from scheduler.selectors.fleet import rows
from tenants.selectors import idle_limits
from tenants.selectors.idle_limits import IdleLimit

STALE_S = 300
"""Use that was seen longer ago, in the database's time, says nothing of now."""
IS_FRESH = f"c.use_seen_at > clock_timestamp() - {STALE_S} * interval '1 second'"
"""Of a cluster `c`: whether what is idle there is known to be so."""


@dataclass(frozen=True, slots=True)
class Idle:
    """`held_milli` is thousandths of devices. What may not be preempted is told and not freed."""

    workload: UUID
    attempt: UUID
    project: UUID
    preemptible: bool
    since: datetime
    warned_at: datetime | None
    limit: IdleLimit
    held_milli: int

    @property
    def warns_at(self) -> datetime | None:
        """When its submitter is to be told, None never."""
        if not self.limit.timeout_s:
            return None
        since, (timeout_s, warning_s) = _seconds(self.since), self._limit
        return _moment(warns_at(since=since, timeout_s=timeout_s, warning_s=warning_s))

    @property
    def frees_at(self) -> datetime | None:
        """When it is freed, None never."""
        if not (self.limit.timeout_s and self.preemptible):
            return None
        since, (timeout_s, warning_s) = _seconds(self.since), self._limit
        warned_at = None if self.warned_at is None else _seconds(self.warned_at)
        return _moment(
            frees_at(since=since, warned_at=warned_at, timeout_s=timeout_s, warning_s=warning_s)
        )

    @property
    def _limit(self) -> tuple[int, int]:
        return self.limit.timeout_s, self.limit.warning_s


_IDLE = (
    "WITH RECURSIVE "  # noqa: S608  # constants
    + idle_limits.NEAREST
    + """
SELECT w.id, a.id, w.project_id, w.preemptible, i.since, i.warned_at,
       coalesce(t.idle_timeout_s, l.timeout_s), coalesce(t.idle_warning_s, l.warning_s),
       (SELECT coalesce(sum(p.amount_milli), 0)::bigint FROM scheduler_placement p
        JOIN clusters_flavor f ON f.id = p.flavor_id
        WHERE p.attempt_id = a.id AND p.released_at IS NULL AND f.kind <> 'cpu')
FROM scheduler_idleness i JOIN scheduler_attempt a ON a.id = i.attempt_id
JOIN scheduler_workload w ON w.id = a.workload_id
JOIN clusters_cluster c ON c.id = a.cluster_id
JOIN tenants_project t ON t.id = w.project_id
LEFT JOIN idle_limit l ON l.id = t.tenant_id
WHERE a.ended_at IS NULL AND w.state = 'RUNNING' AND """
    + IS_FRESH
)


def everywhere() -> list[Idle]:
    """By workload. One query."""
    return _read(_IDLE + " ORDER BY w.id")


def of_running(*, workload: Workload) -> Idle | None:
    """None while one of its devices is used, or not measured. One query, none unless it runs."""
    if workload.state != State.RUNNING:
        return None
    found = _read(_IDLE + " AND w.id = %s", [workload.id])
    return found[0] if found else None


def _read(sql: str, parameters: Sequence[object] = ()) -> list[Idle]:
    fleet = idle_limits.of_fleet()
    found = []
    for workload, attempt, project, preemptible, since, warned_at, *limit, held in rows(
        sql, parameters
    ):
        in_force = fleet if limit[0] is None else IdleLimit(*limit)
        found.append(
            Idle(workload, attempt, project, preemptible, since, warned_at, in_force, held)
        )
    return found


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, tz=UTC)


_FREED = """
SELECT coalesce(sum(p.amount_milli), 0)::bigint FROM scheduler_attempt a
JOIN scheduler_placement p ON p.attempt_id = a.id JOIN clusters_flavor f ON f.id = p.flavor_id
WHERE a.failure = 'idle' AND f.kind <> 'cpu'
"""


def freed_milli() -> int:
    """Thousandths of devices that were freed so far. One query."""
    [[milli]] = rows(_FREED)
    return int(milli)
