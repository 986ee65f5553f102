"""GPUs that are cut into MIG slices as requests come and go, by one rule or another."""

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

from scheduler.core.node import mig, slices
from scheduler.core.node.reshape import Held, reshape
from scheduler.core.node.slices import Mix
from scheduler.core.units import Span

MODEL = "A100-80GB"
PROFILES = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
SPANS = {name: mig.legal_spans(model=MODEL, profile=name) for name in PROFILES}
WIDTHS = {name: spans[0].width for name, spans in SPANS.items()}
SLICES = 8
GPUS = 100
EVEN = slices.mix_of(model=MODEL, asked={}, devices=GPUS)


def _reachable() -> list[int]:
    """The bits in use that legal slices make."""
    pieces = [mig.mask(span) for spans in SPANS.values() for span in spans]
    found, fresh = {0}, [0]
    while fresh:
        taken = fresh.pop()
        more = {taken | bits for bits in pieces if not bits & taken} - found
        found |= more
        fresh += more
    return sorted(found)


MASKS = _reachable()
MOST_COMPUTE = 7
"""Compute slices that one reshape may move."""


class Request(NamedTuple):
    at: float
    profile: str
    holds: float


Rank = tuple[tuple[int, Span], ...]
"""Devices that a rule likes alike: which bits are in use, and where the slice then goes."""


class Rule(NamedTuple):
    """`ranks` gives the best first, by profile, for the mix that is known so far."""

    name: str
    ranks: Callable[[Mix], dict[str, list[Rank]]]
    reshapes: bool = False


@dataclass(slots=True)
class Outcome:
    arrived: int = 0
    accepted: int = 0
    moves: int = 0

    @property
    def accepted_pct(self) -> float:
        return 100 * self.accepted / self.arrived


class Fleet:
    """Devices by the bits in use; the first of those alike goes first."""

    def __init__(self, devices: int) -> None:
        self.held: list[dict[int, Held]] = [{} for _ in range(devices)]
        self.where: dict[int, int] = {}
        self.taken = [0] * devices
        self._with: dict[int, list[int]] = {0: list(range(devices))}

    def put(self, job: int, device: int, profile: str, span: Span) -> None:
        if self.taken[device] & mig.mask(span):
            raise AssertionError(f"{span} of device {device} is taken")
        self.held[device][job] = Held(profile, span, movable=True)
        self.where[job] = device
        self._turn(device, self.taken[device] | mig.mask(span))

    def drop(self, job: int) -> Held:
        device = self.where.pop(job)
        held = self.held[device].pop(job)
        self._turn(device, self.taken[device] & ~mig.mask(held.span))
        return held

    def find(self, ranks: Iterable[Rank]) -> tuple[int, Span] | None:
        """The device and span that a rule chooses.

        Devices that have changed since they were listed drop out here.
        """
        for rank in ranks:
            best: tuple[int, Span] | None = None
            for taken, span in rank:
                listed = self._with.get(taken)
                while listed and self.taken[listed[0]] != taken:
                    heapq.heappop(listed)
                if listed and (best is None or listed[0] < best[0]):
                    best = listed[0], span
            if best is not None:
                return best
        return None

    def make_room(self, mix: Mix, profile: str) -> tuple[tuple[int, Span] | None, int]:
        """Move what `reshape` says: the device and span that are free then, how many moved."""
        devices = [tuple(held.values()) for held in self.held]
        found = reshape(mix=mix, profile=profile, devices=devices, most_compute=MOST_COMPUTE)
        if found is None:
            return None, 0
        jobs = [
            next(job for job, held in self.held[move.device].items() if held.span == move.span)
            for move in found.moves
        ]
        moved = [self.drop(job) for job in jobs]
        for job, held, move in zip(jobs, moved, found.moves, strict=True):
            self.put(job, move.to, held.profile, move.to_span)
        return (found.device, found.span), len(jobs)

    def _turn(self, device: int, taken: int) -> None:
        self.taken[device] = taken
        heapq.heappush(self._with.setdefault(taken, []), device)


def stream(weights: tuple[float, ...], *, seed: int, load: float, count: int) -> list[Request]:
    """Exponential gaps and holding times (mean 1), `load` times what the GPUs' slices could do."""
    chance = random.Random(seed)
    width = sum(w * WIDTHS[p] for w, p in zip(weights, PROFILES, strict=True)) / sum(weights)
    rate = load * GPUS * SLICES / width
    at, requests = 0.0, []
    for profile in chance.choices(PROFILES, weights, k=count):
        at += chance.expovariate(rate)
        requests.append(Request(at, profile, chance.expovariate(1)))
    return requests


def play(rule: Rule, requests: list[Request], *, load: float) -> Outcome:
    """Who finds no room is turned away. The mix is learnt at each doubling of the arrivals."""
    fleet, outcome = Fleet(GPUS), Outcome()
    ends: list[tuple[float, int]] = []
    seen: Counter[str] = Counter()
    running: Counter[str] = Counter()
    mix, ranks = EVEN, rule.ranks(EVEN)
    for job, request in enumerate(requests):
        while ends and ends[0][0] <= request.at:
            running[fleet.drop(heapq.heappop(ends)[1]).profile] -= 1
        seen[request.profile] += 1
        outcome.arrived += 1
        if outcome.arrived & (outcome.arrived - 1) == 0:
            mix = expected(seen, load)
            ranks = rule.ranks(mix)
        found = fleet.find(ranks[request.profile])
        if found is None and rule.reshapes and pays(request.profile, mix, running):
            found, moves = fleet.make_room(mix, request.profile)
            outcome.moves += moves
        if found is None:
            continue
        fleet.put(job, found[0], request.profile, found[1])
        running[request.profile] += 1
        heapq.heappush(ends, (request.at + request.holds, job))
        outcome.accepted += 1
    return outcome


def expected(seen: Mapping[str, int], load: float) -> Mix:
    """In the proportions of those seen, as many as would run at once if nobody were turned away.

    In the plan it is what waits and what runs.
    """
    many = load * GPUS * SLICES / sum(WIDTHS[name] * count for name, count in seen.items())
    asked = {name: round(many * count) for name, count in seen.items()}
    return slices.mix_of(model=MODEL, asked=asked, devices=GPUS)


def pays(profile: str, mix: Mix, running: Counter[str]) -> bool:
    """Whether enough stays free after a move for the profile, so that it shuts out nobody.

    One more large slice may shut out as many smaller requests as have its width in sum, `shut`.
    That pays where the odds of it are below 1 : `shut`. The need of smaller ones is taken as
    Poisson, its variance read off what runs, and, as what holds long runs on, taken twice.
    """
    width = WIDTHS[profile]
    free = GPUS * SLICES - sum(WIDTHS[name] * count for name, count in running.items()) - width
    return free >= 0 and free >= kept_free(profile, mix, running)


def kept_free(profile: str, mix: Mix, running: Counter[str]) -> float:
    """Memory slices, as `pays` says."""
    smaller = [
        (weight, WIDTHS[name], running[name])
        for name, weight in _weighed(mix)
        if WIDTHS[name] < WIDTHS[profile]
    ]
    shut = WIDTHS[profile] * sum(w for w, _, _ in smaller)
    asked = sum(weight * width for weight, width, _ in smaller)
    if shut <= asked:
        return 0
    variance = sum(count * width**2 for _, width, count in smaller)
    return max(0.0, 2 * NormalDist().inv_cdf(1 - asked / shut) * sqrt(variance))


def pooled_pct(requests: list[Request], mix: Mix) -> float:
    """Accepted of one pool of as many slices, where any hole is as good as another.

    It has no legal starts, moves all the time and turns away large requests that `pays` forbids
    even where they fit: a mark that no rule here should come near.
    """
    ends: list[tuple[float, str]] = []
    running: Counter[str] = Counter()
    accepted = 0
    for request in requests:
        while ends and ends[0][0] <= request.at:
            running[heapq.heappop(ends)[1]] -= 1
        if pays(request.profile, mix, running):
            running[request.profile] += 1
            heapq.heappush(ends, (request.at + request.holds, request.profile))
            accepted += 1
    return 100 * accepted / len(requests)


def _weighed(mix: Mix) -> Iterator[tuple[str, int]]:
    return zip(PROFILES, mix.weights, strict=True)


def ranked(key: Callable[[str, int, Span], tuple[int, ...]]) -> dict[str, list[Rank]]:
    """By a key of profile, bits in use and span, least first. Equals are one rank."""
    ranks: dict[str, list[Rank]] = {}
    for profile, spans in SPANS.items():
        best: dict[tuple[int, ...], list[tuple[int, Span]]] = {}
        for taken in MASKS:
            free = [(key(profile, taken, s), s) for s in spans if not mig.mask(s) & taken]
            if free:
                least, span = min(free)
                best.setdefault(least, []).append((taken, span))
        ranks[profile] = [tuple(best[least]) for least in sorted(best)]
    return ranks


def ours(mix: Mix) -> dict[str, list[Rank]]:
    """As the planner does: by the same functions of the core."""
    return {
        profile: [
            ((taken, slices.spots(mix=mix, profile=profile, taken=taken)[0].span),)
            for taken in slices.in_order(mix=mix, profile=profile, masks=MASKS)
        ]
        for profile in PROFILES
    }
