"""Who waits for a better match is overtaken a bounded number of times, and it pays."""

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.node.shapes import Node, Seat, Shape
from tests.bench.arrivals import Arrivals, asked_milli
from tests.bench.patience import Patience, Seated

FEW = settings(max_examples=60, deadline=None)


def _play(pods: list[Shape], guard: int) -> tuple[list[Seated], Patience]:
    fleet = [Node(64_000, 4096, 0, (1000,) * 4) for _ in range(2)]
    queue = Patience(on=Arrivals(fleet), guard=guard)
    seated = [one for shape in pods for one in queue.arrive(shape)]
    return seated + queue.finish(), queue


@FEW
@given(
    pods=st.lists(
        st.sampled_from([810, 470, 1000, 1000]).map(lambda milli: Shape(1000, 64, 1, milli)),
        max_size=30,
    ),
    guard=st.integers(0, 12),
)
def test_nobody_is_overtaken_more_often_than_the_guard_allows(
    pods: list[Shape], guard: int
) -> None:
    seated, queue = _play(pods, guard)
    assert all(0 <= one.overtaken <= guard for one in seated)
    numbers = sorted([one.number for one in seated] + list(queue.stuck))
    assert numbers == list(range(len(pods)))


def test_without_overtaking_each_pod_is_seated_as_it_comes() -> None:
    pods = [Shape(1000, 64, 1, 810) for _ in range(6)]
    seated, _ = _play(pods, guard=0)
    assert [one.number for one in seated] == list(range(6))


def test_a_wasteful_pod_lets_whole_ones_go_first_when_devices_are_scarce() -> None:
    share, whole = Shape(1000, 64, 1, 810), Shape(1000, 64, 1)
    seated, queue = _play([share, share] + [whole] * 8, guard=50)
    assert sum(asked_milli(one.shape) for one in seated) == 8000
    assert set(queue.stuck.values()) == {share}


def test_what_leaves_a_worthless_gap_costs_a_whole_device() -> None:
    nodes = Arrivals([Node(64_000, 4096, 0, (1000,))])
    large, half = Shape(1000, 64, 1, 810), Shape(1000, 64, 1, 500)
    for shape in [large, half] * 8:
        nodes.see(shape)
    assert nodes.waste_milli(large, Seat(0, (0,))) == 190
    assert nodes.waste_milli(half, Seat(0, (0,))) == 0
