"""Whose turn it is, where each plan looks at some of many."""

from collections import Counter
from itertools import islice

from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler.core.turns import by_lot, in_turn


def test_few_among_many_are_found_first_alike_wherever_they_stand() -> None:
    """Nine side by side among 3,000, of which a plan looks at the first four that it finds."""
    counts = Counter[int]()
    for at in range(0, 900_000, 901):
        counts.update(islice((n for n in by_lot(range(3000), at=at) if 700 <= n < 709), 4))
    plans = sum(counts.values()) // 4
    assert counts.keys() == set(range(700, 709))
    assert min(counts.values()) > 0.7 * plans * 4 / 9


@given(st.integers(0, 300), st.integers(0, 10**12))
def test_by_lot_each_comes_once(count: int, at: int) -> None:
    assert sorted(by_lot(range(count), at=at)) == list(range(count))


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(1, 8), st.integers(1, 3600), st.integers(0, 2**33))
@example(count=300, most=1, seconds=901, begun_at=0)  # > 120,000 by the golden ratio
@example(count=80, most=8, seconds=10, begun_at=0)
def test_whatever_the_seconds_from_plan_to_plan_each_comes_up(
    count: int, most: int, seconds: int, begun_at: int
) -> None:
    left, plans = set(range(count)), 0
    while left:
        left -= set(in_turn(range(count), at=begun_at + plans * seconds, most=most))
        plans += 1
        assert plans <= 9000  # of 300 in 9,000 draws one is left out once in 10^10 times


@given(st.integers(0, 40), st.integers(1, 20), st.integers(0, 2**33))
def test_they_keep_their_order_and_none_comes_up_twice(count: int, most: int, at: int) -> None:
    found = in_turn(range(count), at=at, most=most)
    assert len(found) == len(set(found)) == min(count, most)
    assert found == [(found[0] + nth) % count for nth in range(len(found))]
    if count <= most:
        assert found == list(range(count))
