"""How so many devices of a model are cut so that they serve the most of what is asked for.

A way is one device's slices, as many of each profile; only legal ones that nothing could be added
to are looked at. The search goes depth first over the ways of one device after another, and leaves
out what can't be better than the best so far: another device like one before never adds more than
that did. So it is exact, up to MOST_LOOKS; beyond those the best so far stands.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from scheduler.core.node import mig

type Way = tuple[tuple[str, int], ...]
"""The slices of a device, ascending by profile; () is a whole one."""

MOST_LOOKS = 20_000
_BEFORE = 1_000_000
"""What a slice that is asked for first counts, beside one that is asked for then."""


def ways_of(cuts: Sequence[Mapping[str, int]]) -> tuple[Way, ...]:
    """Devices that are cut so, as ways."""
    return tuple(tuple(sorted(cut.items())) for cut in cuts)


def slices_of(ways: Iterable[Way]) -> Counter[str]:
    """How many of each profile, in all."""
    total: Counter[str] = Counter()
    for way in ways:
        total.update(dict(way))
    return total


def served(*, ways: Sequence[Way], asked: Mapping[str, int]) -> int:
    """How many of the slices that are asked for they have."""
    total = slices_of(ways)
    return sum(min(total[name], count) for name, count in asked.items())


def serving(
    *,
    model: str,
    now: Sequence[Way],
    first: Mapping[str, int],
    then: Mapping[str, int],
) -> tuple[Way, ...]:
    """A way for each device, which are cut as in `now`: the most of `first`, and beside that the
    most of `then`. Who need not be cut anew keeps its way, and as many as can keep their place."""
    found = _Search(model, len(now), first, then).best()
    return placed(now=now, ways=(*found, *_left(now, found)))


def placed(*, now: Sequence[Way], ways: Sequence[Way]) -> tuple[Way, ...]:
    """The ways, as many as there are devices, each where the device is cut so already."""
    rest = Counter(ways)
    kept: list[Way | None] = []
    for way in now:
        kept.append(way if rest[way] else None)
        rest[way] -= bool(rest[way])
    others = iter(sorted(rest.elements()))
    return tuple(next(others) if way is None else way for way in kept)


def _left(now: Sequence[Way], found: Sequence[Way]) -> list[Way]:
    """Ways for the devices that nothing is asked of: those that there are."""
    spare = sorted((Counter(now) - Counter(found)).elements())
    return spare[: len(now) - len(found)]


class _Search:
    def __init__(
        self, model: str, devices: int, first: Mapping[str, int], then: Mapping[str, int]
    ) -> None:
        asked = sorted({name for each in (first, then) for name, count in each.items() if count})
        self._asked = [(name, first.get(name, 0), then.get(name, 0)) for name in asked]
        layouts = mig.full_layouts(model=model, profiles=asked)
        self._ways: list[Way] = sorted(ways_of(layouts))
        self._counts = [[dict(way).get(name, 0) for name in asked] for way in self._ways]
        self._devices = devices
        self._most = self._value([devices * 8 for _ in asked])
        self._best, self._found, self._looks = 0, (), 0

    _found: tuple[int, ...]

    def best(self) -> tuple[Way, ...]:
        self._look(0, (), [0 for _ in self._asked])
        return tuple(self._ways[i] for i in self._found)

    def _look(self, start: int, chosen: tuple[int, ...], total: list[int]) -> None:
        value = self._value(total)
        if value > self._best:
            self._best, self._found = value, chosen
        left = self._devices - len(chosen)
        self._looks += 1
        if not left or self._best == self._most or self._looks > MOST_LOOKS:
            return
        gains = []
        for i in range(start, len(self._ways)):
            sums = [a + b for a, b in zip(total, self._counts[i], strict=True)]
            gains.append((value - self._value(sums), i, sums))
        for loss, i, sums in sorted(gains):
            # No later device adds more than the best one does now.
            if value - left * min(gains)[0] <= self._best or not loss:
                return
            self._look(i, (*chosen, i), sums)

    def _value(self, total: Sequence[int]) -> int:
        value = 0
        for count, (_, first, then) in zip(total, self._asked, strict=True):
            value += _BEFORE * min(count, first) + min(max(0, count - first), then)
        return value
