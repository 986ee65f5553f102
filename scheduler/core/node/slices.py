"""Where a MIG slice is cut, so that what stays free stays usable: prices of slices.

The sibling of `prices`, for devices on which a slice may start at some places only. The profiles
that are expected get prices such that no set which fits on a device is worth more than the device
(the dual of cutting stock). That leaves many places alike; so half of the value are the starts
that are left, each counted as often as its profile is asked for. For a device with bits in use:

    value = price of the dearest set that still fits
            + sum of weight * starts left / sum of weight * starts, over the profiles

The slice goes to where the value falls least; of equals to the fullest device, then to the lowest
start. What fits is never refused. As long as all that is expected has room at once, an empty
device is opened last: there is no need to waste a whole one. All in integers; nodes and quota are
not known here.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache, partial
from math import lcm
from typing import NamedTuple

from scheduler.core.demand import Demand
from scheduler.core.node import mig
from scheduler.core.node.prices import Fewest, Pattern, fewest_devices
from scheduler.core.snapshot import FlavorView
from scheduler.core.units import Span

SHARES = 1000
"""Weights are parts of this, plus one: a fleet's mix changes slowly, and what it costs is kept."""


class Mix(NamedTuple):
    """How often each profile of a board is asked for, small to large; with media as without.

    `scarce`: not all of it has room at once.
    """

    board: str
    weights: tuple[int, ...]
    scarce: bool


class Spot(NamedTuple):
    """A legal free span on a device. The least of several is where a slice should go.

    `loss` compares within one mix; `left` counts the memory slices that were free.
    """

    loss: int
    left: int
    span: Span


def mix_of(*, model: str, asked: Mapping[str, int], devices: int) -> Mix:
    """The mix of so many slices of each profile, for so many devices; even when there are none.

    Raises ValueError for a model without MIG, or a profile that the model does not have.
    """
    board = mig.board(model=model)
    if board is None:
        raise ValueError(f"{model} has no MIG")
    counts: Counter[str] = Counter()
    for name, count in asked.items():
        profile = mig.profile(model=model, name=name)
        if profile is None:
            raise ValueError(f"{model} has no MIG profile {name}")
        counts[profile.name.removesuffix(mig.MEDIA)] += count
    total = counts.total() or 1
    names = [part.name for part in _profiles(board.name)]
    weights = tuple(1 + SHARES * counts[name] // total for name in names)
    priced = zip(names, prices(board.name, weights).prices, strict=True)
    needed = sum(counts[name] * price for name, price in priced)
    return Mix(board.name, weights, scarce=needed > devices)


@lru_cache(maxsize=1 << 14)
def spots(*, mix: Mix, profile: str, taken: int) -> tuple[Spot, ...]:
    """Every free legal span on a device with these bits in use, where it costs least first."""
    values = _values(mix.board, mix.weights)
    full = len(values) - 1
    bits = taken & full
    free = (full & ~bits).bit_count()
    opening = 0 if bits or mix.scarce else values[0]
    found = (
        Spot(opening + values[bits] - values[bits | mig.mask(span)], free, span)
        for span in mig.legal_spans(model=mix.board, profile=profile)
        if not mig.mask(span) & bits
    )
    return tuple(sorted(found))


def in_order(*, mix: Mix, profile: str, masks: Iterable[int]) -> list[int]:
    """Of devices by their bits in use: those that a slice can join, where it costs least first."""
    found = ((spots(mix=mix, profile=profile, taken=taken)[:1], taken) for taken in masks)
    ranked = sorted((spot.loss, spot.left, taken) for first, taken in found for spot in first)
    return [taken for _, _, taken in ranked]


class Slices:
    """The same for the flavors of a snapshot: what waits and what runs is expected again."""

    def __init__(
        self,
        *,
        flavors: Iterable[FlavorView],
        demand: Callable[[], Demand],
        devices: Callable[[str], int],
    ) -> None:
        """`demand` tells that of the snapshot, `devices` how many of a model are cut on demand."""
        self._flavors = flavors
        self._demand = demand
        self._devices = devices
        self._asked: dict[str, Counter[str]] | None = None
        self._mixes: dict[str, Mix] = {}

    def cheapest(self, *, flavor: FlavorView, taken: int) -> Spot | None:
        """None when no start is free, also for a flavor that is no slice."""
        mix = self.mix(flavor)
        found = spots(mix=mix, profile=flavor.profile, taken=taken) if mix else ()
        return found[0] if found else None

    def in_order(self, *, flavor: FlavorView, masks: Iterable[int]) -> list[int]:
        """None of them for a flavor that is no slice."""
        mix = self.mix(flavor)
        return in_order(mix=mix, profile=flavor.profile, masks=masks) if mix else []

    def mix(self, flavor: FlavorView) -> Mix | None:
        """That of the flavor's model; None when it is no slice. Nothing is counted before somebody
        asks."""
        model = flavor.model
        if model not in self._mixes:
            if mig.profile(model=model, name=flavor.profile) is None:
                return None
            if self._asked is None:
                self._asked = _asked(self._demand(), self._flavors)
            self._mixes[model] = mix_of(
                model=model, asked=self._asked.get(model, {}), devices=self._devices(model)
            )
        return self._mixes[model]


def _asked(demand: Demand, flavors: Iterable[FlavorView]) -> dict[str, Counter[str]]:
    """By model and profile. A pod that takes several profiles of a model counts for the first."""
    by_id = {flavor.id: flavor for flavor in flavors}
    asked: dict[str, Counter[str]] = {}
    for accepted, count in demand.counts.items():
        firsts: dict[str, str] = {}
        for flavor in (by_id[id] for id in accepted if id in by_id):
            if mig.profile(model=flavor.model, name=flavor.profile) is not None:
                firsts.setdefault(flavor.model, flavor.profile)
        for model, profile in firsts.items():
            asked.setdefault(model, Counter())[profile] += count
    return asked


@lru_cache(maxsize=64)
def prices(board: str, weights: tuple[int, ...]) -> Fewest:
    """Of the profiles of a mix: what so many slices of each as it weighs need."""
    return fewest_devices(
        demand=weights,
        alone=[part.at_most for part in _profiles(board)],
        dearest=partial(_dearest, _starts(board)),
    )


@lru_cache(maxsize=64)
def _values(board: str, weights: tuple[int, ...]) -> tuple[int, ...]:
    """By the bits in use, in a unit of the mix's own that makes them whole."""
    starts, found = _starts(board), prices(board, weights).prices
    unit = lcm(*(price.denominator for price in found))
    worth = _worth(starts, [int(price * unit) for price in found])
    left = [
        sum(
            weight * sum(1 for bits in of if not bits & taken)
            for weight, of in zip(weights, starts, strict=True)
        )
        for taken in range(len(worth))
    ]
    return tuple(w * left[0] + n * worth[0] for w, n in zip(worth, left, strict=True))


_Starts = tuple[tuple[int, ...], ...]


def _dearest(starts: _Starts, prices: list[int]) -> tuple[int, Pattern]:
    worth, taken = _worth(starts, prices), 0
    counts = [0] * len(starts)
    while worth[taken]:
        kind, taken = next(
            (kind, taken | bits)
            for kind, of in enumerate(starts)
            for bits in of
            if not bits & taken and worth[taken] == prices[kind] + worth[taken | bits]
        )
        counts[kind] += 1
    return worth[0], tuple(counts)


def _worth(starts: _Starts, prices: list[int]) -> list[int]:
    """By the bits in use, the price of the dearest set that fits beside them."""
    pieces = [
        (bits, price) for of, price in zip(starts, prices, strict=True) for bits in of if price > 0
    ]
    worth = [0] * (1 + max(bits for of in starts for bits in of))
    for taken in range(len(worth) - 1, -1, -1):
        fitting = (price + worth[taken | bits] for bits, price in pieces if not bits & taken)
        worth[taken] = max(fitting, default=0)
    return worth


@cache
def _profiles(board: str) -> tuple[mig.Profile, ...]:
    found = mig.board(model=board)
    return tuple(part for part in found.profiles if not part.media) if found else ()


@cache
def _starts(board: str) -> _Starts:
    """The bits of each legal span, by profile of a mix."""
    return tuple(
        tuple(map(mig.mask, mig.legal_spans(model=board, profile=part.name)))
        for part in _profiles(board)
    )
