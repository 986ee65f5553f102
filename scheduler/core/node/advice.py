"""How the MIG devices of a model had better be cut, by what was asked for lately.

Each layout is played against the same arrivals: a slice serves whoever asked for its profile
first, one after another, so that each profile is a queue of its own with as many servers as there
are slices. A layout is found device by device, each cut in the legal way that saves the most
waiting beside those before it; then devices are cut anew, one at a time, while that saves more.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

from scheduler.core.node import mig

MOST_ROUNDS = 8
"""Times that every device is looked at again."""


@dataclass(frozen=True, slots=True, order=True)
class Arrival:
    """One slice that was asked for; seconds. `run_s` is how long it was, or would be, held."""

    at: int
    profile: str
    run_s: int


@dataclass(frozen=True, slots=True)
class Advice:
    """`layouts` has the slices of a device, ascending by profile, and how many devices are to be
    cut so. Mean waits are simulated, in whole seconds; `now_s` is with the slices that there are,
    None when there are none."""

    model: str
    layouts: tuple[tuple[tuple[tuple[str, int], ...], int], ...]
    mean_wait_s: int
    now_s: int | None

    @property
    def saved_s(self) -> int | None:
        """Of the mean wait; negative when it is better as it is."""
        return None if self.now_s is None else self.now_s - self.mean_wait_s


def advise(
    *, model: str, devices: int, arrivals: Iterable[Arrival], now: Mapping[str, int], until: int
) -> Advice | None:
    """The best layout found for so many devices; `now` counts the slices that there are.

    Who has no slice by then waits `until` then. None without arrivals, or for a model without MIG.
    """
    board = mig.board(model=model)
    waits = _Waits(arrivals, until)
    if board is None or not waits.asked or devices <= 0:
        return None
    asked = tuple(profile.name for profile in board.profiles if profile.name in waits.asked)
    ways = mig.full_layouts(model=model, profiles=asked)
    if not ways:
        return None
    cut: list[dict[str, int]] = []
    total: dict[str, int] = {}
    for _ in range(devices):
        best = min(ways, key=lambda way: (waits.total(_sum(total, way)), sorted(way.items())))
        cut.append(best)
        total = _sum(total, best)
    cut, total = _improved(cut, total, ways, waits)
    counted: dict[tuple[tuple[str, int], ...], int] = {}
    for way in cut:
        key = tuple(sorted(way.items()))
        counted[key] = counted.get(key, 0) + 1
    return Advice(
        model,
        tuple(sorted(counted.items())),
        waits.total(total) // waits.count,
        waits.total(now) // waits.count if any(now.values()) else None,
    )


def _improved(
    cut: list[dict[str, int]],
    total: dict[str, int],
    ways: Sequence[dict[str, int]],
    waits: "_Waits",
) -> tuple[list[dict[str, int]], dict[str, int]]:
    for _ in range(MOST_ROUNDS):
        before = waits.total(total)
        for i, old in enumerate(cut):
            rest = _sum(total, {name: -count for name, count in old.items()})
            best = min(ways, key=lambda way: (waits.total(_sum(rest, way)), sorted(way.items())))
            if waits.total(_sum(rest, best)) < waits.total(total):
                cut[i], total = best, _sum(rest, best)
        if waits.total(total) == before:
            break
    return cut, total


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {*one, *other}}


class _Waits:
    """What is waited in sum, by profile and by how many slices of it there are."""

    def __init__(self, arrivals: Iterable[Arrival], until: int) -> None:
        self.asked: dict[str, list[Arrival]] = {}
        for arrival in sorted(arrivals):
            self.asked.setdefault(arrival.profile, []).append(arrival)
        self.count = sum(map(len, self.asked.values()))
        self._until = until
        self._known: dict[tuple[str, int], int] = {}

    def total(self, slices: Mapping[str, int]) -> int:
        return sum(self._of(name, slices.get(name, 0)) for name in self.asked)

    def _of(self, profile: str, slices: int) -> int:
        found = self._known.get((profile, slices))
        if found is None:
            found = self._known[profile, slices] = self._played(self.asked[profile], slices)
        return found

    def _played(self, arrivals: Sequence[Arrival], slices: int) -> int:
        if not slices:
            return sum(max(0, self._until - arrival.at) for arrival in arrivals)
        free = [arrivals[0].at] * slices
        heapify(free)
        waited = 0
        for arrival in arrivals:
            start = max(arrival.at, free[0])
            waited += max(0, min(start, self._until) - arrival.at)
            heapreplace(free, start + arrival.run_s)
        return waited
