"""What may come and go of work that runs: the pods of a set beyond its `min_count`."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from scheduler.core.snapshot import HeldView, HoldingView, PendingView, PodSetView


def is_elastic(of: PendingView | HoldingView) -> bool:
    """Whether any of its pods may come and go."""
    return any(pod_set.min_count < pod_set.count for pod_set in of.pod_sets)


def gives_back(holding: HoldingView) -> bool:
    """Whether anything of it is on its way back."""
    if holding.releasing:
        return True
    for placement in holding.placements:  # asked of all that runs, in every plan  # noqa: SIM110
        if placement.leaving:
            return True
    return False


def staying(holding: HoldingView) -> tuple[HeldView, ...]:
    """What it holds that is not on its way back."""
    if not gives_back(holding):
        return holding.placements
    if holding.releasing:
        return ()
    return tuple(placement for placement in holding.placements if not placement.leaving)


def leaving(holding: HoldingView) -> tuple[HeldView, ...]:
    """What it holds that is on its way back."""
    if holding.releasing:
        return holding.placements
    return tuple([placement for placement in holding.placements if placement.leaving])


def keeping(holding: HoldingView, placements: tuple[HeldView, ...]) -> HoldingView:
    """It with no more than these of its placements."""
    if len(placements) == len(holding.placements):
        return holding
    return replace(holding, placements=placements)


def remaining(
    holding: Iterable[HoldingView], stays: Callable[[HoldingView], tuple[HeldView, ...]]
) -> list[HoldingView]:
    """Each with the placements that `stays` gives; who is left with none is dropped."""
    each = ((held, stays(held)) for held in holding)
    return [keeping(held, placements) for held, placements in each if placements]


def asks(holding: HoldingView) -> PendingView:
    """What it asked for, and asks for when it queues again, in a cluster that it accepts."""
    return PendingView(
        id=holding.id,
        project=holding.project,
        priority=holding.priority,
        preemptible=holding.preemptible,
        submitted_at=holding.admitted_at,
        pod_sets=holding.pod_sets,
        run_time_limit_s=holding.run_time_limit_s,
        clusters=holding.clusters,
        user=holding.user,
        topology=holding.topology,
        array=holding.array,
    )


def surplus(holding: HoldingView) -> tuple[HeldView, ...]:
    """The pods beyond the least of their sets, which are those of the highest ranks; the first to
    go of each set first."""
    found: list[HeldView] = []
    for pod_set in holding.pod_sets:
        if pod_set.min_count < pod_set.count:
            of_set = running(holding=holding, pod_set=pod_set)
            found += of_set[: max(0, len(of_set) - max(1, pod_set.min_count))]
    return tuple(found)


def running(*, holding: HoldingView, pod_set: PodSetView) -> list[HeldView]:
    """The pods of the set that stay, the highest rank first."""
    of_set = (placement for placement in staying(holding) if placement.pod_set == pod_set.id)
    return sorted(of_set, key=lambda placement: (-placement.rank, placement.id))
