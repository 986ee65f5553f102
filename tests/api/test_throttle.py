"""How often one may ask for what costs much of a process."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.kernel.throttle import Throttle, TooOften

AT = datetime(2026, 11, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_so_many_in_each_window_for_each_who_asks() -> None:
    throttle = Throttle(most=2, window=timedelta(minutes=1))
    throttle.take(who="ben", at=AT)
    throttle.take(who="ben", at=AT + 10 * SECOND)
    with pytest.raises(TooOften) as refused:
        throttle.take(who="ben", at=AT + 30 * SECOND)
    assert refused.value.wait == 30
    assert refused.value.message == (
        "At most 2 of these in 60 s; the next one may be asked for in 30 s."
    )
    throttle.take(who="ada", at=AT + 30 * SECOND)
    throttle.take(who="ben", at=AT + 60 * SECOND)
    with pytest.raises(TooOften) as refused:
        throttle.take(who="ben", at=AT + 69.5 * SECOND)
    assert refused.value.wait == 1


def test_who_is_refused_is_not_counted() -> None:
    throttle = Throttle(most=1, window=timedelta(minutes=1))
    throttle.take(who="ben", at=AT)
    for seconds in (1, 20, 59):
        with pytest.raises(TooOften):
            throttle.take(who="ben", at=AT + seconds * SECOND)
    throttle.take(who="ben", at=AT + 60 * SECOND)


def test_those_who_have_not_asked_for_long_are_forgotten() -> None:
    throttle = Throttle(most=1, window=timedelta(minutes=1))
    for number in range(1001):
        throttle.take(who=f"user {number}", at=AT)
    throttle.take(who="ben", at=AT + 61 * SECOND)
    assert list(throttle._asked) == ["ben"]
