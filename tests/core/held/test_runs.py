"""What ends when, kept from one snapshot to the next and worked out as far as somebody asks."""

from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.held.runs import ORDER, OVERDUE_S, Ends, Run, Runs
from scheduler.core.memory import Memory
from scheduler.core.snapshot import Snapshot
from tests.core.build import AT, runs, snapshot
from tests.core.drawn.fleets import snapshots
from tests.core.test_memory import replaced


def limited(of: Snapshot, pick: Random) -> Snapshot:
    """Some have a limit that is over, just over, or to come."""
    limits = (None, 1, 60, OVERDUE_S, 3600, 10**6)
    holding = (replace(held, run_time_limit_s=pick.choice(limits)) for held in of.holding)
    return replace(of, holding=tuple(holding))


_id = attrgetter("id")


def one_by_one(of: Snapshot) -> list[Run]:
    return sorted(
        (Run.of(h, h.placements, at=of.at) for h in of.holding if h.placements), key=ORDER
    )


@settings(deadline=None)
@given(snapshots(12), st.integers(0, 2**32), st.integers(1, 5))
def test_each_snapshot_s_ends_are_in_their_order(of: Snapshot, seed: int, count: int) -> None:
    pick, memory = Random(seed), Memory()
    of = limited(of, pick)
    for _ in range(count):
        if not memory.look(of):
            ends = memory.ends(of)
            assert list(ends.runs(at=of.at)) == one_by_one(of)
            assert len(ends) == len(one_by_one(of))
            for project in {held.project for held in of.holding}:
                held_by = [h for h in of.holding if h.project == project and h.placements]
                assert sorted(ends.held_by(project), key=_id) == sorted(held_by, key=_id)
        of = replace(replaced(of, pick), at=of.at + pick.choice((0, 1, 59, OVERDUE_S, 4000)))


def test_who_contradicts_itself_and_holds_twice_ends_twice() -> None:
    twice = runs("w", "a", "n1/0", limit_s=60), runs("w", "a", "n1/0", limit_s=60)
    assert len(list(Ends(twice).runs(at=AT))) == len(Ends(twice)) == 2


def test_where_somebody_was_told_to_go_since_they_are_made_anew() -> None:
    of, memory = snapshot(holding=[runs("w", "a", "n1/0")]), Memory()
    memory.look(of)
    assert len(memory.ends(of)) == 1
    assert len(memory.ends(replace(of, holding=()))) == 0


@pytest.mark.parametrize(
    ("asked", "known"), [(0, 1), (2, 3), (slice(1, 3), 3), (slice(0, 9), 5), (slice(4, None), 5)]
)
def test_no_more_are_worked_out_than_are_asked_for(asked: int | slice, known: int) -> None:
    worked_out: list[Run] = []

    def each() -> Iterator[Run]:
        for run in all_five:
            worked_out.append(run)
            yield run

    all_five = [Run.of(runs(f"w{n}", "a", f"n{n}/0"), (), at=AT) for n in range(5)]
    lazy = Runs(each(), count=5)
    assert lazy[asked] == all_five[asked]
    assert len(worked_out) == known
    assert (list(lazy), len(lazy)) == (all_five, 5)
