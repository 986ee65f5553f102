"""What a gap on a shared device is worth, given the shares that are asked for.

To cut devices into the asked shares with the fewest devices is a linear program (cutting stock,
Gilmore and Gomory 1961). Its dual gives each size of share a price: a device has price 1, and no
set of shares that fits on one is worth more. A gap is worth the dearest set that fits into it.
A gap of 190 that nobody can use is worth 0, however large it looks; so a share of 810 costs a
whole device, and one of 160 goes beside it for nothing. Exact fractions, so the answer is one.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from scheduler.core.units import ONE_MILLI

PRICE = 1_000_000
"""The price of one empty device."""

STEP = ONE_MILLI // 100
"""Prices are found on a grid of hundredths; a share is rounded up to it."""

LENGTH = ONE_MILLI // STEP

MOST_SIZES = 24
"""Sizes that get a price of their own: those that ask for most in sum."""

MOST_ROUNDS = 400
"""The best found so far is taken after that many pivots; some dozens are usual."""

Pattern = tuple[int, ...]


Dearest = Callable[[list[int]], tuple[int, Pattern]]
"""Given a price for each kind of piece: the most that fits on one device, and how many of each."""


class Fewest(NamedTuple):
    """The plan with the fewest devices. Of each kind: `prices`; of each pattern: how many."""

    prices: tuple[Fraction, ...]
    patterns: tuple[tuple[Pattern, Fraction], ...]


class Cut(NamedTuple):
    """`Fewest` for shares, whose kinds are their sizes."""

    sizes: tuple[int, ...]
    prices: tuple[Fraction, ...]
    patterns: tuple[tuple[Pattern, Fraction], ...]


def gap_prices(demand: Mapping[int, int]) -> list[int]:
    """The worth of a device with 0..1000 thousandths free, in millionths of an empty one.

    `demand` counts the shares asked for, by thousandths.
    """
    steps: dict[int, int] = {}
    for milli, count in demand.items():
        if 0 < milli < ONE_MILLI and count > 0:
            size = -(-milli // STEP)
            if size < LENGTH:
                steps[size] = steps.get(size, 0) + count
    cut = cheapest_cut(steps)
    rounded = [int(price * PRICE) for price in cut.prices]
    worth, _ = _dearest(cut.sizes, rounded)
    prices = [min(worth[milli // STEP], PRICE) for milli in range(ONE_MILLI + 1)]
    prices[ONE_MILLI] = PRICE
    return prices


def cheapest_cut(demand: Mapping[int, int]) -> Cut:
    """The fewest devices for shares; sizes are hundredths of a device."""
    heaviest = sorted(demand, key=lambda size: (-size * demand[size], size))[:MOST_SIZES]
    sizes = tuple(sorted(heaviest))

    def dearest(prices: list[int]) -> tuple[int, Pattern]:
        worth, pattern = _dearest(sizes, prices)
        return worth[LENGTH], pattern

    fewest = fewest_devices(
        demand=[demand[size] for size in sizes],
        alone=[LENGTH // size for size in sizes],
        dearest=dearest,
    )
    return Cut(sizes, fewest.prices, fewest.patterns)


def fewest_devices(*, demand: Sequence[int], alone: Sequence[int], dearest: Dearest) -> Fewest:
    """Solve the program by column generation.

    `demand` counts the pieces asked for of each kind; so many of one kind as `alone` says fill a
    device that has no other.
    """
    basis: list[Pattern] = []
    inverse: list[list[Fraction]] = []
    for i, copies in enumerate(alone):
        basis.append(tuple(copies if j == i else 0 for j in range(len(alone))))
        inverse.append([Fraction(int(j == i), copies) for j in range(len(alone))])
    amounts = [row[i] * demand[i] for i, row in enumerate(inverse)]
    prices = [Fraction(1, copies) for copies in alone]
    for _ in range(MOST_ROUNDS):
        scale = lcm(*(price.denominator for price in prices))
        worth, entering = dearest([int(price * scale) for price in prices])
        if worth <= scale:
            break
        gain = Fraction(worth, scale) - 1
        change = [_dot(row, entering) for row in inverse]
        ratio = {i: amounts[i] / part for i, part in enumerate(change) if part > 0}
        leaving = min(ratio, key=lambda i: (ratio[i], i))
        pivot = [x / change[leaving] if x else x for x in inverse[leaving]]
        amount = ratio[leaving]
        for i, part in enumerate(change):
            if i != leaving and part:
                inverse[i] = [
                    x - part * y if y else x for x, y in zip(inverse[i], pivot, strict=True)
                ]
                amounts[i] -= part * amount
        prices = [p - gain * y if y else p for p, y in zip(prices, pivot, strict=True)]
        basis[leaving], inverse[leaving], amounts[leaving] = entering, pivot, amount
    used = tuple((basis[i], x) for i, x in enumerate(amounts) if x)
    return Fewest(tuple(prices), used)


def _dot(row: list[Fraction], pattern: Pattern) -> Fraction:
    pairs = zip(row, pattern, strict=True)
    return sum((x * count for x, count in pairs if count and x), Fraction(0))


def _dearest(sizes: tuple[int, ...], prices: list[int]) -> tuple[list[int], Pattern]:
    """The worth of each length, and the set of shares that makes that of a whole device."""
    worth = [0] * (LENGTH + 1)
    last = [-1] * (LENGTH + 1)
    priced = [(i, size, prices[i]) for i, size in enumerate(sizes) if prices[i] > 0]
    for length in range(1, LENGTH + 1):
        most, by = worth[length - 1], -1
        for i, size, price in priced:
            if size <= length and worth[length - size] + price > most:
                most, by = worth[length - size] + price, i
        worth[length], last[length] = most, by
    counts = [0] * len(sizes)
    length = LENGTH
    while length > 0:
        by = last[length]
        if by >= 0:
            counts[by] += 1
        length -= sizes[by] if by >= 0 else 1
    return worth, tuple(counts)
