"""A pool is in order whenever somebody looks, however many entries have come and gone since."""

import pytest

from scheduler.core.index import Entry, Free, Key, Pool
from scheduler.core.units import ClusterId

KEY = Key(ClusterId("here"), Free.PART, "A100")


def entries(count: int, *, level: int) -> list[Entry]:
    """One a node; every fourth node has two devices with as much free."""
    found = [(level + rank % 7, 1000 * (rank % 5), rank) for rank in range(count)]
    return found + found[::4]


@pytest.mark.parametrize("changes", [1, 3, 30, 300])
def test_a_pool_is_in_order_after_few_changes_and_after_many(changes: int) -> None:
    had = entries(300, level=10)
    pool = Pool(KEY, reversed(had))
    gone, come = had[-changes:], entries(changes, level=12)
    for entry in gone:
        pool.discard(entry)
    for entry in come:
        pool.add(entry)
    left = had[: len(had) - changes] + come
    assert list(pool.entries) == sorted(left)
    assert pool.total == sum(level for level, _, _ in left)


@pytest.mark.parametrize("others", [0, 300])
def test_what_comes_and_goes_before_anybody_looks_was_never_there(others: int) -> None:
    had = entries(others, level=10)
    pool = Pool(KEY, had)
    pool.add((5, 0, 1))
    pool.discard((5, 0, 1))
    assert list(pool.entries) == sorted(had)


def test_of_two_devices_with_as_much_free_one_may_go() -> None:
    pool = Pool(KEY, [(5, 0, 1), (5, 0, 1)])
    pool.discard((5, 0, 1))
    assert list(pool.entries) == [(5, 0, 1)]


@pytest.mark.parametrize("others", [0, 300])
def test_a_twin_does_not_change_with_the_pool(others: int) -> None:
    had = entries(others, level=10)
    pool = Pool(KEY, had)
    pool.add((5, 0, 1))
    twin = pool.twin()
    pool.discard((5, 0, 1))
    assert list(twin.entries) == sorted([*had, (5, 0, 1)])
    assert (twin.total, list(pool.entries)) == (pool.total + 5, sorted(had))
