"""Whose devices lie idle for too long, and are taken back (ADR 0037). Pure.

`idle_since` is from when on all devices of a workload were seen unused; what is not measured is
not idle. Who is told `idle_warning_s` before, and still leaves them unused, is freed: decided
before anything else in a plan, so what waits is given that room before anybody is evicted for it.
"""

from dataclasses import replace
from heapq import nsmallest

from scheduler.core.held.victims import begun_at
from scheduler.core.policy import Policy
from scheduler.core.snapshot import HoldingView, QueueView, Snapshot
from scheduler.core.units import WorkloadId

MOST = 256
"""Workloads that one plan frees, so that its transaction stays short: the longest idle first."""


def due_at(*, since: int, timeout_s: int, runs_since: int, min_run_time_s: int) -> int:
    """From when on work that is idle since then may be freed, if it was told in time: it has been
    idle for the time-out, and has run as long as it is granted."""
    return max(since + timeout_s, runs_since + min_run_time_s)


def warns_at(*, since: int, due_at: int, warning_s: int) -> int:
    """When it is to be told."""
    return max(since, due_at - warning_s)


def frees_at(*, since: int, warned_at: int | None, due_at: int, warning_s: int) -> int:
    """When it is freed, if it goes on so: never sooner than `warning_s` after it was told. None:
    it is told when it is time to."""
    if warned_at is None:
        warned_at = warns_at(since=since, due_at=due_at, warning_s=warning_s)
    return max(due_at, warned_at + warning_s)


def freeing(snapshot: Snapshot, policy: Policy) -> tuple[Snapshot, tuple[WorkloadId, ...]]:
    """The workloads that are freed, ascending, and the snapshot in which they are on their way
    back and do not queue again. Without preemption nobody is."""
    idle = [held for held in snapshot.holding if held.idle_since is not None]
    if not (idle and policy.preemption):
        return snapshot, ()
    queues = {queue.project: queue for queue in snapshot.queues}
    due = (h for h in idle if h.project in queues and _is_due(h, queues[h.project], snapshot.at))
    freed = {held.id for held in nsmallest(MOST, due, key=lambda h: (h.idle_since, h.id))}
    if not freed:
        return snapshot, ()
    holding = tuple(
        replace(held, releasing=True, pod_sets=()) if held.id in freed else held
        for held in snapshot.holding
    )
    return replace(snapshot, holding=holding), tuple(sorted(freed))


def _is_due(held: HoldingView, queue: QueueView, at: int) -> bool:
    since, warned_at, timeout_s = held.idle_since, held.idle_warned_at, queue.idle_timeout_s
    if since is None or warned_at is None or timeout_s is None:
        return False
    if held.releasing or not held.preemptible:
        return False
    due = due_at(
        since=since,
        timeout_s=timeout_s,
        runs_since=begun_at(held),
        min_run_time_s=queue.min_run_time_s,
    )
    warning_s = queue.idle_warning_s
    return at >= frees_at(since=since, warned_at=warned_at, due_at=due, warning_s=warning_s)
