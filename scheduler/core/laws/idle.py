"""What must hold of the work that a plan frees because its devices lie idle, checked apart from
the code that made it. Part of `invariants`.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from scheduler.core.plan import Plan
from scheduler.core.snapshot import Snapshot


def freed(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """A sentence for each broken law."""
    holding = {held.id: held for held in snapshot.holding}
    queues = {queue.project: queue for queue in snapshot.queues}
    for workload, times in Counter(plan.frees).items():
        if times > 1:
            yield f"{workload} is freed {times} times"
        held = holding.get(workload)
        queue = None if held is None else queues.get(held.project)
        if held is None or queue is None or held.releasing or not held.preemptible:
            yield f"{workload} may not be freed"
            continue
        idle_s = -1 if held.idle_since is None else snapshot.at - held.idle_since
        told_s = -1 if held.idle_warned_at is None else snapshot.at - held.idle_warned_at
        if queue.idle_timeout_s is None or idle_s < max(0, queue.idle_timeout_s):
            yield f"{workload} is freed, and is not idle for too long"
        if told_s < queue.idle_warning_s:
            yield f"{workload} is freed without having been told {queue.idle_warning_s} s before"
        ran_s = snapshot.at - (held.admitted_at if held.started_at is None else held.started_at)
        if 0 < queue.min_run_time_s > ran_s:
            yield f"{workload} is freed before it has run for {queue.min_run_time_s} s"


def going(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """In which what is freed is on its way back: the rest of the plan is made for that."""
    holding = (replace(h, releasing=h.releasing or h.id in plan.frees) for h in snapshot.holding)
    return replace(snapshot, holding=tuple(holding)) if plan.frees else snapshot
