"""Work that leaves all its devices unused, with the limit that holds for it.

What must not live here: what follows of it (`loop/measuring/idle`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from scheduler.core.lifecycle import State
from scheduler.core.stopping.idle import due_at, frees_at, warns_at
from scheduler.models import Workload
from scheduler.selectors.fleet import rows
from tenants.selectors import idle_limits, run_times
from tenants.selectors.idle_limits import IdleLimit

STALE_S = 300
"""Use that was seen longer ago, in the database's time, says nothing of now."""
IS_FRESH = f"c.use_seen_at > clock_timestamp() - {STALE_S} * interval '1 second'"
"""Of a cluster `c`: whether what is idle there is known to be so."""


@dataclass(frozen=True, slots=True)
class Idle:
    """`held_milli` is thousandths of devices. What may not be preempted is told and not freed;
    what has not run for `min_run_time_s` is neither until it has."""

    workload: UUID
    attempt: UUID
    project: UUID
    preemptible: bool
    since: datetime
    warned_at: datetime | None
    limit: IdleLimit
    held_milli: int
    runs_since: datetime
    min_run_time_s: int

    @property
    def warns_at(self) -> datetime | None:
        """When its submitter is to be told, None never."""
        if not self.limit.timeout_s:
            return None
        return _moment(
            warns_at(
                since=_seconds(self.since), due_at=self._due_at, warning_s=self.limit.warning_s
            )
        )

    @property
    def frees_at(self) -> datetime | None:
        """When it is freed, None never."""
        if not (self.limit.timeout_s and self.preemptible):
            return None
        return _moment(
            frees_at(
                since=_seconds(self.since),
                warned_at=None if self.warned_at is None else _seconds(self.warned_at),
                due_at=self._due_at,
                warning_s=self.limit.warning_s,
            )
        )

    @property
    def _due_at(self) -> int:
        return due_at(
            since=_seconds(self.since),
            timeout_s=self.limit.timeout_s,
            runs_since=_seconds(self.runs_since),
            min_run_time_s=self.min_run_time_s,
        )


_IDLE = (
    "WITH RECURSIVE "  # noqa: S608  # constants
    + run_times.IN_FORCE
    + ", "
    + idle_limits.IN_FORCE
    + """
SELECT w.id, a.id, w.project_id, w.preemptible, i.since, i.warned_at,
       l.timeout_s, l.warning_s,
       (SELECT coalesce(sum(p.amount_milli), 0)::bigint FROM scheduler_placement p
        JOIN clusters_flavor f ON f.id = p.flavor_id
        WHERE p.attempt_id = a.id AND p.released_at IS NULL AND f.kind <> 'cpu'),
       coalesce(w.started_at, w.admitted_at, a.created_at), g.seconds
FROM scheduler_idleness i JOIN scheduler_attempt a ON a.id = i.attempt_id
JOIN scheduler_workload w ON w.id = a.workload_id
JOIN clusters_cluster c ON c.id = a.cluster_id
LEFT JOIN idle_limit l ON l.id = w.project_id LEFT JOIN granted g ON g.id = w.project_id
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
    for row in rows(sql, parameters):
        workload, attempt, project, preemptible, since, warned_at, *told = row
        timeout_s, warning_s, held, runs_since, run_s = told
        found.append(
            Idle(
                workload,
                attempt,
                project,
                preemptible,
                since,
                warned_at,
                fleet if timeout_s is None else IdleLimit(timeout_s, warning_s),
                held,
                runs_since,
                run_times.fleet_s() if run_s is None else run_s,
            )
        )
    return found


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, tz=UTC)


_FREED = """
SELECT coalesce(sum(p.amount_milli), 0)::bigint FROM scheduler_attempt a
JOIN scheduler_placement p ON p.attempt_id = a.id JOIN clusters_flavor f ON f.id = p.flavor_id
WHERE a.failure = 'idle' AND a.outcome NOT IN ('', 'succeeded') AND f.kind <> 'cpu'
"""


def freed_milli() -> int:
    """Thousandths of devices that were freed so far; what was done within its notice gave them
    back by itself. One query."""
    [[milli]] = rows(_FREED)
    return int(milli)
