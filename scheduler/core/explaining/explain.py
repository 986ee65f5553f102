"""Why one workload waits, or where it would start: the plan's decision, its checks, what helps."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from scheduler.core.cycle import planned
from scheduler.core.explaining.change import Relaxation
from scheduler.core.explaining.checks import Chain, Check, chains, shared_checks
from scheduler.core.explaining.relax import relaxations
from scheduler.core.plan import Admit, Hold
from scheduler.core.policy import Policy
from scheduler.core.snapshot import PendingView, Snapshot


@dataclass(frozen=True, slots=True)
class Explanation:
    """`checks` come before those of `chains`, which are one an accepted option: a workload starts
    where all of the checks and all of one chain pass. Of an admission nothing is to be relaxed."""

    decision: Admit | Hold
    checks: tuple[Check, ...]
    chains: tuple[Chain, ...]
    relaxations: tuple[Relaxation, ...] = ()


def explain(
    *,
    snapshot: Snapshot,
    policy: Policy,
    pending: PendingView,
    late: Callable[[], bool] = lambda: False,
) -> Explanation:
    """What the plan made now decides on `pending`, which need not be in the snapshot, and why.

    Nothing further is tried that might help once the caller says that it is `late`.
    """
    others = tuple(waiting for waiting in snapshot.pending if waiting.id != pending.id)
    of = replace(snapshot, pending=(*others, pending))
    made, cycle = planned(of, policy)
    decision = made.decision(pending.id)
    checks = shared_checks(pending=pending, decision=decision)
    found = chains(cycle=cycle, pending=pending, decision=decision)
    if isinstance(decision, Admit):
        return Explanation(decision, checks, found)
    helps = relaxations(
        snapshot=cycle.snapshot,
        policy=cycle.policy,
        cycle=cycle,
        pending=pending,
        reason=decision.reason,
        late=late,
    )
    return Explanation(decision, checks, found, helps)
