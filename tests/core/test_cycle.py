"""Each pending workload starts, or waits for a reason with the numbers that failed."""

import pytest

from scheduler.core.bounds.limits import Limits, never_admissible
from scheduler.core.cycle import LEAST_SWEPT
from scheduler.core.explaining.whatif import would_start
from scheduler.core.plan import Admit, Hold, Plan
from scheduler.core.policy import Policy
from scheduler.core.reasons import Reason, ReasonCode, describe
from scheduler.core.snapshot import HoldingView, PendingView, QueueView
from tests.core.build import (
    A30,
    AT,
    Quota,
    cluster,
    cpu_pods,
    decide,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)

ONE = [node("n1", gpus=4, cores=8, memory_gib=16)]
FULL = [runs("r", "b", "n1/0", "n1/1", "n1/2", preemptible=False)]
CODE = ReasonCode


@pytest.mark.parametrize(
    ("queues", "holding", "waiting", "code", "numbers"),
    [
        pytest.param(
            [queue("a", h100=2)],
            [],
            job("w", "a", pods(gpus=4)),
            CODE.NEVER_ADMISSIBLE,
            {"asked_milli": 4000, "nominal_milli": 2000, "borrowable_milli": 0},
            id="more than nominal and borrowing",
        ),
        pytest.param(
            [queue("a", h100=Quota(2, borrow=1)), queue("b", h100=8)],
            [],
            job("w", "a", pods(gpus=4)),
            CODE.NEVER_ADMISSIBLE,
            {"asked_milli": 4000, "nominal_milli": 2000, "borrowable_milli": 1000},
            id="more than nominal and the borrowing limit",
        ),
        pytest.param(
            [queue("b", h100=8)],
            [],
            job("w", "a", pods(gpus=1)),
            CODE.NEVER_ADMISSIBLE,
            {"asked_milli": 1000, "nominal_milli": 0, "borrowable_milli": 0},
            id="a project without quota",
        ),
        pytest.param(
            [queue("a", h100=2)],
            [runs("r", "a", "n1/0")],
            job("w", "a", pods(gpus=2)),
            CODE.QUOTA_USED,
            {"asked_milli": 2000, "used_milli": 1000, "nominal_milli": 2000},
            id="its quota is in use",
        ),
        pytest.param(
            [queue("a", h100=Quota(1, borrow=None)), queue("b", h100=3)],
            [runs("r", "b", "n1/0", "n1/1", "n1/2")],
            job("w", "a", pods(gpus=2)),
            CODE.COHORT_USED,
            {"asked_milli": 2000, "available_milli": 1000, "nominal_milli": 1000},
            id="nothing left to borrow",
        ),
        pytest.param(
            [queue("a", h100=4), queue("b", h100=4)],
            FULL,
            job("w", "a", pods(gpus=2)),
            CODE.NO_FREE_CAPACITY,
            {"asked_milli": 2000, "free_milli": 1000, "largest_free_milli": 1000},
            id="the cluster is full",
        ),
        pytest.param(
            [queue("a", h100=4, cpu=8), queue("b", h100=4)],
            [runs("r", "a", "n1", flavor="cpu", cores=7, preemptible=False)],
            job("w", "a", pods(gpus=1, cores=2)),
            CODE.NO_FIT,
            {"asked_milli": 1000, "free_milli": 4000, "pod_cpu_milli": 2000},
            id="devices free but no cores",
        ),
        pytest.param(
            [queue("a", h100=8)],
            [],
            job("w", "a", pods(gpus=8)),
            CODE.EXCEEDS_CAPACITY,
            {"asked_milli": 8000, "free_milli": 4000, "pod_milli": 8000},
            id="larger than any node",
        ),
        pytest.param(
            [queue("a", h100=8)],
            [],
            job("w", "a", pods(2, gpus=4)),
            CODE.EXCEEDS_CAPACITY,
            {"asked_milli": 8000, "free_milli": 4000, "pods_count": 2},
            id="larger than the cluster",
        ),
        pytest.param(
            [queue("a", h100=8)],
            [],
            job("w", "a", pods(gpus=1, memory_gib=32)),
            CODE.EXCEEDS_CAPACITY,
            {"pod_memory_mib": 32768},
            id="more memory than any node",
        ),
        pytest.param(
            [queue("a", a30=8)],
            [],
            job("w", "a", pods(gpus=1, flavors="a30")),
            CODE.NO_MATCHING_FLAVOR,
            {"flavor": "a30"},
            id="a model that no cluster has",
        ),
        pytest.param(
            [queue("a", _1g=8)],
            [],
            job("w", "a", pods(gpus=1, flavors="1g")),
            CODE.NO_MATCHING_FLAVOR,
            {"flavor": "1g"},
            id="a MIG profile that no device has",
        ),
        pytest.param(
            [queue("a", h100=8)],
            [],
            job("w", "a", pods(gpus=1, flavors="unheard-of")),
            CODE.INVALID,
            {},
            id="an unknown flavor",
        ),
        pytest.param(
            [queue("a", h100=8)],
            [],
            job("w", "a", pods(gpus=1), clusters="elsewhere"),
            CODE.NO_MATCHING_FLAVOR,
            {},
            id="an unknown cluster",
        ),
        pytest.param(
            [queue("a", h100=8)],
            [],
            job("w", "a", pods(gpus=1), not_before=AT + 90),
            CODE.BACKOFF,
            {"retry_in_s": 90},
            id="a retry that is held back",
        ),
        pytest.param(
            [queue("a", h100=8)],
            [],
            job("w", "a", cpu_pods(cores=1)),
            CODE.NEVER_ADMISSIBLE,
            {"asked_milli": 1000},
            id="cores without quota of cores",
        ),
    ],
)
def test_it_waits_because_of(
    queues: list[QueueView],
    holding: list[HoldingView],
    waiting: PendingView,
    code: ReasonCode,
    numbers: dict[str, int | str],
) -> None:
    made = decide(snapshot(nodes=ONE, queues=queues, holding=holding, pending=[waiting]))
    assert made.reason("w") is code
    assert numbers.items() <= made.numbers("w").items()


def test_what_is_free_on_nodes_that_take_nothing_new_does_not_count() -> None:
    nodes = [*ONE, node("n0", gpus=2, usable=False)]
    waiting = job("w", "a", pods(gpus=4))
    queues = [queue("a", h100=8), queue("b", h100=8)]
    of = snapshot(nodes=nodes, queues=queues, holding=FULL, pending=[waiting])
    assert decide(of).reason("w") is CODE.NO_FREE_CAPACITY
    assert decide(of).numbers("w")["free_milli"] == 1000


def test_it_waits_because_no_accepted_cluster_takes_new_work() -> None:
    down = [cluster("c1", ONE, usable=False), cluster("c2", [node("n2", gpus=4)])]
    of = snapshot(
        clusters=down, queues=[queue("a", h100=8)], pending=[job("w", "a", clusters="c1")]
    )
    assert decide(of).hold("w").reason == Reason(
        CODE.CLUSTER_UNAVAILABLE, (("clusters_count", 1),)
    )


def test_the_reason_is_that_of_the_most_preferred_flavor_with_hope() -> None:
    queues = [queue("a", h100=1, a30=4), queue("b", a30=4)]
    nodes = [*ONE, node("n2", gpus=1, model=A30)]
    holding = [runs("r", "b", "n2/0", flavor="a30", preemptible=False)]
    waiting = job("w", "a", pods(gpus=2, flavors="h100"), pods(gpus=1, flavors="a30", name="b"))
    made = decide(snapshot(nodes=nodes, queues=queues, holding=holding, pending=[waiting]))
    assert made.reason("w") is CODE.NEVER_ADMISSIBLE
    either = job("w", "a", pods(gpus=1, flavors="t4 a30"))
    made = decide(snapshot(nodes=nodes, queues=queues, holding=holding, pending=[either]))
    assert made.reason("w") is CODE.NO_FREE_CAPACITY
    assert made.numbers("w")["flavor"] == "a30"


def test_the_like_of_a_held_workload_are_held_for_the_same_reason_in_their_order() -> None:
    pending = [job(f"w{i}", "a", pods(gpus=3), submitted_at=i) for i in range(3)]
    pending += [job("urgent", "a", pods(gpus=3), priority=5, submitted_at=9)]
    made = decide(snapshot(nodes=ONE, queues=[queue("a", h100=8)], pending=pending))
    assert made.started() == ["urgent"]
    assert list(made.holds) == ["w0", "w1", "w2"]
    assert len({made.hold(f"w{i}").reason for i in range(3)}) == 1


@pytest.mark.parametrize("count", [2, LEAST_SWEPT])
def test_all_who_are_told_the_same_stand_in_one_hold_whosever_they_are(count: int) -> None:
    pending = [job(f"w{i:03}", "ab"[i % 2], pods(gpus=4), submitted_at=i) for i in range(count)]
    queues = [queue("a", h100=8), queue("b", h100=8), queue("c", h100=8)]
    holding = [runs("r", "c", "n1/0")]
    made = decide(snapshot(nodes=ONE, queues=queues, holding=holding, pending=pending)).plan
    [hold] = made.holds
    assert hold.workloads == tuple(sorted(hold.workloads, key=lambda id: (int(id[1:]) % 2, id)))
    assert len(hold.workloads) == count


def test_what_is_beyond_the_most_admissions_comes_next_time() -> None:
    pending = [job(f"w{i}", "a", submitted_at=i) for i in range(4)]
    made = decide(snapshot(nodes=ONE, queues=[queue("a", h100=8)], pending=pending), max_admits=3)
    assert made.started() == ["w0", "w1", "w2"]
    assert made.reason("w3") is CODE.BEHIND


def test_an_empty_snapshot_makes_an_empty_plan() -> None:
    made = decide(snapshot())
    assert made.plan == Plan()


def test_a_workload_without_pods_is_held_and_told() -> None:
    waiting = job("w", "a")
    bare = PendingView(waiting.id, waiting.project, 0, True, 0, ())
    made = decide(snapshot(nodes=ONE, queues=[queue("a", h100=8)], pending=[bare]))
    assert made.reason("w") is CODE.INVALID


def test_a_device_on_which_holders_overlap_takes_nothing_and_the_rest_goes_on() -> None:
    holding = [runs("r", "a", "n1/0"), runs("s", "a", "n1/0")]
    pending = [job("w", "a", pods(gpus=4)), job("x", "a", pods(gpus=3), submitted_at=1)]
    of = snapshot(nodes=ONE, queues=[queue("a", h100=9)], holding=holding, pending=pending)
    made = decide(of)
    assert made.started() == ["x"]
    assert not any(device == "n1/0" for device, _, _ in made.spans("x"))


class TestAtSubmission:
    of = snapshot(
        nodes=[*ONE, node("m1", gpus=1, model=A30)],
        queues=[queue("a", h100=Quota(2, borrow=2), a30=8), queue("b", h100=2)],
        holding=[runs("r", "b", "n1/0", "n1/1", "n1/2", "n1/3")],
    )

    @pytest.mark.parametrize(
        ("waiting", "code"),
        [
            (job("w", "a", pods(gpus=4)), None),
            (job("w", "a", pods(gpus=5)), CODE.EXCEEDS_CAPACITY),
            (job("w", "a", pods(5, gpus=1)), CODE.EXCEEDS_CAPACITY),
            (job("w", "a", pods(5, gpus=1, least=4)), None),
            (job("w", "b", pods(gpus=3)), CODE.NEVER_ADMISSIBLE),
            (job("w", "a", pods(gpus=2, flavors="a30")), CODE.EXCEEDS_CAPACITY),
            (job("w", "a", pods(gpus=4, flavors="a30 h100")), None),
            (job("w", "a", pods(gpus=1, flavors="t4")), CODE.NO_MATCHING_FLAVOR),
            (job("w", "c", pods(gpus=1)), CODE.NEVER_ADMISSIBLE),
        ],
    )
    def test_only_what_could_never_start_is_refused(
        self, waiting: PendingView, code: ReasonCode | None
    ) -> None:
        reason = never_admissible(self.of, waiting)
        assert (reason and reason.code) == code
        assert Limits(self.of).reason(waiting) == reason

    def test_what_is_not_well_now_counts_as_if_it_were(self) -> None:
        down = snapshot(
            clusters=[cluster("c1", [node("n1", gpus=4, usable=False)], usable=False)],
            queues=[queue("a", h100=4)],
        )
        assert never_admissible(down, job("w", "a", pods(gpus=4))) is None


class TestTheDryRun:
    of = snapshot(
        nodes=ONE, queues=[queue("a", h100=4)], pending=[job("first", "a", pods(gpus=3))]
    )

    def test_it_says_where_it_would_start(self) -> None:
        answer = would_start(self.of, Policy(), job("w", "a", pods(gpus=1), submitted_at=9))
        assert isinstance(answer, Admit)
        assert [p.node for p in answer.places] == ["n1"]

    def test_it_says_why_it_would_wait_behind_those_who_came_before(self) -> None:
        answer = would_start(self.of, Policy(), job("w", "a", pods(gpus=2), submitted_at=9))
        assert isinstance(answer, Hold)
        assert answer.reason.code is CODE.QUOTA_USED

    def test_a_workload_that_waits_already_is_asked_in_its_new_form(self) -> None:
        answer = would_start(self.of, Policy(), job("first", "a", pods(gpus=5)))
        assert isinstance(answer, Hold)


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (
            Reason(
                CODE.NEVER_ADMISSIBLE,
                (
                    ("asked_milli", 16000),
                    ("borrowable_milli", 0),
                    ("flavor", "h100-80gb"),
                    ("nominal_milli", 8000),
                ),
            ),
            "16 asked; the project may hold at most 8 h100-80gb (8 nominal + 0 borrowed).",
        ),
        (
            Reason(CODE.NEVER_ADMISSIBLE, (("asked_milli", 250), ("flavor", "t4-share"))),
            "0.25 asked; the project has no quota of t4-share.",
        ),
        (
            Reason(
                CODE.NO_FREE_CAPACITY,
                (("asked_milli", 2000), ("flavor", "h100"), ("free_milli", 1500)),
            ),
            "2 h100 asked, 1.5 free in one cluster.",
        ),
        (
            Reason(CODE.BACKOFF, (("retry_in_s", 30),)),
            "The last start failed; it is tried again in 30 s.",
        ),
        (
            Reason(CODE.NO_MATCHING_FLAVOR),
            "No accepted flavor exists on an accepted cluster.",
        ),
    ],
)
def test_a_reason_reads_as_a_sentence(reason: Reason, sentence: str) -> None:
    assert describe(reason) == sentence


@pytest.mark.parametrize("code", ReasonCode)
def test_every_reason_has_a_sentence_even_without_numbers(code: ReasonCode) -> None:
    assert describe(Reason(code)).endswith(".")
