"""What eviction loses, whom it spares, and that a gang reclaims at the least loss there is."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from scheduler.core.cycle import plan
from scheduler.core.laws.invariants import violations
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import HoldingView
from tests.bench import reclaim
from tests.core.build import (
    AT,
    Outcome,
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

OWN = [queue("a", h100=16)]


def gone(holding: Sequence[HoldingView], *, gpus: int = 1, pods_count: int = 1) -> list[str]:
    """Whom a workload of higher priority evicts on three nodes of two devices."""
    nodes = [node(f"n{i}", gpus=2) for i in (1, 2, 3)]
    waiting = job("w", "a", pods(pods_count, gpus=gpus), priority=9)
    made = decide(snapshot(nodes=nodes, queues=OWN, holding=holding, pending=[waiting]))
    return [victim for victim, _, _ in made.victims()]


def firm(*where: str) -> HoldingView:
    return runs("firm", "a", *where, preemptible=False)


def test_work_is_lost_since_the_last_checkpoint_and_not_since_the_start() -> None:
    saved = replace(runs("saved", "a", "n1/0", since_s=5000), checkpointed_at=AT - 10)
    rest = [firm("n1/1", "n3/0", "n3/1"), runs("young", "a", "n2/1", since_s=60)]
    assert gone([runs("old", "a", "n2/0", since_s=500), saved, *rest]) == ["saved"]
    long_ago = replace(saved, checkpointed_at=AT - 400)
    assert gone([runs("old", "a", "n2/0", since_s=500), long_ago, *rest]) == ["young"]


def test_of_a_slice_the_part_is_lost_that_it_is_of_a_device() -> None:
    """Two sevenths for 60 s are less than all of a device for 100 s; seven for 100 s are as much,
    and of more pods."""
    nodes = [node(f"n{i}", gpus=1, dynamic=True) for i in (1, 2)]
    large = runs("large", "a", "n1/0", flavor="7g", span=(0, 8), since_s=100)
    waiting = job("w", "a", pods(flavors="7g"), priority=9)

    def victims(*small: HoldingView) -> list[str]:
        of = snapshot(
            nodes=nodes, queues=[queue("a", _7g=2, _1g=7)], holding=[large, *small],
            pending=[waiting],
        )  # fmt: skip
        return [victim for victim, _, _ in decide(of).victims()]

    def sevenths(count: int, since_s: int) -> list[HoldingView]:
        return [
            runs(f"s{i}", "a", "n2/0", flavor="1g", span=(i, i + 1), since_s=since_s)
            for i in range(count)
        ]

    assert victims(*sevenths(2, 60)) == ["s0", "s1"]
    assert victims(*sevenths(7, 99)) == [f"s{i}" for i in range(7)]
    assert victims(*sevenths(7, 100)) == ["large"]


def test_a_checkpoint_of_an_earlier_run_saves_nothing_of_this_one() -> None:
    earlier = replace(runs("p", "a", "n1/0", since_s=100), checkpointed_at=AT - 5000)
    rest = [firm("n1/1", "n2/1", "n3/0", "n3/1"), runs("q", "a", "n2/0", since_s=101)]
    assert gone([earlier, *rest]) == ["p"]


def test_of_equal_loss_that_of_fewer_pods_goes() -> None:
    pair = runs("pair", "a", "n1/0", "n2/0", since_s=50)
    rest = [firm("n1/1", "n2/1", "n3/1"), runs("single", "a", "n3/0", since_s=100)]
    assert gone([pair, *rest]) == ["single"]
    assert gone([replace(pair, started_at=AT - 49), *rest]) == ["pair"]


def test_the_whole_loss_of_a_gang_counts_on_each_of_its_nodes() -> None:
    """A third of it would be the least; all of it is not."""
    gang = runs("gang", "a", "n1/0", "n2/0", "n3/0", since_s=30)
    rest = [firm("n1/1", "n2/1"), runs("single", "a", "n3/1", since_s=80)]
    assert gone([gang, *rest]) == ["single"]


def test_a_gang_that_has_to_go_makes_its_other_nodes_cheaper() -> None:
    """n1 costs 4 + 1; n2 cost 4 + 5, more than the 7 of n3, and costs 5 when the gang has gone."""
    gang = runs("gang", "a", "n1/0", "n2/0", since_s=2)
    holding = [
        gang,
        runs("y", "a", "n1/1", since_s=1),
        runs("z", "a", "n2/1", since_s=5),
        runs("p", "a", "n3/0", since_s=3),
        runs("q", "a", "n3/1", since_s=4),
    ]
    assert gone(holding, gpus=2, pods_count=2) == ["gang", "y", "z"]


def test_of_one_nodes_work_that_goes_of_which_least_is_lost_in_sum() -> None:
    """The two that lose least each lose 21 together; the pair alone frees as much for 18."""
    holding = [
        runs("x", "a", "n1/0", since_s=10),
        runs("y", "a", "n1/1", since_s=11),
        runs("pair", "a", "n1/2", "n1/3", since_s=9),
    ]
    waiting = job("w", "a", pods(gpus=2), priority=1)
    of = snapshot(nodes=[node("n1", gpus=4)], queues=OWN, holding=holding, pending=[waiting])
    assert decide(of).victims() == [("pair", "w", "priority")]
    dear = [*holding[:2], replace(holding[2], started_at=AT - 11)]
    assert [v for v, _, _ in decide(replace(of, holding=tuple(dear))).victims()] == ["x", "y"]


def test_what_slices_lose_is_looked_at_for_what_they_give_of_a_device() -> None:
    """A seventh loses less than a half does; all seven lose 100 s of a device, both halves 60."""
    sevenths = [
        runs(f"s{i}", "a", "n1/0", flavor="1g", span=(i, i + 1), since_s=100) for i in range(7)
    ]
    halves = [runs(f"h{i}", "a", "n1/1", flavor="3g", span=(i, i + 4), since_s=60) for i in (0, 4)]
    of = snapshot(
        nodes=[node("n1", gpus=2, dynamic=True)], queues=[queue("a", _7g=1, _1g=7, _3g=2)],
        holding=[*sevenths, *halves], pending=[job("w", "a", pods(flavors="7g"), priority=9)],
    )  # fmt: skip
    assert [victim for victim, _, _ in decide(of).victims()] == ["h0", "h4"]


def test_of_two_clusters_that_with_less_work_to_lose_gives_though_it_has_more_victims() -> None:
    holding = [
        runs("one", "a", "m/0", "m/1", since_s=500, in_cluster="c1"),
        runs("p", "a", "n/0", since_s=50, in_cluster="c2"),
        runs("q", "a", "n/1", since_s=50, in_cluster="c2"),
    ]
    clusters = [cluster("c1", [node("m", gpus=2)]), cluster("c2", [node("n", gpus=2)])]
    waiting = job("w", "a", pods(gpus=2), priority=1)
    made = decide(snapshot(clusters=clusters, queues=OWN, holding=holding, pending=[waiting]))
    assert [victim for victim, _, _ in made.victims()] == ["p", "q"]


def test_a_node_looked_at_before_is_asked_again_when_its_project_has_given_enough() -> None:
    """b borrows 3 cores: when the 2 on n2 have gone, the 2 on n1, looked at before, may not go."""
    holding = [
        runs("b1", "b", "n1", flavor="cpu", cores=1, since_s=1),
        runs("b2", "b", "n1", flavor="cpu", cores=1, since_s=8),
        runs("b3", "b", "n2", flavor="cpu", cores=2, since_s=2),
        runs("c1", "c", "n3", flavor="cpu", cores=2, since_s=10),
    ]
    queues = [
        queue("a", cpu=5),
        queue("b", cpu=Quota(1, borrow=None)),
        queue("c", cpu=Quota(0, borrow=None)),
    ]
    nodes = [node(f"n{i}", cores=2) for i in (1, 2, 3)]
    waiting = job("w", "a", cpu_pods(2, cores=2))
    of = snapshot(nodes=nodes, queues=queues, holding=holding, pending=[waiting])
    made = decide(of)
    assert made.victims() == [("b3", "w", "reclaim"), ("c1", "w", "reclaim")]
    assert violations(of, made.plan) == ()


def test_everybody_whose_quota_was_not_needed_in_the_end_stays() -> None:
    """Nineteen small ones give less than what is asked, the large one alone gives all of it."""
    on = [f"n{i}/{k}" for i in range(5) for k in range(8)]
    holding = [runs(f"s{i:02}", "a", on[i], since_s=1) for i in range(19)]
    holding.append(runs("large", "a", *on[19:39], since_s=10))
    nodes = [node(f"n{i}", gpus=8) for i in range(8)]
    waiting = job("w", "a", pods(20, gpus=1), priority=1)
    of = snapshot(nodes=nodes, queues=[queue("a", h100=39)], holding=holding, pending=[waiting])
    assert decide(of).victims() == [("large", "w", "priority")]


class TestLeastRunTime:
    """Project b grants its work 100 s, project a nothing."""

    queues = (
        replace(queue("a", h100=2), min_run_time_s=0),
        replace(queue("b", h100=Quota(0, borrow=None)), min_run_time_s=100),
    )

    def of(self, *holding: HoldingView, project: str = "a", priority: int = 0) -> Outcome:
        waiting = job("w", project, pods(gpus=1), priority=priority)
        nodes = [node("n1", gpus=2)]
        return decide(
            snapshot(nodes=nodes, queues=self.queues, holding=holding, pending=[waiting])
        )

    @pytest.mark.parametrize(("since_s", "goes"), [(99, False), (100, True), (None, False)])
    def test_before_it_nobody_is_evicted(self, since_s: int | None, goes: bool) -> None:
        young = runs("young", "b", "n1/0", "n1/1", since_s=since_s)
        made = self.of(young)
        assert bool(made.victims()) is goes
        assert made.waits("w") is goes
        if not goes:
            assert made.reason("w") is ReasonCode.COHORT_USED

    def test_who_has_run_longer_goes_though_more_is_lost(self) -> None:
        young, old = (
            runs(name, "b", f"n1/{i}", since_s=since_s)
            for i, (name, since_s) in enumerate([("young", 5), ("old", 5000)])
        )
        assert self.of(young, old).victims() == [("old", "w", "reclaim")]

    def test_it_holds_against_its_own_project_too(self) -> None:
        young = runs("young", "b", "n1/0", "n1/1", since_s=5)
        assert self.of(young, project="b", priority=9).victims() == []
        assert self.of(replace(young, started_at=AT - 100), project="b", priority=9).victims()

    def test_another_project_grants_its_own(self) -> None:
        own = runs("own", "a", "n1/0", "n1/1", since_s=5)
        assert self.of(own, priority=9).victims() == [("own", "w", "priority")]


def test_a_gang_reclaims_from_a_full_fleet_at_the_least_loss_and_takes_nothing_guaranteed() -> (
    None
):
    """The fixture of the bench, small: 2 pods of 8 GPUs, 160 jobs of one GPU on 20 nodes."""
    of = reclaim.gang(20)
    made = plan(of, Policy())
    assert violations(of, made) == ()
    assert len(made.preempts) == 16
    assert {preempt.rule.value for preempt in made.preempts} == {"reclaim"}
    assert reclaim.lost_s(of, made) == reclaim.least_s(of)
    evicted = {preempt.victim for preempt in made.preempts}
    left = sum(1 for held in of.holding if held.id not in evicted)
    nominal = {q.project: q.quotas[0].nominal_milli for q in of.queues}
    assert left * 1000 == nominal[of.holding[0].project]


def test_what_is_saved_counts_in_the_least_loss_of_a_gang() -> None:
    of = reclaim.gang(20)
    saved = tuple(replace(held, checkpointed_at=of.at) for held in of.holding[80:96])
    of = replace(of, holding=(*of.holding[:80], *saved, *of.holding[96:]))
    made = plan(of, Policy())
    assert {p.victim for p in made.preempts} == {held.id for held in saved}
