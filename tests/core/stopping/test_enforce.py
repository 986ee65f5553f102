"""A quota that is enforced takes back what is held beyond it, and no more."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cycle import plan
from scheduler.core.laws.enforce import enforced
from scheduler.core.laws.invariants import violations
from scheduler.core.memory import Memory
from scheduler.core.plan import Plan, Preempt, Shrink
from scheduler.core.policy import Policy
from scheduler.core.reasons import PreemptRule, ReasonCode
from scheduler.core.simulating.estimate import Basis, forecast
from scheduler.core.snapshot import HoldingView, QuotaView, Snapshot
from scheduler.core.stopping.enforce import MOST_VICTIMS, Enforced, found, kept, would_go
from scheduler.core.units import (
    NO_WORKLOAD,
    CohortId,
    FlavorId,
    PlacementId,
    ProjectId,
    WorkloadId,
)
from tests.core.build import (
    AT,
    Quota,
    cohort,
    decide,
    job,
    milli,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.drawn.fleets import shuffled, snapshots
from tests.core.scenarios.scenario import gpus, nodes, singles
from tests.core.sweep.test_sweep import agree

H100 = FlavorId("h100")


def marked(of: Snapshot, pick: Random) -> Snapshot:
    """With an `enforce_at` of some quotas, now or in a while."""

    def when(quota: QuotaView) -> QuotaView:
        at = pick.choice([None, of.at - 5, of.at, of.at + 60])
        nominal = quota.nominal_milli // pick.choice([1, 1, 2, 4])
        limit = pick.choice([0, 0, 1000, quota.borrowing_limit_milli])
        return replace(quota, nominal_milli=nominal, borrowing_limit_milli=limit, enforce_at=at)

    return replace(
        of,
        queues=tuple(replace(q, quotas=tuple(map(when, q.quotas))) for q in of.queues),
        cohorts=tuple(replace(c, quotas=tuple(map(when, c.quotas))) for c in of.cohorts),
    )


def enforcing(of: Snapshot, project: str = "a", *, at: int = AT) -> Snapshot:
    """The quotas of that project, or cohort, are enforced from then on."""

    def mark(quotas: tuple[QuotaView, ...]) -> tuple[QuotaView, ...]:
        return tuple(replace(quota, enforce_at=at) for quota in quotas)

    return replace(
        of,
        queues=tuple(
            replace(q, quotas=mark(q.quotas)) if q.project == project else q for q in of.queues
        ),
        cohorts=tuple(
            replace(c, quotas=mark(c.quotas)) if c.id == project else c for c in of.cohorts
        ),
    )


def fleet(
    *holding: HoldingView, nominal: float = 2, borrow: float | None = 0, **asked: object
) -> Snapshot:
    return snapshot(
        nodes=nodes(8), queues=[queue("a", h100=Quota(nominal, borrow))], holding=holding
    )


def victims(of: Snapshot) -> list[str]:
    made = plan(of, Policy())
    assert violations(of, made) == ()
    return [p.victim for p in made.preempts if p.rule is PreemptRule.QUOTA]


FOUR = singles("x1 x2 x3 x4", "a", gpus("n1", 0, 4))


class TestWhen:
    def test_nobody_goes_while_a_quota_is_left_to_drain(self) -> None:
        assert victims(fleet(*FOUR)) == []

    @pytest.mark.parametrize(("at", "gone"), [(AT - 1, 2), (AT, 2), (AT + 1, 0)])
    def test_not_before_its_moment(self, at: int, gone: int) -> None:
        assert len(victims(enforcing(fleet(*FOUR), at=at))) == gone

    def test_what_may_be_borrowed_may_be_held(self) -> None:
        assert victims(enforcing(fleet(*FOUR, borrow=2))) == []
        assert victims(enforcing(fleet(*FOUR, borrow=1))) == ["x1"]

    def test_without_a_borrowing_limit_there_is_nothing_to_enforce(self) -> None:
        assert victims(enforcing(fleet(*FOUR, borrow=None))) == []

    def test_what_is_on_its_way_back_counts_as_gone(self) -> None:
        one, two, three, four = FOUR
        of = fleet(replace(four, releasing=True), one, two, replace(three, releasing=True))
        assert victims(enforcing(of)) == []


class TestWho:
    def test_who_loses_least_goes_first_and_no_more_than_have_to(self) -> None:
        assert victims(enforcing(fleet(*FOUR))) == ["x1", "x2"]

    def test_lower_priority_goes_before_less_lost_work(self) -> None:
        one, two, three, four = FOUR
        of = fleet(one, two, three, replace(four, priority=-1))
        assert victims(enforcing(of)) == ["x4", "x1"]

    def test_what_may_not_be_preempted_stays_though_the_quota_is_passed(self) -> None:
        firm = [replace(each, preemptible=False) for each in FOUR[1:]]
        of = enforcing(fleet(FOUR[0], *firm))
        assert victims(of) == ["x1"]
        assert (found(of).over_milli, found(of).stays_milli) == (2000, 1000)

    def test_a_large_one_alone_goes_where_small_ones_do_not_help(self) -> None:
        big = runs("big", "a", *gpus("n1", 0, 4), since_s=500)
        small = runs("small", "a", "n1/4", since_s=10)
        assert victims(enforcing(fleet(big, small, nominal=1))) == ["big"]
        assert victims(enforcing(fleet(big, small, nominal=4))) == ["small"]

    def test_pods_beyond_the_least_go_before_workloads(self) -> None:
        gang = runs("e", "a", *gpus("n1", 0, 4), of=pods(4, least=2))
        of = enforcing(fleet(gang))
        made = plan(of, Policy())
        assert violations(of, made) == ()
        pods_gone = (PlacementId("e-3"), PlacementId("e-2"))
        assert made.preempts == ()
        assert made.shrinks == (
            Shrink(WorkloadId("e"), pods_gone, NO_WORKLOAD, PreemptRule.QUOTA),
        )

    def test_pods_go_with_their_workload_where_that_has_to(self) -> None:
        gang = runs("e", "a", *gpus("n1", 0, 4), of=pods(4, least=2))
        made = plan(enforcing(fleet(gang, nominal=1)), Policy())
        assert [p.victim for p in made.preempts] == ["e"]
        assert made.shrinks == ()

    def test_pods_that_go_with_their_workload_count_once(self) -> None:
        gang = runs("e", "a", *gpus("n1", 0, 4), of=pods(4, least=2), since_s=50)
        firm = runs("firm", "a", *gpus("n1", 4, 6), preemptible=False)
        small = runs("small", "a", "n1/6", since_s=10)
        assert victims(enforcing(fleet(gang, firm, small))) == ["small", "e"]

    def test_the_least_run_time_does_not_protect_from_it(self) -> None:
        of = enforcing(fleet(*FOUR))
        of = replace(of, queues=(replace(of.queues[0], min_run_time_s=10_000),))
        assert victims(of) == ["x1", "x2"]

    def test_of_very_many_the_rest_goes_with_the_next_plan(self) -> None:
        many = [runs(f"x{i}", "a", f"n{i // 8 + 1}/{i % 8}") for i in range(MOST_VICTIMS + 4)]
        of = replace(fleet(*many, nominal=0), clusters=snapshot(nodes=nodes(*[8] * 64)).clusters)
        assert len(plan(enforcing(of), Policy()).preempts) == MOST_VICTIMS


class TestTenants:
    def of(self, nominal: float) -> Snapshot:
        return snapshot(
            nodes=nodes(8),
            cohorts=[cohort("t", h100=Quota(nominal, 0))],
            queues=[
                queue("a", tenant="t", h100=Quota(0, None)),
                queue("b", tenant="t", h100=Quota(0, None)),
                queue("c", h100=2),
            ],
            holding=[
                *singles("a1 a2", "a", gpus("n1", 0, 2)),
                *singles("b1 b2", "b", gpus("n1", 2, 4)),
                *singles("c1 c2", "c", gpus("n1", 4, 6)),
            ],
        )

    def test_all_below_it_give_and_nobody_else(self) -> None:
        assert victims(enforcing(self.of(1), "t")) == ["a1", "b1", "a2"]

    def test_what_a_project_keeps_for_itself_does_not_help_and_stays(self) -> None:
        of = self.of(0)
        own = queue("a", tenant="t", h100=Quota(2, 0, lend=0))
        of = enforcing(replace(of, queues=(own, *of.queues[1:])), "t")
        assert victims(of) == ["b1", "b2"]

    def test_quotas_of_a_project_and_of_its_tenant_take_no_more_than_the_stricter(self) -> None:
        of = enforcing(self.of(3), "t")
        mine = replace(of.queues[0].quotas[0], borrowing_limit_milli=1000, enforce_at=AT)
        of = replace(of, queues=(replace(of.queues[0], quotas=(mine,)), *of.queues[1:]))
        assert victims(of) == ["a1"]


def test_a_quota_over_a_model_is_enforced_like_any_other() -> None:
    of = fleet(*FOUR, nominal=8)
    whole = QuotaView(FlavorId("h100all"), 14_000, 0, enforce_at=AT)
    of = replace(of, queues=(replace(of.queues[0], quotas=(*of.queues[0].quotas, whole)),))
    assert victims(of) == ["x1", "x2"]


def test_others_wait_for_what_comes_back_and_nobody_else_is_evicted_for_it() -> None:
    of = enforcing(
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=2), queue("b", h100=2)],
            holding=FOUR,
            pending=[job("w1", "b"), job("w2", "b"), job("again", "a")],
        )
    )
    made = decide(of)
    assert made.victims() == [("x1", "", "quota"), ("x2", "", "quota")]
    assert made.waits("w1")
    assert made.waits("w2")
    assert made.reason("again") is ReasonCode.QUOTA_USED


def test_a_forecast_counts_on_what_comes_back() -> None:
    of = enforcing(
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=2), queue("b", h100=2)],
            holding=FOUR,
            pending=[job("w1", "b")],
        )
    )
    [told] = forecast(snapshot=of, policy=Policy(), run_times={}, passes=3, seed=1)
    assert (told.p50_s, told.basis) == (0, Basis.PLAN)


class TestPreview:
    def test_it_is_of_that_quota_alone_as_if_now(self) -> None:
        of = enforcing(TestTenants().of(0), "t")
        lower = QuotaView(H100, 0, 1000)
        seen = would_go(of, ProjectId("a"), lower)
        assert [v.id[0] for v in seen.victims] == ["a1"]
        assert (seen.over_milli, seen.stays_milli) == (1000, 0)
        assert [v.cost[2] for v in seen.victims] == [100 * 1000]

    def test_it_is_what_the_plan_does_then(self) -> None:
        of = fleet(*FOUR, nominal=4)
        lower = QuotaView(H100, milli(1), 0)
        seen = would_go(of, ProjectId("a"), lower)
        then = replace(of, queues=(queue("a", h100=1),))
        assert [v.id[0] for v in seen.victims] == victims(enforcing(then)) == ["x1", "x2", "x3"]

    def test_nobody_goes_for_a_quota_that_is_not_passed(self) -> None:
        assert would_go(fleet(*FOUR), ProjectId("a"), QuotaView(H100, 4000, 0)) == Enforced()
        assert would_go(fleet(*FOUR), CohortId("no"), QuotaView(H100, 0, 0)) == Enforced()


def test_a_quota_is_kept_once_all_beyond_it_is_seen_gone() -> None:
    of = fleet(*(replace(each, releasing=True) for each in FOUR))
    assert kept(of) == []
    assert kept(enforcing(of, at=AT + 60)) == []
    of = enforcing(replace(of, holding=of.holding[:2]), at=AT + 60)
    assert kept(of) == [("a", of.queues[0].quotas[0])]


@settings(deadline=None)
@given(snapshots(12), st.integers(0, 2**32))
def test_no_plan_takes_more_than_has_to_go_nor_less(of: Snapshot, seed: int) -> None:
    of = marked(of, Random(seed))
    made = agree(of, Policy())
    assert violations(of, made) == ()
    assert plan(shuffled(of, seed), Policy()) == made
    assert plan(of, Policy(), Memory()) == made


@settings(deadline=None)
@given(snapshots(4), st.integers(0, 2**32))
def test_a_plan_later_takes_nobody_else(of: Snapshot, seed: int) -> None:
    of = marked(of, Random(seed))
    made = plan(of, Policy())
    gone = {p.victim for p in made.preempts}
    pods_gone = {pod for s in made.shrinks for pod in s.placements}
    then = replace(
        of,
        pending=(),
        holding=tuple(
            replace(h, placements=tuple(p for p in h.placements if p.id not in pods_gone))
            for h in of.holding
            if h.id not in gone and not h.releasing
        ),
    )
    assert victims(then) == []


class TestTheLaw:
    OF = enforcing(fleet(*FOUR))

    def told(self, *gone: str) -> list[str]:
        preempts = (Preempt(WorkloadId(id), NO_WORKLOAD, PreemptRule.QUOTA) for id in gone)
        return list(enforced(self.OF, Plan(preempts=tuple(preempts))))

    def test_it_names_who_need_not_have_gone_and_who_should_have(self) -> None:
        assert self.told("x3", "x4") == []
        spared = "goes for a quota that is kept without that"
        assert self.told("x1", "x2", "x3") == [f"{id} {spared}" for id in ("x1", "x2", "x3")]
        stays = "stays, and a quota that is enforced is passed"
        assert self.told("x1") == [f"{id} {stays}" for id in ("x2", "x3", "x4")]
