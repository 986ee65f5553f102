"""What has come and what has gone, whatever has moved; and the faults that come with it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core import since
from scheduler.core.faults import faults
from scheduler.core.since import Roster, Since
from tests.core.build import node, queue, runs, snapshot


@pytest.fixture(scope="module", autouse=True)
def blocks_of_three() -> Iterator[None]:
    """So that a dozen things are several blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(since, "_BLOCK", 3)
        yield


class Thing:
    """Equal to itself alone."""


THINGS = [Thing() for _ in range(12)]
lists = st.lists(st.integers(0, 11), unique=True).map(lambda some: [THINGS[n] for n in some])


@given(st.lists(lists, min_size=1, max_size=5))
def test_it_is_what_one_list_has_and_the_other_has_not(listed: list[list[Thing]]) -> None:
    roster, before = Roster[Thing](), set[Thing]()
    for now in listed:
        roster.follow(now)
        assert set(roster.come) == {*now} - before
        assert set(roster.gone) == before - {*now}
        assert len(roster.come) + len(roster.gone) == len({*now} ^ before)
        before = {*now}


@given(lists, lists, lists)
def test_it_may_be_read_from_a_roster_that_has_gone_from_the_same_list_to_the_same(
    first: list[Thing], other: list[Thing], last: list[Thing]
) -> None:
    ahead, along, astray = Roster[Thing](), Roster[Thing](), Roster[Thing]()
    for roster, begin in ((ahead, first), (along, first), (astray, other)):
        roster.follow(begin)
    ahead.follow(last)
    along.follow(last, like=ahead)
    astray.follow(last, like=ahead)
    assert (along.come, along.gone) == (ahead.come, ahead.gone)
    assert along.come is ahead.come
    assert set(astray.come) == {*last} - {*other}
    assert set(astray.gone) == {*other} - {*last}


class Named(NamedTuple):
    """Equal to what has the same name and is as large."""

    name: int
    size: int


@given(st.lists(st.dictionaries(st.integers(0, 11), st.integers(0, 1)), min_size=1, max_size=5))
def test_equal_things_may_pass_for_each_other(listed: list[dict[int, int]]) -> None:
    roster, there = Roster[Named](), dict[int, Named]()
    for sizes in listed:
        now = [Named(name, size) for name, size in sizes.items()]
        roster.follow(now)
        for each in roster.gone:
            assert there.pop(each.name) == each
        there |= {each.name: each for each in roster.come}
        assert there == {each.name: each for each in now}


def test_who_holds_on_a_node_that_has_gone_is_told() -> None:
    follows, n1, n2 = Since(), node("n1", gpus=1), node("n2", gpus=1)
    both = snapshot(nodes=[n1, n2], queues=[queue("a", h100=2)])
    one = replace(both, clusters=(replace(both.clusters[0], nodes=(n1,)),))
    for of in (both, one):
        assert follows.faults(of) == ()
    lost = replace(one, holding=(runs("r", "a", "n2/0"),))
    assert follows.faults(lost) == faults(lost) != ()


def test_who_holds_what_a_node_has_lost_is_told_once_that_is_not_counted() -> None:
    follows, whole = Since(), node("n1", gpus=1)
    of = snapshot(nodes=[whole], queues=[queue("a", h100=2)], holding=[runs("r", "a", "n1/1")])
    counts = replace(
        of, clusters=(replace(of.clusters[0], nodes=(replace(whole, counted=True),)),)
    )
    assert follows.faults(counts) == faults(counts) == ()
    assert follows.faults(of) == faults(of) != ()
