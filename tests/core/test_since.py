"""What has come and what has gone, whatever has moved."""

from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.since import Roster


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
