"""A snapshot that contradicts itself: each fault is named, and the rest is planned lawfully."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler.core import cycle
from scheduler.core.cycle import plan
from scheduler.core.faults import faults
from scheduler.core.laws.invariants import violations
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.reasons import FaultKind, ReasonCode, Subject, describe
from scheduler.core.simulating.estimate import forecast
from scheduler.core.snapshot import Isolation, ReservationView, Snapshot
from scheduler.core.sound import sound
from scheduler.core.units import FlavorId, ProjectId
from tests.core.build import (
    AT,
    T4,
    Quota,
    cohort,
    cpu_pods,
    decide,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.corrupt import corrupted
from tests.core.drawn.fleets import fleet, shuffled, snapshots

POLICY = Policy()
WELL = job("well", "b", pods())
NODES = [node("n1", gpus=1), node("n2", gpus=1), node("cut", gpus=1, cut=(("1g.10gb", 0, 1),))]
QUEUES = [queue("a", h100=4, _1g=4, cpu=64), queue("b", h100=4)]
TOO_MANY = 1 << 62


def _case(
    kind: FaultKind, subject: Subject, id: str, text: str, **parts: Any
) -> Any:  # Any: pytest's parameter set, and parts of whatever view
    return pytest.param(kind, subject, id, text, parts, id=f"{kind} of {subject} {id}")


CASES = [
    _case(
        FaultKind.OVER_ALLOCATED, Subject.DEVICE, "n1/0",
        "node n1 is held twice, by placement r-0 [0, 1000) and placement s-0 [0, 1000)",
        holding=[runs("r", "a", "n1/0"), runs("s", "a", "n1/0")],
    ),
    _case(
        FaultKind.ODD_SHARE, Subject.DEVICE, "n1/0",
        "node n1 is held by placement r-0 in other parts than its replicas of 250 thousandths",
        nodes=[node("n1", 1, T4, shares=Isolation.MEMORY, replicas=4), *NODES[1:]],
        holding=[runs("r", "a", "n1/0", flavor="t4share", span=(0, 300))],
    ),
    _case(
        FaultKind.QUANTITY, Subject.DEVICE, "n1/0", "has 0 replicas; right would be 1 to 1000",
        nodes=[node("n1", 1, T4, shares=Isolation.MEMORY, replicas=0), *NODES[1:]],
    ),
    _case(
        FaultKind.NEGATIVE_FREE, Subject.NODE, "n1", "cpu_milli 64000 and holders of 65000: -1000",
        holding=[runs("r", "a", "n1", flavor="cpu", cores=65)],
    ),
    _case(
        FaultKind.UNKNOWN_NODE, Subject.NODE, "gone", "held by 2 placements, r-0 first",
        holding=[runs("r", "a", "gone", "gone", flavor="cpu")],
    ),
    _case(
        FaultKind.UNKNOWN_DEVICE, Subject.DEVICE, "n1/7", "its node does not have",
        holding=[runs("r", "a", "n1/7")],
    ),
    _case(
        FaultKind.UNKNOWN_FLAVOR, Subject.FLAVOR, "b900", "held by 1 placements",
        holding=[runs("r", "a", "n1/0", flavor="b900")],
    ),
    _case(
        FaultKind.QUANTITY, Subject.PLACEMENT, "r-0", "amount_milli -1000; right would be 0 to",
        holding=[runs("r", "a", "n1/0", amount=-1)],
    ),
    _case(
        FaultKind.QUANTITY, Subject.NODE, "n0", f"cpu_milli {TOO_MANY}; right would be 0 to",
        nodes=[*NODES, replace(node("n0", gpus=4), cpu_milli=TOO_MANY)],
    ),
    _case(
        FaultKind.QUANTITY, Subject.NODE, "n0", "memory_mib -1; right would be",
        nodes=[*NODES, replace(node("n0", gpus=4), memory_mib=-1)],
    ),
    _case(
        FaultKind.QUANTITY, Subject.PROJECT, "a", "flavor h100 has nominal_milli -4000",
        queues=[queue("a", h100=-4), QUEUES[1]],
    ),
    _case(
        FaultKind.QUANTITY, Subject.COHORT, "t", "has borrowing_limit_milli -1000",
        cohorts=[cohort("t", h100=Quota(1, borrow=-1))],
    ),
    _case(
        FaultKind.WEIGHT, Subject.PROJECT, "a", "weight 0; right would be 1 to",
        queues=[queue("a", weight=0, h100=4), QUEUES[1]],
    ),
    _case(
        FaultKind.WEIGHT, Subject.COHORT, "t", "weight -3", cohorts=[cohort("t", weight=-3)]
    ),
    _case(
        FaultKind.COHORT_CYCLE, Subject.COHORT, "s", "s below t below s",
        cohorts=[cohort("s", parent="t"), cohort("t", parent="s")],
    ),
    _case(
        FaultKind.UNKNOWN_COHORT, Subject.COHORT, "t", "below the cohort nobody, which is unknown",
        cohorts=[cohort("t", parent="nobody")],
    ),
    _case(
        FaultKind.TOO_DEEP, Subject.COHORT, "c1999", "right would be fewer",
        cohorts=[cohort(f"c{i}", parent=f"c{i - 1}" if i else "") for i in range(2000)],
        queues=[queue("a", tenant="c1999", h100=4), QUEUES[1]],
    ),
    _case(
        FaultKind.ILLEGAL_SLICES, Subject.DEVICE, "odd/0",
        "slice 3g.40gb at [1, 5); NVIDIA-H100-80GB-HBM3 starts it at 0, 4",
        nodes=[*NODES, node("odd", gpus=1, cut=(("3g.40gb", 1, 5),))],
    ),
    _case(
        FaultKind.ILLEGAL_SLICES, Subject.DEVICE, "odd/0", "two slices over each other at [0, 2)",
        nodes=[*NODES, node("odd", gpus=1, cut=(("1g.10gb", 0, 1), ("2g.20gb", 0, 2)))],
    ),
    _case(
        FaultKind.ILLEGAL_SLICES, Subject.DEVICE, "odd/0", "2 slices with media engines",
        nodes=[*NODES, node("odd", gpus=1, cut=(("1g.10gb+me", 0, 1), ("1g.10gb+me", 1, 2)))],
    ),
    _case(
        FaultKind.DUPLICATE_ID, Subject.NODE, "n0", "listed 2 times; right would be once",
        nodes=[*NODES, node("n0", gpus=4), node("n0", gpus=8)],
    ),
    _case(
        FaultKind.DUPLICATE_ID, Subject.DEVICE, "n0/0", "listed 2 times",
        nodes=[*NODES, replace(node("n0", gpus=1), devices=node("n0", gpus=1).devices * 2)],
    ),
    _case(
        FaultKind.DUPLICATE_ID, Subject.PROJECT, "a", "listed 2 times",
        queues=[*QUEUES, queue("a", h100=1)],
    ),
    _case(
        FaultKind.DUPLICATE_ID, Subject.PROJECT, "a", "2 quotas of 1 flavors",
        queues=[replace(QUEUES[0], quotas=QUEUES[0].quotas[:1] * 2), QUEUES[1]],
    ),
    _case(
        FaultKind.DUPLICATE_ID, Subject.WORKLOAD, "r", "waits and holds at once",
        pending=[job("r"), WELL], holding=[runs("r", "a", "n1/0")],
    ),
]  # fmt: skip
REQUESTS = [
    (pods(2, least=3), "3 to 2 pods; right would be 1 <= min_count <= count <= 65536"),
    (pods(0), "0 to 0 pods"),
    (pods(-2), "-2 to -2 pods"),
    (pods(TOO_MANY, least=1), f"1 to {TOO_MANY} pods"),
    (pods(share=1.001), "gpu_milli 1001; right would be 1 to 1000"),
    (pods(share=0, flavors="t4share"), "gpu_milli 0; right would be 1 to 1000"),
    (pods(gpus=-1), "gpu_count -1; right would be 0 to 64"),
    (cpu_pods(cores=-1), "cpu_milli -1000; right would be 0 to"),
    (pods(memory_gib=TOO_MANY), "memory_mib"),
    (pods(flavors="h100 unheard-of"), "flavor unheard-of, which is not listed once"),
]


@pytest.mark.parametrize(("kind", "subject", "id", "text", "parts"), CASES)
def test_a_fault_is_named_with_its_numbers_and_others_start(
    kind: FaultKind,
    subject: Subject,
    id: str,
    text: str,
    parts: dict[str, Any],  # Any: as _case
) -> None:
    of = snapshot(**{"nodes": NODES, "queues": QUEUES, "pending": [WELL], **parts})
    made = plan(of, POLICY)
    told = [f for f in made.faults if (f.kind, f.subject, f.id) == (kind, subject, id)]
    assert len(told) == 1
    assert text in told[0].text
    assert id in told[0].text
    (started,) = made.admits
    assert started.workload == "well"
    assert {p.node for p in started.places} <= {"n1", "n2"}


@pytest.mark.parametrize(("asked", "text"), REQUESTS)
def test_what_nobody_can_mean_is_held_with_the_fault(asked: Any, text: str) -> None:
    """Any: a PodSetView, which parametrize does not type."""
    of = snapshot(nodes=NODES, queues=QUEUES, pending=[job("odd", "a", asked), WELL])
    made = decide(of)
    assert made.started() == ["well"]
    reason = made.hold("odd").reason
    assert reason.code is ReasonCode.INVALID
    assert f"contradicts itself: workload odd asks in pod set odd.main for {text}" in describe(
        reason
    )
    (fault,) = made.plan.faults
    assert (fault.kind, fault.subject) == (FaultKind.IMPOSSIBLE_REQUEST, Subject.WORKLOAD)


def test_a_pod_set_named_twice_is_told() -> None:
    of = snapshot(nodes=NODES, queues=QUEUES, pending=[job("odd", "a", pods(), pods()), WELL])
    made = decide(of)
    assert made.started() == ["well"]
    assert describe(made.hold("odd").reason).endswith("odd has 2 pod sets with 1 ids.")


def test_what_is_listed_twice_is_decided_once_and_starts_nowhere() -> None:
    of = snapshot(
        nodes=NODES, queues=QUEUES, pending=[job("w", "a"), job("w", "b", priority=2), WELL]
    )
    made = plan(of, POLICY)
    assert [a.workload for a in made.admits] == ["well"]
    assert list(made.reasons()) == ["w"]
    assert made == plan(shuffled(of, 1), POLICY)


def test_work_of_a_project_listed_twice_is_held() -> None:
    queues = [*QUEUES, queue("a", h100=64)]
    made = decide(snapshot(nodes=NODES, queues=queues, pending=[job("w", "a"), WELL]))
    assert (made.started(), made.reason("w")) == (["well"], ReasonCode.INVALID)


def test_usage_on_what_is_unknown_still_counts() -> None:
    lost = runs("r", "a", "gone/0", "gone/1", "gone/2", "gone/3")
    made = decide(
        snapshot(nodes=NODES, queues=QUEUES, holding=[lost], pending=[job("w", "a"), WELL]),
        preemption=False,
    )
    assert (made.started(), made.reason("w")) == (["well"], ReasonCode.QUOTA_USED)


def test_cores_below_zero_free_none() -> None:
    negative = runs("r", "a", "n1", flavor="cpu", cores=-100)
    asks = job("w", "a", cpu_pods(cores=65))
    queues = [queue("a", cpu=1000)]
    made = decide(snapshot(nodes=NODES, queues=queues, holding=[negative], pending=[asks]))
    assert (made.started(), made.reason("w")) == ([], ReasonCode.EXCEEDS_CAPACITY)


def test_an_amount_below_zero_gives_no_quota() -> None:
    held = runs("r", "a", "n1", flavor="cpu", cores=1)
    negative = replace(held, placements=(replace(held.placements[0], amount_milli=-64_000),))
    asks = job("w", "a", cpu_pods(2, cores=33))
    queues = [queue("a", cpu=65)]
    made = decide(snapshot(nodes=NODES, queues=queues, holding=[negative], pending=[asks]))
    assert (made.started(), made.reason("w")) == ([], ReasonCode.NEVER_ADMISSIBLE)


def test_a_gang_of_ten_thousand_is_planned() -> None:
    nodes = [node(f"n{i:04}", gpus=8) for i in range(1250)]
    gang, larger = job("gang", "a", pods(10_000)), job("larger", "a", pods(10_001))
    for asked, started in ((gang, ["gang"]), (larger, [])):
        made = decide(snapshot(nodes=nodes, queues=[queue("a", h100=20_000)], pending=[asked]))
        assert (made.started(), made.plan.faults) == (started, ())
    assert made.reason("larger") is ReasonCode.EXCEEDS_CAPACITY


@settings(max_examples=100, deadline=None)
@given(of=snapshots())
def test_a_healthy_fleet_has_no_faults_but_its_zero_weights(of: Snapshot) -> None:
    kinds = {fault.kind for fault in plan(of, POLICY).faults}
    assert kinds <= {FaultKind.WEIGHT}


def _lawful(of: Snapshot, made: Plan) -> tuple[str, ...]:
    """The violations of the plan for what is sound; what is left out is decided once too."""
    rest = sound(of, faults(of))
    kept = {waiting.id for waiting in rest.pending}
    out = {waiting.id for waiting in of.pending} - kept
    told = [id for hold in made.holds for id in hold.workloads]
    assert sorted(id for id in told if id in out) == sorted(out)
    holds = tuple(hold for hold in made.holds if kept.issuperset(hold.workloads))
    return violations(rest, replace(made, holds=holds))


@pytest.mark.parametrize("least_swept", [0, cycle.LEAST_SWEPT], ids=["swept", "by hand"])
@settings(max_examples=200, deadline=None)
@given(of=snapshots(), seed=st.integers(0, 2**32), times=st.integers(1, 6))
@example(of=fleet(23, 0, 1), seed=124, times=2)  # a clock before 1970
@example(of=fleet(8, 8, 4), seed=3, times=1)  # a pod that is listed twice is not two
@example(of=fleet(5, 5, 5), seed=6, times=5)  # nor one without its memory like the others
@example(of=fleet(2845, 7, 5), seed=50000, times=6)  # evicts, and accepts a flavor that is unknown
def test_no_corruption_stops_a_plan_breaks_a_law_or_makes_it_depend_on_order(
    least_swept: int, of: Snapshot, seed: int, times: int
) -> None:
    broken = corrupted(of, Random(seed), times)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cycle, "LEAST_SWEPT", least_swept)
        made = plan(broken, POLICY)
        assert made == plan(shuffled(broken, seed), POLICY)
    assert _lawful(broken, made) == ()


@settings(max_examples=50, deadline=None)
@given(of=snapshots(), seed=st.integers(0, 2**32))
def test_no_corruption_stops_a_forecast(of: Snapshot, seed: int) -> None:
    broken = corrupted(of, Random(seed), 3)
    found = forecast(snapshot=broken, policy=POLICY, run_times={}, passes=2, seed=1)
    assert {one.workload for one in found} == {waiting.id for waiting in broken.pending}


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"project": "nobody"}, "project nobody is for a project that is unknown"),
        ({"project": None, "cohort": "none"}, "cohort none is for a cohort that is unknown"),
        ({"project": None}, "right would be one of the two"),
        ({"cohort": "none"}, "right would be one of the two"),
        ({"flavor": "h300"}, "is of the flavor h300, which is unknown"),
        ({"amount_milli": 2**62}, "has amount_milli 4611686018427387904; right would be 1 to"),
        ({"amount_milli": -1}, "has amount_milli -1; right would be 1 to"),
        ({"ends_at": AT - 60}, "ends at 999940; right would be after it starts, at 999940"),
    ],
)
def test_a_reservation_that_nobody_can_mean_keeps_nothing(
    wrong: dict[str, Any], text: str
) -> None:
    of = snapshot(nodes=[node("n1", gpus=1)], queues=[queue("a", h100=1)], pending=[job("w", "a")])
    window = ReservationView(ProjectId("a"), FlavorId("h100"), 1000, AT - 60, AT + 60)
    made = plan(replace(of, reservations=(replace(window, **wrong),)), Policy())
    [fault] = made.faults
    subject = Subject.COHORT if "project" in wrong and not wrong["project"] else Subject.PROJECT
    assert (fault.kind, fault.subject) == (FaultKind.RESERVATION, subject)
    assert text in fault.text
    assert [admit.workload for admit in made.admits] == ["w"]
