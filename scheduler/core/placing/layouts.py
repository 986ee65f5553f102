"""In which domains the pods of a gang stand whose pod sets ask for domains of their own.

A pod set may have to be in one domain of a level, or each group of so many of its pods, by rank,
in one (as with Kueue's podset-required-topology and podset-slice-required-topology, KEP 2724, and
the subgroups of KAI). Domains of one level share no node, so how many groups of a set each takes
is known domain by domain: a set alone is laid out whenever that can be. Several are laid out one
after another, by depth-first search over all ways, so that they are too, as far as the pods in a
domain are packed by best fit (`gang`), and MOST_TRIES do. What had better be is greedy (`gang`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from scheduler.core.fleet.domains import Domain
from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.space import free_within_milli, most_pods
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import PendingView, PodSetView
from scheduler.core.units import ClusterId

MOST_TRIES = 1024
"""Ways of giving domains to the pod sets of one gang that are tried in a cluster or a domain."""
MOST_PODS = 4096
"""Pods that are put there for that, save that one way of each pod set is always tried."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where pods have to be: all in `whole`, None for anywhere; and those of each pod set, by its
    number, in `sets`, pod by pod, the last of them also for those that come later; () for what
    `whole` alone binds."""

    whole: Domain | None = None
    sets: tuple[tuple[Domain, ...], ...] = ()

    def of(self, nth: int) -> tuple[Domain, ...]:
        """Of the nth pod set."""
        return self.sets[nth] if self.sets else ()

    def beside(self, nth: int, domain: Domain, *, of: int) -> "Layout":
        """With the nth `of` so many pod sets in that domain."""
        sets = ((domain,) if i == nth else self.of(i) for i in range(of))
        return Layout(self.whole, tuple(sets))


ANYWHERE = Layout()


class Mark(NamedTuple):
    """How far a gang is, to be taken back to."""

    draft: int
    pods: tuple[int, ...]


class Puts(Protocol):
    """What puts pods of a workload into a draft one by one: a `Gang`."""

    def put(self, nth: int, within: Domain) -> bool: ...
    def mark(self) -> Mark: ...
    def back(self, mark: Mark) -> None: ...


class Groups(NamedTuple):
    """So many pods each, and how many of them start together."""

    size: int
    number: int

    @classmethod
    def of(cls, pod_set: PodSetView) -> "Groups":
        topology = pod_set.topology
        if topology is None or topology.group_size is None:
            return cls(pod_set.min_count, 1)
        return cls(topology.group_size, pod_set.min_count // topology.group_size)


class Part(NamedTuple):
    """A domain for groups of a set: at most `bound` of them, as a quick look has it, and just so
    many as `measure` then says."""

    domain: Domain
    bound: int
    measure: Callable[[], int]


Parts = Callable[[int], Sequence[Part]]
"""Of the pod set of that number, those to fill first first; as its gang then stands."""


class Layouts:
    """The ways of giving domains to the pod sets that have to be in some of their own."""

    def __init__(
        self, *, pending: PendingView, request: Request, whole: Domain | None, gang: Puts
    ) -> None:
        self._pod_sets = pending.pod_sets
        self._bound = request.bound
        self._whole = whole
        self._gang = gang
        self._tries = 0
        self._pods = 0

    def search(self, parts: Parts, accept: Callable[[Layout], bool]) -> bool:
        """Put the bound pod sets into the gang, in one way after another, until `accept` takes
        one, which then stays; else the gang is left as it was."""
        alone = (any(True for _ in self._ways(i, parts)) for i in self._bound[1:])
        return all(alone) and self._lay_out(0, {}, parts, accept)

    def _lay_out(
        self,
        nth: int,
        chosen: dict[int, tuple[Domain, ...]],
        parts: Parts,
        accept: Callable[[Layout], bool],
    ) -> bool:
        """The bound pod sets from the nth on, beside those before it."""
        self._tries += 1
        if nth == len(self._bound):
            sets = tuple(chosen.get(i, ()) for i in range(len(self._pod_sets)))
            return accept(Layout(self._whole, sets))
        i = self._bound[nth]
        mark = self._gang.mark()
        for way in self._ways(i, parts):
            self._pods += len(way)
            put = all(self._gang.put(i, domain) for domain in way)
            if put and self._lay_out(nth + 1, {**chosen, i: way}, parts, accept):
                return True
            self._gang.back(mark)
            if self._tries >= MOST_TRIES or self._pods >= MOST_PODS:
                break
        return False

    def _ways(self, i: int, parts: Parts) -> Iterator[tuple[Domain, ...]]:
        """By pod, the domains of the ith pod set, one way after another."""
        size, number = Groups.of(self._pod_sets[i])
        listed = parts(i)
        for takes in _Takes(listed, number):
            yield tuple(
                domain for nth, take in takes for domain in [listed[nth].domain] * (take * size)
            )


class _Takes:
    """How many groups each of the parts takes, in all ways: the first ones as many as they hold
    first. Measured is only what is come to."""

    def __init__(self, parts: Sequence[Part], number: int) -> None:
        self._parts = parts
        self._number = number
        self._most: dict[int, int] = {}
        self._stale = False
        self._left = self._sums()

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        takes: list[tuple[int, int]] = []
        at, left = 0, self._number
        while True:
            left = self._fill(takes, at, left)
            if not left:
                yield takes
            if not takes:
                return
            at, take = takes.pop()
            left += take
            if take > 1:
                takes.append((at, take - 1))
                left -= take - 1
            at += 1

    def _fill(self, takes: list[tuple[int, int]], at: int, left: int) -> int:
        """As many as go into the parts from there on; how many are left over."""
        while left and self._left[at] >= left:
            if most := min(left, self._measured(at)):
                takes.append((at, most))
                left -= most
            at += 1
        if left and self._stale:
            self._left, self._stale = self._sums(), False
        return left

    def _measured(self, at: int) -> int:
        if at not in self._most:
            self._most[at] = self._parts[at].measure()
            self._stale = True
        return self._most[at]

    def _sums(self) -> list[int]:
        """From each part on, how many they take together, as far as is known; behind all 0."""
        sums = [0]
        for at in range(len(self._parts) - 1, -1, -1):
            sums.append(sums[-1] + self._most.get(at, self._parts[at].bound))
        return sums[::-1]


def by_room(
    domains: Iterable[Domain], *, pending: PendingView, request: Request, option: Option
) -> list[Domain]:
    """Those of them that may hold the least start, the one to try first first.

    Those that may hold all pods come first, least free first; then those with most free. What the
    largest pods ask for counts most.
    """
    sets = list(zip(pending.pod_sets, option.flavors, strict=True))
    ranked = []
    for nth, domain in enumerate(domains):
        most = [most_pods(domain=domain, pod_set=p, flavor=f) for p, f in sets]
        if all(pods >= p.min_count for pods, (p, _) in zip(most, sets, strict=True)):
            short = any(pods < p.count for pods, (p, _) in zip(most, sets, strict=True))
            flavors = (option.flavors[i] for i in request.order)
            free = [free_within_milli(domain=domain, flavor=flavor) for flavor in flavors]
            ranked.append((short, [-each for each in free] if short else free, nth, domain))
    return [domain for *_, domain in sorted(ranked, key=lambda each: each[:3])]


def roomiest(
    *, draft: Draft, emptied: Draft, option: Option, cluster: ClusterId, level: str, most: int
) -> list[Domain]:
    """The domains of the level that could hold the option if they were as in `emptied`: those with
    most free in `draft` first, `most` of them at most."""
    kinds = {flavor.id: flavor for flavor in option.flavors}
    found = []
    for here, bare in zip(
        draft.domains.of(cluster=cluster, level=level),
        emptied.domains.of(cluster=cluster, level=level),
        strict=True,
    ):
        if all(
            free_within_milli(domain=bare, flavor=kinds[flavor]) >= asked
            for flavor, asked in option.needs
            if flavor in kinds
        ):
            free = sum(free_within_milli(domain=here, flavor=flavor) for flavor in kinds.values())
            found.append((-free, here.path, here))
    return [here for *_, here in sorted(found, key=lambda each: each[:2])[:most]]
