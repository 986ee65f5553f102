"""Who is next, between projects and within one."""

from dataclasses import replace

import pytest

from scheduler.core.snapshot import HoldingView, PastView, PendingView, QueueView
from scheduler.core.units import FlavorId
from tests.core.build import Quota, decide, job, node, pods, queue, runs, snapshot

NODES = [node("n1", gpus=8)]
FREE = Quota(0, borrow=None)


def order(
    pending: list[PendingView], queues: list[QueueView], holding: list[HoldingView] | None = None
) -> list[str]:
    of = snapshot(nodes=NODES, queues=queues, pending=pending, holding=holding or [])
    return decide(of).started()


@pytest.mark.parametrize(
    ("pending", "expected"),
    [
        pytest.param(
            [job("old", submitted_at=1), job("urgent", submitted_at=2, priority=9)],
            ["urgent", "old"],
            id="priority before age",
        ),
        pytest.param(
            [job("second", submitted_at=2), job("first", submitted_at=1)],
            ["first", "second"],
            id="age at equal priority",
        ),
        pytest.param(
            [job("z", submitted_at=1), job("y", submitted_at=1)], ["y", "z"], id="id at equal age"
        ),
    ],
)
def test_within_a_project(pending: list[PendingView], expected: list[str]) -> None:
    assert order(pending, [queue("a", h100=8)]) == expected


@pytest.mark.parametrize(
    ("queues", "holding", "pending", "expected"),
    [
        pytest.param(
            [queue("a", h100=4), queue("b", h100=4)],
            [],
            [job("late", "a", submitted_at=2), job("early", "b", submitted_at=1)],
            ["early", "late"],
            id="age between projects within their nominal",
        ),
        pytest.param(
            [queue("a", h100=4), queue("b", h100=4)],
            [],
            [job("plain", "a"), job("urgent", "b", priority=5, submitted_at=9)],
            ["urgent", "plain"],
            id="priority between projects within their nominal",
        ),
        pytest.param(
            [queue("a", h100=FREE), queue("b", h100=8)],
            [],
            [job("borrows", "a", priority=9), job("owns", "b", submitted_at=9)],
            ["owns", "borrows"],
            id="what is guaranteed before what is borrowed, whatever the priority",
        ),
        pytest.param(
            [queue("a", h100=FREE), queue("b", h100=FREE), queue("c", h100=8)],
            [runs("r", "a", "n1/0", "n1/1")],
            [job("more", "a", submitted_at=1), job("first", "b", submitted_at=2)],
            ["first", "more"],
            id="the lower share of two borrowers",
        ),
        pytest.param(
            [queue("a", h100=FREE), queue("b", h100=FREE), queue("c", h100=8)],
            [runs("r", "a", "n1/0", "n1/1")],
            [job("urgent", "a", priority=1), job("plain", "b")],
            ["urgent", "plain"],
            id="priority before the share of two borrowers",
        ),
        pytest.param(
            [queue("a", weight=4, h100=FREE), queue("b", h100=FREE), queue("c", h100=8)],
            [runs("r", "a", "n1/0", "n1/1"), runs("s", "b", "n1/2")],
            [job("heavy", "a", submitted_at=2), job("light", "b", submitted_at=1)],
            ["heavy", "light"],
            id="the share by weight",
        ),
        pytest.param(
            [
                queue("a1", tenant="a", h100=FREE),
                queue("a2", tenant="a", h100=FREE),
                queue("b1", tenant="b", h100=FREE),
                queue("c", h100=8),
            ],
            [runs("r", "a1", "n1/0", "n1/1", "n1/2"), runs("s", "b1", "n1/3")],
            [job("sibling", "a2", submitted_at=1), job("other", "b1", submitted_at=2)],
            ["other", "sibling"],
            id="the tenant's share before the project's",
        ),
    ],
)
def test_between_projects(
    queues: list[QueueView],
    holding: list[HoldingView],
    pending: list[PendingView],
    expected: list[str],
) -> None:
    assert order(pending, queues, holding) == expected


def test_borrowers_take_turns_as_their_shares_grow() -> None:
    pending = [job(f"a{i}", "a", submitted_at=i) for i in range(4)]
    pending += [job(f"b{i}", "b", submitted_at=10 + i) for i in range(4)]
    queues = [queue("a", h100=FREE), queue("b", h100=FREE), queue("c", h100=8)]
    assert order(pending, queues) == ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3"]


def after(of: QueueView, hours: int) -> QueueView:
    return replace(of, past=(PastView(FlavorId("h100"), hours * 3_600_000),))


@pytest.mark.parametrize(
    ("a", "b", "holding", "expected"),
    [
        pytest.param(3, 2, [], ["b", "a"], id="who used less comes first"),
        pytest.param(2, 2, [], ["a", "b"], id="age, when both used as much"),
        pytest.param(
            3, 2, [runs("r", "b", "n1/0")], ["a", "b"], id="the share now before the past"
        ),
    ],
)
def test_between_equals_the_past_counts(
    a: int, b: int, holding: list[HoldingView], expected: list[str]
) -> None:
    queues = [after(queue("a", h100=FREE), a), after(queue("b", h100=FREE), b), queue("c", h100=8)]
    pending = [job("a", "a", submitted_at=1), job("b", "b", submitted_at=2)]
    assert order(pending, queues, holding) == expected


def test_a_heavier_project_may_have_used_more() -> None:
    queues = [after(queue("a", weight=2, h100=4), 3), after(queue("b", h100=4), 2)]
    pending = [job("b", "b", submitted_at=1), job("a", "a", submitted_at=2)]
    assert order(pending, queues) == ["a", "b"]


def test_two_who_want_one_device_alternate_as_each_uses_it() -> None:
    """Each turn is an hour of the only device, and what was used before is halved meanwhile."""
    past, turns = {"a": 0, "b": 0, "c": 0}, ""
    queues = [queue("a", h100=FREE), queue("b", h100=FREE), queue("c", h100=1)]
    for _ in range(8):
        now = [replace(q, past=(PastView(FlavorId("h100"), past[q.project]),)) for q in queues]
        pending = [job("a", "a"), job("b", "b")]
        of = snapshot(nodes=[node("n1", gpus=1)], queues=now, pending=pending)
        [started] = decide(of).started()
        past = {project: amount // 2 for project, amount in past.items()}
        past[started] += 3_600_000
        turns += started
    assert turns == "abababab"


def test_a_project_of_weight_two_gets_two_turns() -> None:
    pending = [job(f"a{i}", "a", submitted_at=i) for i in range(8)]
    pending += [job(f"b{i}", "b", submitted_at=i) for i in range(8)]
    queues = [queue("a", weight=3, h100=FREE), queue("b", h100=FREE), queue("c", h100=8)]
    started = order(pending, queues)
    assert len(started) == 8
    assert sum(name.startswith("a") for name in started) == 6


def test_a_smaller_request_behind_a_held_one_starts() -> None:
    pending = [job("big", "a", pods(gpus=8)), job("small", "a", submitted_at=1)]
    holding = [runs("r", "b", "n1/0")]
    queues = [queue("a", h100=8), queue("b", h100=1)]
    assert order(pending, queues, holding) == ["small"]
