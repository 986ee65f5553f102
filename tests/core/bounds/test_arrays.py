"""Arrays, of which so many run at once, and work that waits for the end of others."""

from dataclasses import replace

import pytest

from scheduler.core.bounds.caps import Caps
from scheduler.core.cycle import plan
from scheduler.core.laws.invariants import violations
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode, describe
from scheduler.core.simulating.estimate import Basis, Forecast, forecast
from scheduler.core.snapshot import HoldingView, PendingView, Snapshot
from scheduler.core.submitted import ArrayView
from scheduler.core.units import ArrayId
from scheduler.core.waits import UnmetView
from tests.core.build import decide, job, node, pods, queue, runs, snapshot
from tests.core.sweep.test_sweep import ALL, agree, by_hand

TWO = ArrayView(ArrayId("array"), 2)


def fleet(*pending: PendingView, holding: tuple[HoldingView, ...] = ()) -> Snapshot:
    """Sixteen H100s on two nodes, all of them project a's."""
    return snapshot(
        nodes=[node("n1", gpus=8), node("n2", gpus=8)],
        queues=[queue("a", h100=16, cpu=64), queue("b", h100=0)],
        pending=pending,
        holding=holding,
    )


def elements(count: int, array: ArrayView = TWO, *, priority: int = 0) -> list[PendingView]:
    waiting = [job(f"{array.id}{i}", priority=priority) for i in range(count)]
    return [replace(each, array=array) for each in waiting]


class TestMostAtOnce:
    def test_no_more_start_and_the_rest_is_told_how_many_run(self) -> None:
        made = decide(fleet(*elements(4)))
        assert made.started() == ["array0", "array1"]
        assert made.reason("array3") is ReasonCode.ARRAY_FULL
        assert made.numbers("array3") == {"limit_count": 2, "used_count": 2}
        assert describe(made.hold("array3").reason) == "2 of its array run; at most 2 may at once."

    @pytest.mark.parametrize("releasing", [False, True])
    def test_what_runs_counts_until_its_end_is_seen(self, releasing: bool) -> None:
        held = replace(runs("array0", "a", "n1/0", releasing=releasing), array=TWO)
        made = decide(fleet(*elements(3)[1:], holding=(held,)))
        assert made.started() == ["array1"]

    def test_its_like_outside_it_and_in_other_arrays_start(self) -> None:
        other = ArrayView(ArrayId("other"), 3)
        made = decide(fleet(*elements(4), *elements(4, other), job("plain")))
        assert sorted(made.started()) == [
            "array0", "array1", "other0", "other1", "other2", "plain",
        ]  # fmt: skip

    def test_nobody_is_evicted_for_it(self) -> None:
        full = tuple(runs(f"r{i}", "a", f"n{1 + i // 8}/{i % 8}", priority=-1) for i in range(14))
        held = tuple(replace(runs(f"x{i}", "a", f"n2/{6 + i}"), array=TWO) for i in range(2))
        urgent = elements(1, priority=9)
        assert not decide(fleet(*urgent, holding=full + held)).victims()
        less = (*full, runs("other", "a", "n2/7", priority=-1), held[0])
        assert decide(fleet(*urgent, holding=less)).victims()

    def test_who_waits_for_an_eviction_counts(self) -> None:
        full = tuple(runs(f"r{i}", "a", f"n{1 + i // 8}/{i % 8}", priority=-1) for i in range(16))
        made = decide(fleet(*elements(3, priority=9), holding=full))
        assert len(made.victims()) == 2
        assert made.reason("array2") is ReasonCode.ARRAY_FULL


def test_a_gang_counts_as_one() -> None:
    made = decide(fleet(*(replace(job(f"g{i}", "a", pods(4)), array=TWO) for i in range(3))))
    assert made.started() == ["g0", "g1"]


def test_what_is_taken_back_is_counted_no_more() -> None:
    caps = Caps(snapshot())
    element = elements(1)[0]
    for _ in range(2):
        caps.add(workload=element, holds=())
    assert caps.reached(element) is not None
    caps.remove(workload=element, holds=())
    assert caps.reached(element) is None


class TestDependencies:
    def test_it_is_held_with_how_many_it_waits_for_whatever_there_is_room_for(self) -> None:
        waits = replace(job("w"), waits_for=UnmetView(2, "first-id"))
        made = decide(fleet(waits, job("other")))
        assert made.started() == ["other"]
        assert made.reason("w") is ReasonCode.DEPENDENCY
        assert made.numbers("w") == {"first": "first-id", "unmet_count": 2}
        assert describe(made.hold("w").reason) == (
            "It starts after other work. Still to end: 2; first first-id."
        )

    def test_a_held_queue_is_told_before_it_and_a_pause_after_it(self) -> None:
        waits = replace(job("w", not_before=10**10), waits_for=UnmetView(1, "x"))
        of = fleet(waits)
        assert decide(of).reason("w") is ReasonCode.DEPENDENCY
        held = replace(of, queues=tuple(replace(q, held_by=("tenant a",)) for q in of.queues))
        assert decide(held).reason("w") is ReasonCode.QUEUE_HELD
        free = replace(of, pending=(replace(waits, waits_for=None),))
        assert decide(free).reason("w") is ReasonCode.BACKOFF

    def test_its_start_is_not_estimated(self) -> None:
        waits = replace(job("w"), waits_for=UnmetView(1, "x"))
        found = told(fleet(waits, job("other")))
        assert (found["w"].p50_s, found["w"].basis) == (None, Basis.NONE)
        assert found["other"].p50_s == 0


def told(of: Snapshot) -> dict[str, Forecast]:
    made = forecast(snapshot=of, policy=Policy(), run_times={}, passes=3, seed=1)
    return {each.workload: each for each in made}


def test_elements_are_foreseen_to_start_as_others_of_the_array_end() -> None:
    found = told(fleet(*(replace(job(f"w{i}", limit_s=100), array=TWO) for i in range(5))))
    starts = [found[f"w{i}"].p50_s for i in range(5)]
    assert starts[:2] == [0, 0]
    assert starts[2] == starts[3]
    assert starts[2] is not None
    assert 100 <= starts[2] < 110
    assert starts[4] is not None
    assert 200 <= starts[4] < 220


@pytest.mark.parametrize(
    ("waiting", "sentence"),
    [
        (elements(3), "array array has 3 that hold, of 2 at once"),
        ([replace(job("w"), waits_for=UnmetView(1, "x"))], "w starts before x has ended"),
    ],
    ids=["array", "dependency"],
)
def test_the_law_tells_of_a_plan_that_breaks_it(waiting: list[PendingView], sentence: str) -> None:
    lawless = fleet(*(replace(p, array=None, waits_for=None) for p in waiting))
    made = plan(lawless, Policy())
    assert sentence in violations(replace(lawless, pending=tuple(waiting)), made)


class TestSwept:
    def arrayed(self, count: int, most: int) -> Snapshot:
        """Every second workload of two projects is in an array; forty of all fit."""
        array = ArrayView(ArrayId("array"), most)
        waiting = [job(f"w{i:04}", "b" if i % 3 else "a", submitted_at=i) for i in range(count)]
        return snapshot(
            nodes=[node(f"n{i}", gpus=8) for i in range(5)],
            queues=[queue("a", h100=20), queue("b", h100=20)],
            pending=[replace(p, array=array) if p.project == "b" else p for p in waiting],
        )

    @pytest.mark.parametrize(("most", "started"), [(1, 1), (3, 3), (20, 20), (10_000, 20)])
    def test_it_plans_as_by_hand(self, most: int, started: int) -> None:
        of = self.arrayed(600, most)
        made = agree(of, ALL)
        inside = {p.id for p in of.pending if p.array is not None}
        assert len([a for a in made.admits if a.workload in inside]) == started

    def test_a_full_array_is_looked_at_once_a_round(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert len(by_hand(self.arrayed(600, 2), monkeypatch)) == 2 + 2
