"""What gaps are worth, against each way to cut a device."""

from fractions import Fraction
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.node.prices import LENGTH, PRICE, cheapest_cut, gap_prices
from scheduler.core.units import ONE_MILLI

FEW = settings(max_examples=60, deadline=None)


@FEW
@given(st.dictionaries(st.integers(8, 99), st.integers(1, 60), min_size=1, max_size=5))
def test_the_prices_prove_that_no_cut_needs_fewer_devices(demand: dict[int, int]) -> None:
    cut = cheapest_cut(demand)
    fitting = product(*(range(LENGTH // size + 1) for size in cut.sizes))
    for pattern in fitting:
        if sum(n * size for n, size in zip(pattern, cut.sizes, strict=True)) <= LENGTH:
            assert sum(n * p for n, p in zip(pattern, cut.prices, strict=True)) <= 1
    for i, size in enumerate(cut.sizes):
        assert sum(amount * pattern[i] for pattern, amount in cut.patterns) == demand[size]
    used = sum((amount for _, amount in cut.patterns), Fraction(0))
    assert all(amount > 0 for _, amount in cut.patterns)
    assert used == sum(p * demand[s] for s, p in zip(cut.sizes, cut.prices, strict=True))


@FEW
@given(st.dictionaries(st.integers(1, 999), st.integers(1, 99), max_size=30))
def test_a_larger_gap_is_worth_no_less(demand: dict[int, int]) -> None:
    prices = gap_prices(demand)
    assert prices == sorted(prices)
    assert prices[0] == 0
    assert prices[ONE_MILLI] == PRICE


def test_a_gap_that_nobody_can_use_is_worth_nothing() -> None:
    prices = gap_prices({810: 100, 470: 100, 160: 5})
    assert prices[190] == 0
    assert prices[530] == PRICE // 2
