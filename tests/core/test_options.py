"""Which combinations of flavors are tried for work of several pod sets."""

from scheduler.core.request import MOST_OPTIONS
from tests.core.build import T4, Outcome, decide, job, node, pods, queue, snapshot

QUEUE = queue("a", h100=9, a30=9, t4=9)


def four(*flavors: str) -> Outcome:
    """Four pods of four sets, which accept these, and two nodes of T4."""
    sets = [pods(flavors=accepted, name=f"s{nth}") for nth, accepted in enumerate(flavors)]
    nodes = [node(f"n{nth}", gpus=2, model=T4) for nth in range(2)]
    return decide(snapshot(nodes=nodes, queues=[QUEUE], pending=[job("w", "a", *sets)]))


def test_the_flavor_that_all_accept_last_is_tried_however_many_combinations_there_are() -> None:
    every = ["h100 a30 t4"] * 4
    assert MOST_OPTIONS < 3**4
    assert four(*every).started() == ["w"]


def test_a_flavor_that_one_of_them_does_not_accept_is_not() -> None:
    assert four("h100 a30 t4", "h100 a30 t4", "h100 a30 t4", "h100 a30").started() == []
