"""Room that is kept is got by nobody who comes after, so nobody is evicted for it, and a fleet in
which some go ahead on kept room comes to rest."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cycle import plan
from scheduler.core.laws.invariants import violations
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import HoldingView, PendingView, Snapshot
from scheduler.core.units import WorkloadId
from scheduler.core.waits import GateView
from tests.core.build import AT, Quota, cohort, job, node, pods, queue, runs, snapshot
from tests.core.guarding.crowded import GUARD_S, HOURS_S, crowded, crowded_tree, head, stays
from tests.core.rounds import carried_out

POLICY = Policy(guard_s=GUARD_S)


def one_node(*pending: PendingView, holding: list[HoldingView], gpus: int = 4) -> Snapshot:
    """Nobody lacks quota."""
    return snapshot(
        nodes=[node("n1", gpus=gpus)],
        queues=[queue("a", h100=8), queue("z", h100=8)],
        pending=pending,
        holding=holding,
    )


def evicted(made: Plan) -> list[tuple[str, str]]:
    return [(preempt.victim, preempt.preemptor) for preempt in made.preempts]


def rest(of: Snapshot, policy: Policy) -> list[tuple[str, str]]:
    """Who was evicted for whom until nothing changes any more."""
    found: list[tuple[str, str]] = []
    for _ in range(30):
        made = plan(of, policy)
        assert violations(of, made) == ()
        found += evicted(made)
        later, changed = carried_out(of, made)
        if not changed:
            return found
        of = replace(later, at=of.at)
    pytest.fail("still starting and evicting after 30 plans")


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32))
def test_a_fleet_in_which_room_is_kept_settles(seed: int) -> None:
    of, most_kept = crowded(seed)
    rest(of, replace(POLICY, most_kept=most_kept))


# Rings that are known, once in 40,000 such fleets (ADR 0020).
MOVES, OF_THE_TENANT = 14015, 5040797
FOUND = (
    *(9701, 19311, 1001163, 1010621, 1029494, 2020076, 2036121, 2037079),
    pytest.param(MOVES, marks=pytest.mark.xfail),
    pytest.param(OF_THE_TENANT, marks=pytest.mark.xfail),
)


@pytest.mark.parametrize("seed", [*range(200), *FOUND])
def test_so_does_one_of_tenants(seed: int) -> None:
    """Not any: of so many a ring is found at times."""
    of, most_kept = crowded_tree(seed)
    rest(of, replace(POLICY, most_kept=most_kept))


def test_who_goes_ahead_is_evicted_for_nobody_who_comes_after() -> None:
    of = one_node(
        head(gpus=4),
        job("mid", "a", priority=1, submitted_at=AT - 9),
        job("low", "a", limit_s=GUARD_S, submitted_at=AT - 5),
        holding=[stays("r", "n1/0")],
    )
    assert [admit.workload for admit in plan(of, POLICY).admits] == ["low"]
    assert rest(of, POLICY) == []


def test_nor_is_a_borrower_for_an_owner_who_comes_after() -> None:
    of = snapshot(
        nodes=[node("n1", gpus=4)],
        queues=[
            queue("a", h100=Quota(4, None)),
            queue("b", h100=Quota(0, None)),
            queue("c", h100=Quota(2, 0)),
            queue("z", h100=10),
        ],
        pending=[
            head(gpus=4),
            *(job(f"b{n}", "b", limit_s=GUARD_S, submitted_at=AT - 200) for n in range(3)),
            *(job(f"c{n}", "c", submitted_at=AT - 1) for n in range(2)),
        ],
        holding=[stays("r", "n1/0")],
    )
    assert len(plan(of, POLICY).admits) == 3
    assert rest(of, POLICY) == []


def test_nor_anybody_where_no_time_is_known() -> None:
    of = one_node(
        head(gpus=4),
        job("mid", "a", priority=1, submitted_at=AT - 9),
        holding=[stays("r", "n1/0", limit_s=None), runs("low", "a", "n1/1", since_s=600)],
    )
    assert plan(of, POLICY).keeps[0].starts_at is None
    assert rest(of, POLICY) == []


def test_nor_for_a_smaller_one_of_its_own_project() -> None:
    """With "low" running, "old" is no more within what "b" is guaranteed, and "small" is."""
    of = snapshot(
        nodes=[node("n1", gpus=2)],
        queues=[queue("a", h100=Quota(4, 0)), queue("b", h100=Quota(2, None))],
        pending=[
            job("old", "b", pods(gpus=2), priority=2, submitted_at=AT - GUARD_S),
            job("small", "b", priority=2, submitted_at=AT - 9),
            job("low", "b", limit_s=GUARD_S, submitted_at=AT - 5),
        ],
        holding=[stays("r", "n1/0")],
    )
    admits = [(admit.workload, admit.ahead_of) for admit in plan(of, POLICY).admits]
    assert admits == [("low", ("old",))]
    assert rest(of, POLICY) == []


def test_nor_for_one_whose_guarantee_waits_behind_more_urgent_work_of_its_project() -> None:
    """Room is kept for "long" with what its tenant is guaranteed, so "behind" comes up with the
    guarantee of its project only after "sister" has started with that of the tenant."""
    of = snapshot(
        nodes=[node("n1", gpus=2), node("n2", gpus=2)],
        cohorts=[cohort("t", h100=Quota(2, None, 1))],
        queues=[
            queue("a", tenant="t", h100=Quota(2, None)),
            queue("b", tenant="t", h100=Quota(0, None, 0)),
            queue("d", tenant="t", h100=Quota(1, 1)),
            queue("z", h100=8),
        ],
        pending=[
            job("sister", "b", priority=2, submitted_at=AT - 293),
            job("behind", "a", submitted_at=AT - GUARD_S),
            job("long", "a", pods(gpus=2), priority=2, submitted_at=AT - GUARD_S),
        ],
        holding=[
            replace(runs("r0", "a", "n1/1", priority=2), preemptible=False),
            replace(runs("r1", "b", "n2/1", priority=1), preemptible=False),
        ],
    )
    assert [admit.workload for admit in plan(of, POLICY).admits] == ["sister"]
    assert rest(of, POLICY) == []


GONE_AHEAD = replace(
    runs("ahead", "b", "n1/0", "n1/1", since_s=61, limit_s=HOURS_S),
    ahead_of=(WorkloadId("long"),),
)
LONG = AT - GUARD_S
GATE = GateView("approval", "", AT - 9)


@pytest.mark.parametrize(("priority", "goes"), [(0, True), (1, False)])
def test_less_urgent_work_of_a_sibling_goes_even_then(priority: int, goes: bool) -> None:
    """That comes after it in whatever round."""
    of = snapshot(
        nodes=[node("n1", gpus=4), node("n2", gpus=2)],
        cohorts=[cohort("t", h100=Quota(4, 0))],
        queues=[
            queue("a", tenant="t", h100=Quota(2, None)),
            queue("b", tenant="t", h100=Quota(0, None)),
            queue("z", h100=4),
        ],
        pending=[
            job("large", "a", pods(gpus=4), priority=2, submitted_at=LONG),
            job("behind", "a", priority=1, submitted_at=AT - 9, limit_s=GUARD_S),
        ],
        holding=[
            stays("r", "n1/0", "n1/1", "n1/2", "n1/3"),
            runs("sister", "b", "n2/0", "n2/1", priority=priority, since_s=61),
        ],
    )
    assert (("sister", "behind") in evicted(plan(of, POLICY))) is goes


@pytest.mark.parametrize(
    ("others", "goes"),
    [
        ([job("long", "b", pods(gpus=2), priority=2, submitted_at=LONG)], False),
        ([job("long", "b", pods(gpus=2), priority=1, submitted_at=LONG)], True),
        ([job("long", "a", pods(gpus=2), priority=2, submitted_at=LONG)], False),
        ([job("long", "a", pods(gpus=2), submitted_at=LONG)], True),
        ([job("other", "b", pods(gpus=4), priority=2, submitted_at=LONG)], True),
        (
            [replace(job("long", "b", pods(gpus=2), priority=2, submitted_at=LONG), gate=GATE)],
            True,
        ),
        ([], True),
    ],
    ids=[
        "before it",
        "behind it",
        "of another project",
        "behind there",
        "another",
        "gated",
        "gone",
    ],
)
def test_but_it_is_once_those_it_went_ahead_of_are_not_first(
    others: list[PendingView], goes: bool
) -> None:
    of = snapshot(
        nodes=[node("n1", gpus=2)],
        queues=[
            queue("a", h100=Quota(0, None)),
            queue("b", h100=Quota(0, None)),
            queue("z", h100=8),
        ],
        pending=[job("urgent", "b", priority=2, submitted_at=AT - 9), *others],
        holding=[GONE_AHEAD],
    )
    found = evicted(plan(of, Policy(guard_s=None)))
    assert (("ahead", "urgent") in found) is goes


def test_an_owner_comes_before_who_borrows() -> None:
    """It lacked its quota when the borrower went ahead, say."""
    of = snapshot(
        nodes=[node("n1", gpus=2)],
        queues=[queue("b", h100=Quota(0, None)), queue("c", h100=Quota(2, 0))],
        pending=[
            job("long", "b", pods(gpus=2), priority=2, submitted_at=LONG),
            job("owner", "c", submitted_at=AT - 400),
        ],
        holding=[GONE_AHEAD],
    )
    assert evicted(plan(of, POLICY)) == [("ahead", "owner")]


def test_who_holds_what_is_not_kept_may_still_be_evicted() -> None:
    """On the same node, and nobody waits for its end."""
    of = one_node(
        head(gpus=5),
        job("mid", "a", priority=1, submitted_at=AT - 9),
        holding=[stays("r", "n1/0", "n1/1"), runs("low", "a", "n1/2", limit_s=2 * HOURS_S)],
        gpus=6,
    )
    made = plan(of, POLICY)
    assert made.keeps
    assert evicted(made) == [("low", "mid")]


def test_who_comes_before_may_evict_whom_the_one_behind_waits_for() -> None:
    of = one_node(
        head(gpus=4),
        job("first", "a", priority=3, submitted_at=AT - 9),
        holding=[stays("r", "n1/0"), runs("low", "a", "n1/1", "n1/2", "n1/3", limit_s=GUARD_S)],
    )
    assert evicted(plan(of, POLICY)) == [("low", "first")]
