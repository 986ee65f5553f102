"""Whom a workload may evict, whom it does, and what it waits for."""

from dataclasses import replace

import pytest

from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import HoldingView, QueueView
from tests.core.build import (
    AT,
    Outcome,
    Quota,
    cpu_pods,
    decide,
    holds,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)

WAITS = ReasonCode.WAITING_FOR_PREEMPTION
OWN = [queue("a", h100=8)]
FREE = Quota(4, borrow=None)


def small(
    name: str, project: str = "a", on: str = "n1/0", *, since_s: int = 0, priority: int = 0
) -> HoldingView:
    return runs(name, project, on, since_s=since_s, priority=priority)


@pytest.mark.parametrize(
    ("queues", "holding", "asks", "expected"),
    [
        pytest.param(
            OWN,
            [runs("low", "a", "n1/0", "n1/1", priority=1)],
            job("w", "a", pods(gpus=2), priority=2),
            [("low", "w", "priority")],
            id="lower priority in its own project",
        ),
        pytest.param(
            OWN,
            [runs("same", "a", "n1/0", "n1/1", priority=2)],
            job("w", "a", pods(gpus=2), priority=2),
            [],
            id="nobody of its own priority",
        ),
        pytest.param(
            OWN,
            [runs("low", "a", "n1/0", "n1/1", preemptible=False)],
            job("w", "a", pods(gpus=2), priority=2),
            [],
            id="nobody who is not preemptible",
        ),
        pytest.param(
            [queue("a", h100=2), queue("b", h100=6)],
            [runs("r1", "b", "n1/0", "n1/1"), runs("r2", "b", "n2/0", "n2/1", "n2/2", "n2/3")],
            job("w", "a", pods(gpus=2), priority=9),
            [],
            id="nobody within nominal, whatever the priority",
        ),
        pytest.param(
            [queue("a", h100=2), queue("b", h100=FREE)],
            [runs("r1", "b", "n1/0", "n1/1"), runs("r2", "b", "n2/0", "n2/1", "n2/2", "n2/3")],
            job("w", "a", pods(gpus=2), priority=-5),
            [("r1", "w", "reclaim")],
            id="a borrower, whatever the priority",
        ),
        pytest.param(
            [queue("a", h100=1), queue("b", h100=FREE)],
            [runs("r1", "b", "n1/0", "n1/1"), runs("r2", "b", "n2/0", "n2/1", "n2/2", "n2/3")],
            job("w", "a", pods(gpus=2)),
            [],
            id="no borrower while it would borrow itself",
        ),
        pytest.param(
            [queue("a", h100=2), queue("b", h100=FREE)],
            [runs("all", "b", "n1/0", "n1/1", "n2/0", "n2/1", "n2/2", "n2/3")],
            job("w", "a", pods(gpus=2)),
            [],
            id="no borrower who would fall below nominal",
        ),
        pytest.param(
            [queue("a", h100=2), queue("b", h100=Quota(4, borrow=None))],
            [
                runs("own", "a", "n1/0", priority=-1),
                runs("r1", "b", "n1/1"),
                runs("r2", "b", "n2/0", "n2/1", "n2/2", "n2/3"),
            ],
            job("w", "a", pods(gpus=1), priority=5),
            [("r1", "w", "reclaim")],
            id="a borrower before its own work",
        ),
    ],
)
def test_it_evicts(
    queues: list[QueueView],
    holding: list[HoldingView],
    asks: object,
    expected: list[tuple[str, str, str]],
) -> None:
    nodes = [node("n1", gpus=2), node("n2", gpus=4)]
    if queues is OWN:
        nodes = nodes[:1]
    made = decide(
        snapshot(nodes=nodes, queues=queues, holding=holding, pending=[asks])  # type: ignore[list-item]
    )
    assert made.victims() == expected
    assert (made.reason("w") is WAITS) is bool(expected)


def four_small(changed: dict[str, dict[str, int]]) -> Outcome:
    """One workload wants one of four devices, each held for 100 s at priority 0."""
    holding = [
        small(name, on=f"n1/{i}", since_s=of.get("since_s", 100), priority=of.get("priority", 0))
        for i, name in enumerate("pqrs")
        for of in [changed.get(name, {})]
    ]
    waiting = job("w", "a", pods(gpus=1), priority=9)
    nodes = [node("n1", gpus=4)]
    return decide(snapshot(nodes=nodes, queues=OWN, holding=holding, pending=[waiting]))


@pytest.mark.parametrize(
    ("changed", "victim"),
    [
        ({"r": {"since_s": 99}}, "r"),
        ({"p": {"priority": 1}}, "q"),
        ({"s": {"priority": -1, "since_s": 500}}, "s"),
        ({"q": {"since_s": 10}, "s": {"since_s": 20}}, "q"),
        ({}, "p"),
    ],
    ids=["youngest", "lower priority", "priority before age", "least time lost", "id at a tie"],
)
def test_the_least_harmful_victim_goes(changed: dict[str, dict[str, int]], victim: str) -> None:
    assert four_small(changed).victims() == [(victim, "w", "priority")]


def test_victims_share_a_node_when_a_pod_needs_a_node() -> None:
    holding = [small(f"x{i}", on=f"n1/{i}", since_s=50) for i in range(4)]
    holding += [small(f"y{i}", on=f"n2/{i}", since_s=60) for i in range(3)]
    nodes = [node("n1", gpus=4), node("n2", gpus=4)]
    waiting = job("w", "a", pods(gpus=4), priority=1)
    made = decide(snapshot(nodes=nodes, queues=OWN, holding=holding, pending=[waiting]))
    assert [victim for victim, _, _ in made.victims()] == ["y0", "y1", "y2"]


def test_a_gang_of_victims_goes_as_a_whole_and_counts_once() -> None:
    gang = runs("gang", "a", "n1/0", "n2/0", since_s=10)
    others = [small("p", on="n1/1", since_s=100), small("q", on="n2/1", since_s=100)]
    nodes = [node("n1", gpus=2), node("n2", gpus=2)]
    waiting = job("w", "a", pods(2, gpus=1), priority=1)
    made = decide(snapshot(nodes=nodes, queues=OWN, holding=[gang, *others], pending=[waiting]))
    assert made.victims() == [("gang", "w", "priority")]


def test_victims_that_turn_out_not_to_be_needed_stay() -> None:
    """The small one would make room but not quota; the pair makes both, so the small one stays."""
    holding = [
        small("p", on="n1/0", since_s=1),
        runs("pair", "a", "n2/0", "n2/1", since_s=2),
    ]
    nodes = [node("n1", gpus=2), node("n2", gpus=2)]
    waiting = job("w", "a", pods(gpus=2), priority=1)
    made = decide(
        snapshot(nodes=nodes, queues=[queue("a", h100=3)], holding=holding, pending=[waiting])
    )
    assert [victim for victim, _, _ in made.victims()] == ["pair"]


def test_once_a_plan_has_its_fill_of_victims_it_evicts_for_nobody_else() -> None:
    """But for the one it evicts as many as that takes: a large gang would never start."""
    holding = [small(f"x{i}", on=f"n1/{i}") for i in range(8)]
    gang = job("gang", "a", pods(gpus=4), priority=2)
    later = job("later", "a", pods(gpus=1), priority=1)
    of = snapshot(nodes=[node("n1", gpus=8)], queues=OWN, holding=holding, pending=[gang, later])
    assert [by for _, by, _ in decide(of, max_victims=5).victims()] == ["gang"] * 4 + ["later"]
    made = decide(of, max_victims=3)
    assert [by for _, by, _ in made.victims()] == ["gang"] * 4
    assert made.reason("later") is ReasonCode.QUOTA_USED
    assert decide(of, preemption=False).victims() == []


def test_quota_that_borrowers_use_is_reclaimed_though_devices_are_free() -> None:
    queues = [queue("a", h100=2), queue("b", h100=Quota(2, borrow=None))]
    holding = [small(f"x{i}", "b", f"n1/{i}", since_s=i) for i in range(4)]
    waiting = job("w", "a", pods(gpus=2))
    made = decide(
        snapshot(nodes=[node("n1", gpus=8)], queues=queues, holding=holding, pending=[waiting])
    )
    assert [victim for victim, _, _ in made.victims()] == ["x0", "x1"]
    assert made.numbers("w") == {"coming_milli": 2000, "flavor": "h100", "victims_count": 2}


def test_cores_are_freed_for_a_pod_that_lacks_cores_alone() -> None:
    queues = [queue("a", h100=8, cpu=64)]
    holding = [runs("busy", "a", "n1", flavor="cpu", cores=60)]
    waiting = job("w", "a", pods(gpus=1, cores=16), priority=1)
    made = decide(
        snapshot(nodes=[node("n1", gpus=1)], queues=queues, holding=holding, pending=[waiting])
    )
    assert made.victims() == [("busy", "w", "priority")]


class TestWhatIsOnItsWayBack:
    nodes = (node("n1", gpus=4),)
    leaving = runs("gone", "a", "n1/0", "n1/1", releasing=True)
    staying = runs("low", "a", "n1/2")

    def of(self, *pending: object) -> Outcome:
        holding = [self.leaving, self.staying]
        return decide(
            snapshot(nodes=self.nodes, queues=OWN, holding=holding, pending=pending)  # type: ignore[arg-type]
        )

    def test_it_is_waited_for_and_nobody_is_evicted(self) -> None:
        made = self.of(job("w", "a", pods(gpus=3), priority=9))
        assert made.victims() == []
        assert made.reason("w") is WAITS

    def test_what_is_free_already_is_not_taken_from_the_one_who_waits(self) -> None:
        made = self.of(job("w", "a", pods(gpus=3), priority=9), job("later", "a", submitted_at=1))
        assert made.started() == []
        assert made.reason("later") is ReasonCode.NO_FREE_CAPACITY

    def test_who_comes_before_it_starts_first(self) -> None:
        first = job("first", "a", priority=99)
        made = self.of(job("w", "a", pods(gpus=3), priority=9), first)
        assert made.started() == ["first"]
        assert made.victims() == [("low", "w", "priority")]

    def test_two_who_wait_do_not_count_on_the_same(self) -> None:
        made = self.of(
            job("w1", "a", pods(gpus=2), priority=9), job("w2", "a", pods(gpus=2), priority=8)
        )
        assert made.reason("w1") is WAITS
        assert made.reason("w2") is WAITS
        assert made.victims() == [("low", "w2", "priority")]

    def test_quota_that_is_promised_is_not_given_away(self) -> None:
        queues = [queue("a", h100=4), queue("b", h100=Quota(0, borrow=None))]
        waiting = [job("w", "a", pods(gpus=4), priority=1), job("x", "b", priority=9)]
        nodes = [node("n1", gpus=4), node("n2", gpus=4)]
        made = decide(
            snapshot(nodes=nodes, queues=queues, holding=[self.leaving], pending=waiting)
        )
        assert made.started() == []
        assert made.reason("x") is ReasonCode.COHORT_USED


def test_work_of_its_own_priority_stays_even_when_there_is_lower_elsewhere() -> None:
    holding = [runs("low", "a", "n2/0"), runs("same", "a", "n1/0", "n1/1", priority=2)]
    nodes = [node("n1", gpus=2), node("n2", gpus=1)]
    waiting = job("w", "a", pods(gpus=2), priority=2)
    made = decide(snapshot(nodes=nodes, queues=OWN, holding=holding, pending=[waiting]))
    assert made.victims() == []


def test_work_that_is_not_preemptible_keeps_its_quota() -> None:
    firm = runs("firm", "a", "n1/0", "n1/1", preemptible=False)
    waiting = job("w", "a", pods(gpus=2), priority=2)
    of = snapshot(
        nodes=[node("n1", gpus=4)], queues=[queue("a", h100=2)], holding=[firm], pending=[waiting]
    )
    assert decide(of).victims() == []
    assert decide(of).reason("w") is ReasonCode.QUOTA_USED


def test_who_reclaims_gives_back_its_own_lower_work_to_stay_within_nominal() -> None:
    queues = [queue("a", h100=Quota(4, borrow=None)), queue("b", h100=2), queue("c", h100=2)]
    queues[1] = queue("b", h100=Quota(2, borrow=None))
    holding = [runs("low", "a", "n1/0", "n1/1", since_s=9)]
    holding += [small(f"x{i}", "b", f"n1/{i}", since_s=i) for i in range(2, 8)]
    waiting = job("w", "a", pods(gpus=4), priority=1)
    of = snapshot(nodes=[node("n1", gpus=8)], queues=queues, holding=holding, pending=[waiting])
    assert decide(of).victims() == [
        ("low", "w", "priority"),
        ("x2", "w", "reclaim"),
        ("x3", "w", "reclaim"),
    ]


def test_victims_that_free_the_wrong_thing_do_not_count() -> None:
    cores = runs("cores", "a", "n1", flavor="cpu", cores=1)
    gpu = runs("gpu", "a", "n1/0", since_s=500)
    waiting = job("w", "a", priority=1)
    of = snapshot(
        nodes=[node("n1", gpus=1)],
        queues=[queue("a", h100=2, cpu=8)],
        holding=[cores, gpu],
        pending=[waiting],
    )
    assert decide(of, max_victims=1).victims() == [("gpu", "w", "priority")]


def test_a_limit_of_its_own_is_met_by_its_own_work_alone() -> None:
    queues = [queue("a", h100=2), queue("b", h100=Quota(0, borrow=None)), queue("c", h100=6)]
    holding = [runs("low", "a", "n1/0", "n1/1"), runs("other", "b", "n1/2", "n1/3")]
    waiting = job("w", "a", pods(gpus=2), priority=1)
    of = snapshot(nodes=[node("n1", gpus=8)], queues=queues, holding=holding, pending=[waiting])
    assert decide(of, max_victims=1).victims() == [("low", "w", "priority")]


def test_nominal_quota_is_not_reclaimed_past_work_of_higher_priority_in_the_project() -> None:
    """Else the freed device goes round between the borrower and who is not first in line."""
    queues = [
        queue("a", h100=8, cpu=8),
        queue("b", h100=Quota(0, borrow=None)),
        queue("c", h100=3),
    ]
    holding = [
        runs("firm", "c", "n1/0", "n1/2", "n1/3", preemptible=False),
        runs("low", "a", "n2", flavor="cpu"),
        runs("lent", "b", "n1/1"),
    ]
    head, later = job("head", "a", pods(gpus=4), priority=2), job("later", "a", priority=1)
    nodes = [node("n1", gpus=4), node("n2")]
    of = snapshot(nodes=nodes, queues=queues, holding=holding, pending=[head, later])
    assert decide(of).victims() == []
    hopeless = job("head", "a", pods(gpus=9), priority=2)
    beside = snapshot(nodes=nodes, queues=queues, holding=holding, pending=[hopeless, later])
    assert decide(beside).victims() == [("lent", "later", "reclaim")]
    alone = snapshot(nodes=nodes, queues=queues, holding=holding, pending=[later])
    assert decide(alone).victims() == [("lent", "later", "reclaim")]


def test_two_who_evict_take_different_victims() -> None:
    holding = [small("p", on="n1/0"), small("q", on="n1/1")]
    pending = [job(f"w{i}", "a", priority=1, submitted_at=i) for i in range(3)]
    of = snapshot(nodes=[node("n1", gpus=2)], queues=OWN, holding=holding, pending=pending)
    assert decide(of).victims() == [("p", "w0", "priority"), ("q", "w1", "priority")]
    assert decide(of).reason("w2") is ReasonCode.NO_FREE_CAPACITY


def test_what_a_victim_gives_back_beyond_need_is_waited_for_by_the_next() -> None:
    queues = [queue("a", h100=2), queue("b", h100=1), queue("c", h100=1)]
    holding = [runs("pair", "a", "n1/0", "n1/1"), runs("firm", "c", "n1/2", preemptible=False)]
    pending = [job("w", "a", priority=1), job("x", "b", submitted_at=1)]
    of = snapshot(nodes=[node("n1", gpus=3)], queues=queues, holding=holding, pending=pending)
    made = decide(of)
    assert made.victims() == [("pair", "w", "priority")]
    assert made.reason("x") is WAITS
    assert made.numbers("x")["victims_count"] == 0


@pytest.mark.parametrize("reclaim", [False, True])
def test_who_was_evicted_does_not_come_back_before_its_preemptor(reclaim: bool) -> None:
    """The victim asks again at once; the plans that follow must not go round in circles."""
    queues = [queue("a", h100=2), queue("b", h100=Quota(0, borrow=2))]
    victim = runs("v", "b" if reclaim else "a", "n1/0", "n1/1", priority=50 if reclaim else 0)
    waiting = job("w", "a", pods(gpus=2), priority=1)
    again = job("v", victim.project, pods(gpus=2), priority=victim.priority)
    of = snapshot(nodes=[node("n1", gpus=2)], queues=queues, holding=[victim], pending=[waiting])
    assert decide(of).victims() == [("v", "w", "reclaim" if reclaim else "priority")]

    of = replace(of, holding=(replace(victim, releasing=True),))
    assert decide(of).victims() == []
    assert decide(of).reason("w") is WAITS

    of = replace(of, holding=(), pending=(again, waiting))
    made = decide(of)
    assert made.started() == ["w"]

    of = replace(of, holding=(holds(made.plan.admits[0], waiting),), pending=(again,), at=AT + 9)
    assert decide(of).started() == []
    assert decide(of).victims() == []


def test_a_reason_of_its_own_is_told_when_eviction_does_not_help() -> None:
    holding = [runs("low", "a", "n1", flavor="cpu", cores=1), runs("other", "b", "n1/0")]
    queues = [queue("a", h100=1, cpu=9), queue("b", h100=1)]
    waiting = [job("w", "a", pods(gpus=1), priority=9), job("c", "a", cpu_pods(cores=99))]
    made = decide(
        snapshot(nodes=[node("n1", gpus=1)], queues=queues, holding=holding, pending=waiting)
    )
    assert made.victims() == []
    assert made.reason("w") is ReasonCode.NO_FREE_CAPACITY
    assert made.reason("c") is ReasonCode.NEVER_ADMISSIBLE
