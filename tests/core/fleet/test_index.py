"""A pool is in order whenever somebody looks, however many entries have come and gone since."""

import pickle
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.fleet.index import Entry, Free, Key, Pool
from scheduler.core.fleet.world import World
from scheduler.core.snapshot import HoldingView, Snapshot
from scheduler.core.units import ClusterId
from tests.core.drawn.fleets import snapshots
from tests.core.test_memory import replaced

KEY = Key(ClusterId("here"), Free.PART, "A100")


def entries(count: int, *, level: int) -> list[Entry]:
    """One a node; every fourth node has two devices with as much free."""
    found = [(level + rank % 7, 1000 * (rank % 5), rank) for rank in range(count)]
    return found + found[::4]


@pytest.mark.parametrize("changes", [1, 3, 30, 300])
def test_a_pool_is_in_order_after_few_changes_and_after_many(changes: int) -> None:
    had = entries(300, level=10)
    pool = Pool(KEY, reversed(had), number=0)
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
    pool = Pool(KEY, had, number=0)
    pool.add((5, 0, 1))
    pool.discard((5, 0, 1))
    assert list(pool.entries) == sorted(had)


def test_changes_that_nobody_asks_about_do_not_pile_up() -> None:
    pool = Pool(KEY, entries(20, level=10), number=0)
    sizes = []
    for nth in range(1, 10_001):
        pool.add((nth, 0, 1))
        pool.discard((nth, 0, 1))
        if nth % 2000 == 0:
            sizes.append(len(pickle.dumps(pool)))
    assert max(sizes) < 2 * sizes[0]
    assert list(pool.entries) == sorted(entries(20, level=10))


def test_of_two_devices_with_as_much_free_one_may_go() -> None:
    pool = Pool(KEY, [(5, 0, 1), (5, 0, 1)], number=0)
    pool.discard((5, 0, 1))
    assert list(pool.entries) == [(5, 0, 1)]


@pytest.mark.parametrize("others", [0, 300])
def test_a_twin_does_not_change_with_the_pool(others: int) -> None:
    had = entries(others, level=10)
    pool = Pool(KEY, had, number=0)
    pool.add((5, 0, 1))
    twin = pool.twin()
    pool.discard((5, 0, 1))
    assert list(twin.entries) == sorted([*had, (5, 0, 1)])
    assert (twin.total, list(pool.entries)) == (pool.total + 5, sorted(had))


@settings(deadline=None)
@given(snapshots(12), st.integers(0, 2**32))
def test_an_index_made_like_that_of_another_world_is_as_one_made_from_nothing(
    of: Snapshot, seed: int
) -> None:
    """Of one that holds other work, that has moved since, or has not followed to these nodes."""
    pick = Random(seed)

    def holding() -> list[HoldingView]:
        return [held for held in of.holding if pick.random() < 0.7]

    def let_go(world: World) -> None:
        world.rooms()
        placements = (p for held in of.holding[::3] for p in held.placements)
        world.move((False, placement) for placement in placements)

    other = World(of)
    assert other.follow(snapshot=of, holding=holding())
    other.index()
    let_go(other)
    after = pick.choice((of, replaced(of, pick)))
    if pick.random() < 0.7:
        assert other.follow(snapshot=after, holding=holding())
        other.held()
    world, anew, left = World(after), World(after), holding()
    for each in (world, anew):
        assert each.follow(snapshot=after, holding=left)
        let_go(each)
    assert world.index(others=(world, other)).pools() == anew.index().pools()
    ranks = [{id: room.rank for id, room in of.rooms().items()} for of in (world, anew)]
    assert ranks[0] == ranks[1]
