"""Where the least harmful victims would have others stay, and are not enough: who gives most."""

import pytest

from tests.core.build import Outcome, Quota, decide, job, node, pods, queue, runs, snapshot


def reclaim(held: list[int], *, over: int, asks: int, elsewhere: int = 0) -> Outcome:
    """A project that borrows so many runs r1, r2 and so on, of so many devices each, on the one
    node; `elsewhere` are free on another. Whose these are asks for some of them, for one pod."""
    nodes = [node("n1", gpus=sum(held))]
    if elsewhere:
        nodes.append(node("n2", gpus=elsewhere))
    devices = iter(f"n1/{nth}" for nth in range(sum(held)))
    holding = [
        runs(f"r{nth}", "b", *(next(devices) for _ in range(count)), since_s=100)
        for nth, count in enumerate(held, 1)
    ]
    borrows = queue("b", h100=Quota(sum(held) - over, borrow=None))
    queues = [queue("a", h100=over), borrows]
    pending = [job("w", "a", pods(gpus=asks))]
    return decide(snapshot(nodes=nodes, queues=queues, holding=holding, pending=pending))


@pytest.mark.parametrize("elsewhere", [0, 4], ids=["room", "quota alone"])
@pytest.mark.parametrize(
    ("held", "over", "asks", "expected"),
    [
        ([1, 3], 3, 2, ["r2"]),
        ([2, 2, 3], 3, 3, ["r3"]),
        ([1, 1, 2], 3, 3, ["r1", "r3"]),
        ([1, 2, 2], 4, 4, ["r2", "r3"]),
    ],
    ids=str,
)
def test_who_gives_most_goes_where_the_others_are_not_enough(
    held: list[int], over: int, asks: int, expected: list[str], elsewhere: int
) -> None:
    made = reclaim(held, over=over, asks=asks, elsewhere=elsewhere)
    assert sorted(victim for victim, _, _ in made.victims()) == expected


def test_a_pod_does_not_go_a_second_time_with_its_workload() -> None:
    """Of `e` one pod may go by itself. Were what that holds counted twice, there would be room."""
    elastic = pods(3, least=2, cores=10)
    holding = [
        runs("e", "b", "n1/0", "n1/1", "n1/2", cores=10, of=elastic, since_s=200),
        runs("x", "b", "n1/3", "n1/4", cores=8, since_s=100),
    ]
    made = decide(
        snapshot(
            nodes=[node("n1", gpus=5, cores=46)],
            queues=[queue("a", h100=4), queue("b", h100=Quota(1, borrow=None))],
            holding=holding,
            pending=[job("w", "a", pods(gpus=1, cores=40))],
        )
    )
    assert made.victims() == []
    assert not made.waits("w")
