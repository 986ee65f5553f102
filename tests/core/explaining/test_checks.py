"""The chain of checks: where it stops, by which numbers; it never contradicts the plan."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core import cycle
from scheduler.core.explaining.change import Unit
from scheduler.core.explaining.checks import BY_OPTION, SHARED, Check, CheckCode
from scheduler.core.explaining.explain import Explanation, explain
from scheduler.core.plan import Admit
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import (
    BudgetView,
    CapsView,
    HoldingView,
    PendingView,
    ReservationView,
    Snapshot,
)
from scheduler.core.units import BudgetId, FlavorId, ProjectId, WorkloadId
from scheduler.core.waits import GateView, GatheringView, UnmetView
from tests.core.admitting.test_coming import comes, growing
from tests.core.build import (
    AT,
    Quota,
    cluster,
    cohort,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.drawn.fleets import snapshots

TOO_LARGE = (CheckCode.OWN_QUOTA, CheckCode.TENANT_QUOTA, CheckCode.FLEET_QUOTA)

HELD = [
    replace(node("n1", gpus=1), devices=(replace(node("n1", gpus=1).devices[0], usable=False),))
]


def rows(found: Explanation) -> list[Check]:
    """The checks that the decision is about, in order."""
    return [*found.checks, *(c for chain in found.chains if chain.told for c in chain.checks)]


def told(of: Snapshot, asked: PendingView, policy: Policy | None = None) -> tuple[object, ...]:
    """(code, value, limit, unit) of the first check that fails."""
    found = rows(explain(snapshot=of, policy=policy or Policy(), pending=asked))
    failed = next(check for check in found if check.passed is False)
    return failed.code, failed.value, failed.limit, failed.unit


def is_beyond(check: Check) -> bool:
    """Whether its value is larger than its limit."""
    return None not in (check.value, check.limit) and (check.value or 0) > (check.limit or 0)


def test_every_reason_has_its_check() -> None:
    assert set(SHARED) | set(BY_OPTION) == set(ReasonCode)
    assert not set(SHARED) & set(BY_OPTION)


@settings(max_examples=150, deadline=None)
@given(
    of=snapshots(),
    policy=st.builds(
        Policy,
        guard_s=st.sampled_from([None, 0, 300]),
        most_kept=st.sampled_from([1, 3]),
        consolidation_budget_milli_s=st.sampled_from([0, 10**9]),
    ),
    least_swept=st.sampled_from([0, cycle.LEAST_SWEPT]),
)
def test_the_chain_agrees_with_the_plan(of: Snapshot, policy: Policy, least_swept: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cycle, "LEAST_SWEPT", least_swept)
        made = cycle.plan(of, policy)
        for asked in of.pending:
            found = explain(snapshot=of, policy=policy, pending=asked, late=lambda: True)
            assert found.decision == made.decision(asked.id)
            assert found.relaxations == ()
            assert_agrees(found)


def assert_agrees(found: Explanation) -> None:
    """What fails first has the plan's own reason, and nothing later was reached; of what starts
    nothing fails."""
    checks = rows(found)
    codes = [check.code for check in checks if check.code not in TOO_LARGE]
    assert codes == sorted(codes, key=list(CheckCode).index)
    assert not any(is_beyond(check) for check in checks if check.passed)
    failed = [check for check in checks if check.passed is False]
    if isinstance(found.decision, Admit):
        assert all(check.passed for check in checks)
        assert len(found.chains) <= 1  # none for who starts where it was promised
        return
    assert failed[0].reason == found.decision.reason
    assert [check.code for check in failed[1:]] in ([], [CheckCode.EVICTION])
    assert failed[0].code not in TOO_LARGE or is_beyond(failed[0])
    after = checks[checks.index(failed[0]) + 1 :]
    assert all(check.passed is None for check in after if check.code is not CheckCode.EVICTION)


H100 = [node("n1", gpus=8)]
PLENTY = [queue("a", h100=16, a30=16), queue("b", h100=16)]


def fleet(*holding: HoldingView, **changes: Any) -> Snapshot:
    """Any: as `snapshot` takes them."""
    given: dict[str, Any] = {"nodes": H100, "queues": PLENTY, "holding": holding}
    return snapshot(**given | changes)


def full(count: int, project: str = "b", limit_s: int | None = None) -> list[HoldingView]:
    return [runs(f"r{i}", project, f"n1/{i}", limit_s=limit_s) for i in range(count)]


SPENT = BudgetView(
    BudgetId("b"), "b", 3600 * 1000, 2 * 3600 * 1000, AT + 3600, ProjectId("a"), safe=False
)

CASES = {
    "its queue is held": (
        fleet(queues=[replace(PLENTY[0], held_by=("tenant a",))]),
        job("w"),
        (CheckCode.QUEUE, None, None, Unit.NONE),
    ),
    "it waits for two others": (
        fleet(),
        replace(job("w"), waits_for=UnmetView(2, "x")),
        (CheckCode.DEPENDENCIES, 2, 0, Unit.COUNT),
    ),
    "it waits for two gates": (
        fleet(),
        replace(job("w"), gate=GateView("data", "ada", AT, None, 2)),
        (CheckCode.GATES, 2, 0, Unit.COUNT),
    ),
    "three of its four pods are not there": (
        fleet(),
        replace(job("w"), gathering=GatheringView(3, 4)),
        (CheckCode.PODS, 3, 0, Unit.COUNT),
    ),
    "it is tried again in a minute": (
        fleet(),
        job("w", not_before=AT + 60),
        (CheckCode.RETRY, 60, 0, Unit.SECONDS),
    ),
    "as much runs as may": (
        fleet(*full(2, "a"), queues=[replace(PLENTY[0], caps=CapsView(running=2))]),
        job("w"),
        (CheckCode.CAPS, 3, 2, Unit.COUNT),
    ),
    "its submitter would hold too much": (
        fleet(queues=[replace(PLENTY[0], caps=CapsView(user_gpus_milli=1000))]),
        job("w", "a", pods(2), user="u"),
        (CheckCode.CAPS, 2000, 1000, Unit.MILLI),
    ),
    "it runs into a reservation": (
        replace(
            fleet(),
            reservations=(
                ReservationView(ProjectId("b"), FlavorId("h100"), 8000, AT + 60, AT + 600),
            ),
        ),
        job("w"),
        (CheckCode.RESERVATIONS, 1000, 0, Unit.MILLI),
    ),
    "the project has its quota in use": (
        fleet(*full(2, "a"), queues=[queue("a", h100=Quota(2, borrow=1)), queue("b", h100=9)]),
        job("w", "a", pods(2)),
        (CheckCode.OWN_QUOTA, 4000, 3000, Unit.MILLI),
    ),
    "it has no quota of it": (
        fleet(nodes=[*H100, node("n2", gpus=1, model="NVIDIA-A30")]),
        job("w", "b", pods(flavors="a30")),
        (CheckCode.OWN_QUOTA, 1000, 0, Unit.MILLI),
    ),
    "it may not be preempted, and would borrow": (
        fleet(queues=[queue("a", h100=Quota(1, borrow=None)), queue("b", h100=7)]),
        replace(job("w", "a", pods(3)), preemptible=False),
        (CheckCode.FIRM, 3000, 1000, Unit.MILLI),
    ),
    "its tenant has its quota in use": (
        fleet(
            *full(3, "c"),
            queues=[
                queue("a", tenant="t", h100=Quota(0, borrow=None)),
                queue("c", tenant="t", h100=Quota(0, borrow=None)),
                queue("b", h100=9),
            ],
            cohorts=[cohort("t", h100=Quota(3, borrow=0))],
        ),
        job("w"),
        (CheckCode.TENANT_QUOTA, 4000, 3000, Unit.MILLI),
    ),
    "all that is lent is in use": (
        fleet(*full(5, "a"), queues=[queue("a", h100=Quota(1, borrow=None)), queue("b", h100=4)]),
        job("w"),
        (CheckCode.FLEET_QUOTA, 6000, 5000, Unit.MILLI),
    ),
    "the accepted cluster takes nothing": (
        fleet(clusters=[cluster("c1", H100, usable=False)]),
        job("w", clusters="c1"),
        (CheckCode.CLUSTERS, None, None, Unit.NONE),
    ),
    "no node is so large": (
        fleet(),
        job("w", "a", pods(gpus=16)),
        (CheckCode.HARDWARE, 16_000, 8000, Unit.MILLI),
    ),
    "each pod would fit into an idle fleet, and not all of them": (
        fleet(),
        job("w", "a", pods(3, gpus=4)),
        (CheckCode.HARDWARE, 12_000, 8000, Unit.MILLI),
    ),
    "the budget is used up": (
        replace(fleet(), budgets=(SPENT,)),
        job("w"),
        (CheckCode.BUDGET, 2000, 1000, Unit.MILLI),
    ),
    "what would hold it is out of service": (
        fleet(clusters=[cluster("c1", []), cluster("c2", H100, usable=False)]),
        job("w"),
        (CheckCode.OUTAGES, 1000, 0, Unit.MILLI),
    ),
    "what would hold it is in a pool that is held": (
        fleet(clusters=[replace(cluster("c1", HELD), held_models=(HELD[0].devices[0].model,))]),
        job("w"),
        (CheckCode.HELD, 1000, 0, Unit.MILLI),
    ),
    "nodes that would hold it can come": (
        fleet(clusters=[growing(comes(1), nodes=[node("n1", gpus=1)])]),
        job("w", "a", pods(2)),
        (CheckCode.NODES, 2000, 1000, Unit.MILLI),
    ),
    "too little is free": (
        fleet(*full(7)),
        job("w", "a", pods(2)),
        (CheckCode.FREE, 2000, 1000, Unit.MILLI),
    ),
    "it is free in two racks": (
        fleet(
            runs("r", "b", "n1/0", "n2/0"),
            nodes=[node(f"n{i}", gpus=2, at=f"r{i}") for i in (1, 2)],
            levels="rack",
        ),
        job("w", "a", pods(2), within="rack"),
        (CheckCode.DOMAIN, 2, 1, Unit.COUNT),
    ),
    "the cores beside the devices are taken": (
        fleet(runs("r", "b", "n1/0", cores=60)),
        job("w", "a", pods(cores=8)),
        (CheckCode.CORES, 8000, 4000, Unit.MILLI),
    ),
    "the memory beside the devices is taken": (
        fleet(runs("r", "b", "n1/0")),
        job("w", "a", pods(memory_gib=512)),
        (CheckCode.MEMORY, 512 * 1024, 511 * 1024, Unit.MEBIBYTES),
    ),
    "it is free in pieces": (
        fleet(runs("r", "b", "n1/0", "n2/0"), nodes=[node("n1", gpus=2), node("n2", gpus=2)]),
        job("w", "a", pods(gpus=2)),
        (CheckCode.FIT, 2000, 1000, Unit.MILLI),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_says_what_failed_and_by_how_much(case: str) -> None:
    of, asked, expected = CASES[case]
    assert told(of, asked) == expected


def test_what_is_kept_for_others_is_free_and_yet_fails() -> None:
    of = fleet(*full(4, limit_s=900), pending=[job("gang", "a", pods(8), submitted_at=AT - 600)])
    found = told(of, job("w", "b", submitted_at=AT), Policy(guard_s=300, preemption=False))
    assert found == (CheckCode.KEPT, None, None, Unit.NONE)


def test_what_others_are_stopped_for_waits_for_that() -> None:
    of = fleet(*full(8), queues=[queue("a", h100=8), queue("b", h100=Quota(0, borrow=None))])
    assert told(of, job("w")) == (CheckCode.PROMISES, 1000, 0, Unit.MILLI)


def test_what_is_kept_for_it_comes_later() -> None:
    of = fleet(*full(8, limit_s=900))
    found = told(of, job("w", submitted_at=AT - 600), Policy(guard_s=300, preemption=False))
    assert found == (CheckCode.PROMISES, 1000, 0, Unit.MILLI)


def test_beyond_the_bound_of_a_plan_its_turn_has_not_come() -> None:
    of = fleet(pending=[job("first")])
    assert told(of, job("w", submitted_at=AT), Policy(max_admits=1))[0] is CheckCode.TURN


def test_a_contradiction_comes_before_all_else() -> None:
    found = explain(snapshot=fleet(), policy=Policy(), pending=job("w", "a", pods(0)))
    assert rows(found)[0].passed is False
    assert rows(found)[0].code is CheckCode.SOUND
    assert found.chains == ()


def test_each_option_has_a_chain_and_the_first_with_hope_is_told() -> None:
    of = fleet(*full(8), nodes=[*H100, node("n2", gpus=1, model="NVIDIA-A30")])
    asked = job("w", "a", pods(flavors="t4 h100"))
    found = explain(snapshot=of, policy=Policy(), pending=asked)
    assert [(chain.flavors, chain.told) for chain in found.chains] == [
        (("t4",), False),
        (("h100",), True),
    ]
    first = [check.code for check in found.chains[0].checks if check.passed is False]
    assert first == [CheckCode.OWN_QUOTA]


def eviction(of: Snapshot, asked: PendingView, policy: Policy | None = None) -> Check:
    """The last check of its one chain, which is of evictions."""
    [chain] = explain(snapshot=of, policy=policy or Policy(), pending=asked).chains
    last = chain.checks[-1]
    assert last.code is CheckCode.EVICTION
    return last


def test_how_many_may_be_stopped_for_it_is_told_where_that_does_not_help() -> None:
    own, others = full(2, "a")
    holding = replace(own, priority=-1), replace(others, preemptible=False)
    of = fleet(*holding, nodes=[node("n1", gpus=2)])
    found = eviction(of, job("w", "a", pods(2)))
    assert (found.passed, found.value) == (False, 1)


def test_who_went_ahead_of_one_that_comes_first_may_not_be_stopped() -> None:
    own = full(2, "a")
    ahead = replace(own[0], priority=-2, ahead_of=(WorkloadId("first"),))
    of = fleet(
        ahead,
        replace(own[1], preemptible=False),
        nodes=[node("n1", gpus=2)],
        pending=[job("first", "a", pods(2), priority=1)],
    )
    for priority, count in ((0, 0), (2, 1)):
        assert eviction(of, job("w", "a", pods(2), priority=priority)).value == count


def test_who_would_bring_its_project_below_its_quota_is_not_counted() -> None:
    """The one borrows a device: what holds one may go, what holds two may not."""
    of = fleet(
        runs("two", "b", "n1/0", "n1/1"),
        runs("one", "b", "n1/2"),
        nodes=[node("n1", gpus=3)],
        queues=[queue("a", h100=4), queue("b", h100=2)],
    )
    found = eviction(of, job("w", "a", pods(2)))
    assert (found.passed, found.value) == (False, 1)


def test_how_many_may_be_stopped_is_not_told_where_the_plan_stops_nobody() -> None:
    of = fleet(*[replace(held, priority=-1) for held in full(2, "a")], nodes=[node("n1", gpus=2)])
    asked = job("w", "a", pods(2))
    for policy in (Policy(max_preemptors=0), Policy(preemption=False)):
        found = eviction(of, asked, policy)
        assert (found.passed, found.value) == (None, None)


def test_what_firm_work_of_the_project_awaits_of_its_quota_is_told_where_it_fails() -> None:
    firm = replace(job("firm", "a", pods(2), priority=1), preemptible=False)
    of = fleet(
        runs("r", "a", "n1/0", "n1/1"),
        nodes=[node("n1", gpus=2), node("n2", gpus=2)],
        queues=[queue("a", h100=Quota(2, borrow=None)), queue("b", h100=4)],
        pending=[firm],
    )
    assert told(of, job("w", "a")) == (CheckCode.OWN_QUOTA, 3000, 2000, Unit.MILLI)
