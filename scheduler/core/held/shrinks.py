"""Who and what goes in a plan: the victims as it tells them, workloads and pods by themselves."""

from collections.abc import Iterable

from scheduler.core.held.victims import ALL, UnitId, Victim
from scheduler.core.plan import Preempt, Shrink
from scheduler.core.units import WorkloadId


def gives_way(
    *, preemptor: WorkloadId, victims: Iterable[Victim]
) -> tuple[list[Preempt], list[Shrink]]:
    """The victims as a plan tells them: workloads, and the pods of each that go by themselves."""
    preempts, pods = [], dict[WorkloadId, list[Victim]]()
    for victim in victims:
        workload, _ = victim.id
        if victim.held.is_whole:
            preempts.append(Preempt(workload, preemptor, victim.rule))
        else:
            pods.setdefault(workload, []).append(victim)
    shrinks = [
        Shrink(workload, tuple(victim.id[1] for victim in of), preemptor, of[0].rule)
        for workload, of in pods.items()
    ]
    return preempts, shrinks


def less_evicted(shrinks: Iterable[Shrink], preempts: Iterable[Preempt]) -> tuple[Shrink, ...]:
    """Without those of who was evicted after pods of it had been taken."""
    evicted = {preempt.victim for preempt in preempts}
    return tuple(shrink for shrink in shrinks if shrink.victim not in evicted)


def given_up(preempts: Iterable[Preempt], shrinks: Iterable[Shrink]) -> set[UnitId]:
    """Who goes, and what pods go by themselves."""
    whole = {(preempt.victim, ALL) for preempt in preempts}
    return whole | {(shrink.victim, pod) for shrink in shrinks for pod in shrink.placements}
