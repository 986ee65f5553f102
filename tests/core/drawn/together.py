"""Pod sets that have to be, or had better be, together by themselves."""

from dataclasses import replace
from random import Random

from scheduler.core.snapshot import PodSetView, SetTopologyView, Snapshot


def within(level: str, of: PodSetView, *, groups_of: int | None = None) -> PodSetView:
    """All its pods, or each so many of them, have to be in one domain of the level."""
    return replace(of, topology=SetTopologyView(level, True, of.id, groups_of))


def near(level: str, of: PodSetView, *, groups_of: int | None = None) -> PodSetView:
    """They had better be."""
    return replace(of, topology=SetTopologyView(level, False, of.id, groups_of))


def wishing(pick: Random, of: Snapshot) -> Snapshot:
    """Some work has pod sets that ask to be together by themselves."""

    def asked(pod_set: PodSetView) -> PodSetView:
        ask = within if pick.random() < 0.6 else near
        level = pick.choice(["zone", "rack", "rack", "nowhere"])
        sizes: list[int | None] = [None]
        if pod_set.min_count == pod_set.count:
            sizes += [n for n in range(1, pod_set.count + 1) if pod_set.count % n == 0]
        return ask(level, pod_set, groups_of=pick.choice(sizes))

    def sets(pod_sets: tuple[PodSetView, ...]) -> tuple[PodSetView, ...]:
        if pick.random() < 0.7:
            return pod_sets
        return tuple(asked(p) if pick.random() < 0.7 else p for p in pod_sets)

    return replace(
        of,
        pending=tuple(replace(p, pod_sets=sets(p.pod_sets)) for p in of.pending),
        holding=tuple(replace(h, pod_sets=sets(h.pod_sets)) for h in of.holding),
    )
