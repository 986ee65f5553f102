"""Nodes with work that can only be waited for: when one is cut anew all the same."""

from dataclasses import replace

from scheduler.core.held.runs import OVERDUE_S
from scheduler.core.moving.recut import Cost, Proposal
from scheduler.core.snapshot import HoldingView, NodeView
from scheduler.core.units import Span, WorkloadId
from tests.core.build import AT, job, node, pods
from tests.core.moving.recutting import HALF, SEVEN, fleet, next_step, proposed, small


def stays(name: str, at: str, *, left_s: int | None, since_s: int = 100) -> HoldingView:
    """Work that may not be preempted; None: it has no run-time limit."""
    limit_s = None if left_s is None else since_s + left_s
    return small(name, at, preemptible=False, since_s=since_s, limit_s=limit_s)


def test_where_no_node_can_be_emptied_at_once_one_that_is_sure_to_be_in_time_will_do() -> None:
    holding = [stays("x", "n1/0", left_s=None), stays("y", "n2/0", left_s=400)]
    made = proposed(empty_by=AT + 400, holding=holding)
    assert made is not None
    assert made.cost == Cost(made.cost.node, waits_for=((WorkloadId("y"), AT + 400),))
    assert (made.cost.node, made.cost.empty_at, made.cost.at_once) == ("n2", AT + 400, False)
    assert proposed(empty_by=AT + 399, holding=holding) is proposed(holding=holding) is None
    step = next_step(fleet(holding=holding), {HALF: 4}, empty_by=AT + 400)
    assert step is not None
    assert step.cost == made.cost


def test_nobody_knows_when_a_node_is_empty_with_pods_of_others_or_any_work_without_a_limit() -> (
    None
):
    two = node("n1", 2, cut=SEVEN)
    others = replace(two, foreign=((two.devices[1].id, Span(0, 1)),))

    def of(*holding: HoldingView, on: NodeView = two) -> Proposal | None:
        return proposed(empty_by=AT + 10**6, nodes=[on], holding=holding)

    bounded = stays("x", "n1/0", left_s=400)
    assert of(bounded) is not None
    assert of(bounded, stays("y", "n1/1", left_s=None)) is None
    assert of(stays("x", "n1/0", since_s=10**6, left_s=-OVERDUE_S - 1)) is None
    assert of(bounded, on=others) is None


def test_a_node_that_is_waited_for_comes_after_all_that_can_be_emptied_at_once() -> None:
    dear = small("y", "n2/0", since_s=10**6)
    made = proposed(empty_by=AT + 400, holding=[stays("x", "n1/0", left_s=1), dear])
    assert made is not None
    assert made.cost.node == "n2"


def test_of_those_that_one_is_taken_that_takes_least_gpu_time_from_others() -> None:
    """What is lost, and what may stand idle: two devices for 100 s are 200 s of one."""
    sooner = [stays("x", "n1/0", left_s=300), small("y", "n1/1", since_s=7 * 199)]
    later = stays("z", "n2/0", left_s=400)
    made = proposed(empty_by=AT + 400, holding=[*sooner, later])
    assert made is not None
    assert made.cost.node == "n1"
    dearer = replace(sooner[1], started_at=AT - 7 * 201)
    made = proposed(empty_by=AT + 400, holding=[sooner[0], dearer, later])
    assert made is not None
    assert made.cost.node == "n2"


def test_no_room_is_kept_for_work_that_is_waited_for() -> None:
    """But for what is stopped there is."""
    pending = [job(f"w{i}", "a", pods(flavors="3g")) for i in range(4)]

    def of(held: HoldingView) -> Proposal | None:
        nodes = [node("n1", 2, cut=SEVEN)]
        return proposed(empty_by=AT + 400, nodes=nodes, pending=pending, holding=[held])

    waited, stopped = of(stays("x", "n1/0", left_s=400)), of(small("x", "n1/0"))
    assert waited is not None
    assert stopped is not None
    assert (waited.serves, waited.ways, stopped.serves) == (4, (HALF, HALF), 3)
