"""Who waits ahead in a project, round after round."""

import pytest

from scheduler.core.admitting.claims import Claims
from scheduler.core.quota.guarantees import BORROWED, OWN
from scheduler.core.request import Option
from scheduler.core.snapshot import PendingView
from scheduler.core.units import FlavorId
from tests.core.build import BY_NAME, job

H100, CPU = (BY_NAME[FlavorId(name)] for name in ("h100", "cpu"))


def option(*flavors: str) -> Option:
    return Option(tuple(BY_NAME[FlavorId(name)] for name in flavors), (), ())


def waits(priority: int, project: str = "a") -> PendingView:
    return job("w", project, priority=priority)


@pytest.mark.parametrize(
    ("asked", "priority", "behind"),
    [
        (option("h100"), 1, True),
        (option("h100"), 2, False),
        (option("a30"), 1, False),
        (option("cpu"), 1, True),
        (option("a30", "h100"), 1, True),
    ],
    ids=["less urgent", "as urgent", "other hardware", "cores of any node", "one set of two"],
)
def test_less_urgent_work_for_the_same_hardware_is_behind(
    asked: Option, priority: int, behind: bool
) -> None:
    claims = Claims()
    claims.add(waits(2), [H100])
    assert claims.is_behind(waits(priority), asked) is behind
    assert not claims.is_behind(waits(priority, "b"), asked)
    assert not claims.was_behind(waits(priority), asked)


def test_work_for_cores_alone_claims_those_of_all_nodes_that_others_use_for_cores() -> None:
    claims = Claims()
    claims.add(waits(2), [CPU])
    assert claims.is_behind(waits(1), option("cpu"))
    assert claims.is_behind(waits(1), option("h100"))


def test_a_round_begins_without_claims_and_those_before_are_remembered() -> None:
    claims, asked = Claims(), option("h100")
    claims.begin(tier=OWN)
    claims.add(waits(3), [H100])
    claims.begin(tier=1)
    assert not claims.is_behind(waits(2), asked)
    assert claims.was_behind(waits(2), asked)
    claims.add(waits(1), [H100])
    claims.begin(tier=1)
    assert claims.was_behind(waits(2), asked), "the most urgent one counts"
    claims.clear()
    assert not claims.was_behind(waits(2), asked)


def test_what_borrows_goes_by_the_round_before() -> None:
    claims, asked = Claims(), option("h100")
    claims.add(waits(2), [H100])
    claims.begin(tier=BORROWED)
    assert claims.is_behind(waits(1), asked)
