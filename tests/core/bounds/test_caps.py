"""Caps of projects and of their users, and queues that are held."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from scheduler.core.cycle import plan
from scheduler.core.explaining.whatif import would_start
from scheduler.core.laws.budgets import part
from scheduler.core.laws.invariants import violations
from scheduler.core.plan import Hold, Place
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode, describe
from scheduler.core.simulating.estimate import Basis, forecast
from scheduler.core.snapshot import (
    CapsView,
    HeldView,
    HoldingView,
    PendingView,
    QueueView,
    Snapshot,
)
from scheduler.core.units import ProjectId, UserId
from tests.core.build import Quota, cpu_pods, decide, job, node, pods, queue, runs, snapshot
from tests.core.drawn.fleets import snapshots
from tests.core.rounds import carried_out

ADA, BEN = UserId("ada"), UserId("ben")


def fleet(
    *pending: PendingView,
    holding: tuple[HoldingView, ...] = (),
    running: int | None = None,
    user_running: int | None = None,
    user_gpus: float | None = None,
    others: tuple[QueueView, ...] = (),
) -> Snapshot:
    """Sixteen H100s on two nodes, all of them project a's, which has the caps."""
    gpus_milli = None if user_gpus is None else round(user_gpus * 1000)
    capped = replace(queue("a", h100=16, cpu=64), caps=CapsView(running, user_running, gpus_milli))
    return snapshot(
        nodes=[node("n1", gpus=8), node("n2", gpus=8)],
        queues=[capped, *others],
        pending=pending,
        holding=holding,
    )


def of(user: UserId, *names: str) -> list[PendingView]:
    return [job(name, submitted_at=i, user=user) for i, name in enumerate(names)]


class TestCapOfTheProject:
    def test_no_more_run_at_once_and_the_rest_is_told_how_many_do(self) -> None:
        made = decide(fleet(*of(ADA, "w1", "w2", "w3"), running=2))
        assert made.started() == ["w1", "w2"]
        assert made.reason("w3") is ReasonCode.CAP_REACHED
        assert made.numbers("w3") == {"cap": "max_running", "limit_count": 2, "used_count": 2}
        assert describe(made.hold("w3").reason) == (
            "2 workloads of the project run; at most 2 may at once."
        )

    @pytest.mark.parametrize("releasing", [False, True])
    def test_what_runs_counts_until_its_end_is_seen(self, releasing: bool) -> None:
        held = runs("r", "a", "n1/0", releasing=releasing)
        made = decide(fleet(*of(ADA, "w1", "w2"), holding=(held,), running=2))
        assert made.started() == ["w1"]

    def test_a_cap_below_what_runs_takes_nothing_back(self) -> None:
        held = tuple(runs(f"r{i}", "a", f"n1/{i}") for i in range(3))
        made = decide(fleet(*of(ADA, "w"), holding=held, running=1))
        assert (made.started(), made.victims()) == ([], [])
        assert made.numbers("w")["used_count"] == 3

    def test_another_project_is_not_capped(self) -> None:
        other = job("x", "b")
        made = decide(fleet(*of(ADA, "w1", "w2"), other, running=1, others=(queue("b", h100=8),)))
        assert made.started() == ["w1", "x"]

    def test_nobody_is_evicted_for_what_a_cap_holds(self) -> None:
        held = tuple(runs(f"r{i}", "a", f"n{1 + i // 8}/{i % 8}", priority=-1) for i in range(16))
        urgent = job("w", priority=9)
        assert decide(fleet(urgent, holding=held, running=17)).victims()
        assert not decide(fleet(urgent, holding=held, running=16)).victims()

    def test_who_waits_for_an_eviction_counts_so_that_no_other_is_evicted_in_vain(self) -> None:
        held = tuple(runs(f"r{i}", "a", f"n{1 + i // 8}/{i % 8}", priority=-1) for i in range(16))
        urgent = [job(name, priority=9) for name in ("w1", "w2")]
        made = decide(fleet(*urgent, holding=held, running=17))
        assert len(made.victims()) == 1
        assert made.reason("w2") is ReasonCode.CAP_REACHED


class TestCapsOfUsers:
    def test_the_like_of_another_user_is_tried_where_one_has_reached_the_cap(self) -> None:
        first, second = of(ADA, "a1", "a2", "a3"), of(BEN, "b1", "b2")
        made = decide(fleet(*first, *second, user_running=1))
        assert sorted(made.started()) == ["a1", "b1"]
        assert made.numbers("a3") == {"cap": "user_max_running", "limit_count": 1, "used_count": 1}
        assert describe(made.hold("b2").reason) == (
            "1 workloads of its submitter run in the project; at most 1 may at once."
        )

    def test_devices_are_counted_over_flavors_and_cores_are_not(self) -> None:
        held = replace(runs("r", "a", "n1/0", "n1/1"), user=ADA)
        large, small = job("w2", "a", pods(2), user=ADA), job("w1", user=ADA)
        cores = job("w3", "a", cpu_pods(4), user=ADA, submitted_at=1)
        made = decide(fleet(large, small, cores, holding=(held,), user_gpus=3))
        assert made.started() == ["w1", "w3"]
        assert made.numbers("w2") == {
            "asked_milli": 2000, "cap": "user_max_gpus_milli", "limit_milli": 3000,
            "used_milli": 3000,
        }  # fmt: skip
        assert describe(made.hold("w2").reason) == (
            "2 GPUs asked; its submitter holds 3 in the project, and may hold 3 at once."
            " Slices and shares count as parts of a GPU."
        )

    def test_a_smaller_one_behind_the_cap_starts(self) -> None:
        large = job("large", "a", pods(4), user=ADA, priority=1)
        made = decide(fleet(large, job("small", user=ADA), user_gpus=2))
        assert made.started() == ["small"]

    @pytest.mark.parametrize(("cap", "started"), [(1.5, 1), (2, 2), (5, 5), (6, 6), (100, 8)])
    def test_a_gang_grows_up_to_the_cap(self, cap: float, started: int) -> None:
        gang = job("w", "a", pods(8, least=1), user=ADA)
        assert len(decide(fleet(gang, user_gpus=cap)).places("w")) == started

    def test_unlike_pod_sets_grow_within_the_one_cap(self) -> None:
        sets = pods(4, least=1, name="x"), pods(4, least=1, flavors="a30", name="y")
        gang = job("w", "a", *sets, user=ADA)
        nodes = [node("n1", gpus=8), node("n2", gpus=8, model="NVIDIA-A30")]
        caps = CapsView(user_gpus_milli=5000)
        at = snapshot(
            nodes=nodes, queues=[replace(queue("a", h100=8, a30=8), caps=caps)], pending=[gang]
        )
        assert len(decide(at).places("w")) == 5

    @pytest.mark.parametrize(
        ("flavor", "started", "used_milli"), [("1g", 7, 1000), ("2g", 3, 858), ("3g", 2, 1000)]
    )
    def test_slices_count_as_the_parts_that_they_are(
        self, flavor: str, started: int, used_milli: int
    ) -> None:
        """The larger part of compute and memory: 1/7, 2/7 and 1/2."""
        made = decide(slices(*of_slices(flavor, 8), user_gpus_milli=1000))
        assert len(made.started()) == started
        assert made.numbers("w7")["used_milli"] == used_milli  # six sevenths are 857.1, told whole

    def test_whole_devices_and_slices_come_under_one_cap(self) -> None:
        whole = job("w", user=ADA, priority=9)
        made = decide(slices(whole, *of_slices("1g", 8), user_gpus_milli=1143))
        assert made.started() == ["w", "w0"]
        assert made.numbers("w1") == {
            "asked_milli": 143, "cap": "user_max_gpus_milli", "limit_milli": 1143,
            "used_milli": 1143,
        }  # fmt: skip

    @pytest.mark.parametrize(("cap_milli", "started"), [(143, 1), (999, 6), (1000, 7)])
    def test_a_gang_of_slices_starts_and_grows_up_to_the_cap(
        self, cap_milli: int, started: int
    ) -> None:
        gang = job("w", "a", pods(8, least=1, flavors="1g"), user=ADA)
        of = slices(gang, user_gpus_milli=cap_milli)
        made = decide(of)
        assert len(made.places("w")) == started
        assert violations(of, made.plan) == ()

    @pytest.mark.parametrize(("cap_milli", "grown"), [(571, 0), (572, 1), (1000, 4)])
    def test_what_runs_on_slices_grows_up_to_the_cap(self, cap_milli: int, grown: int) -> None:
        least = job("w", "a", pods(3, least=3, flavors="1g"), user=ADA)
        before = slices(least, user_gpus_milli=cap_milli)
        before, _ = carried_out(before, decide(before).plan)
        (held,) = before.holding
        wider = replace(held, pod_sets=(replace(held.pod_sets[0], count=8, min_count=3),))
        of = replace(before, pending=(), holding=(wider,))
        made = plan(of, Policy())
        assert sum(len(grow.places) for grow in made.grows) == grown
        assert violations(of, made) == ()


def of_slices(flavor: str, count: int) -> list[PendingView]:
    sets = (pods(flavors=flavor) for _ in range(count))
    return [job(f"w{i}", "a", each, submitted_at=i, user=ADA) for i, each in enumerate(sets)]


def slices(*pending: PendingView, user_gpus_milli: int) -> Snapshot:
    """Four H100s that may be cut, all of them project a's, whose members have the cap."""
    quotas = queue("a", h100=4, _1g=28, _2g=12, _3g=8)
    capped = replace(quotas, caps=CapsView(user_gpus_milli=user_gpus_milli))
    return snapshot(
        nodes=[node("n1", gpus=2), node("n2", gpus=4, dynamic=True)],
        queues=[capped],
        pending=pending,
    )


def test_a_capped_head_keeps_no_quota_from_those_behind_it() -> None:
    """Its project owns the one H100, for which an urgent borrower of another waits too."""
    capped = replace(queue("a", h100=Quota(1, 0)), caps=CapsView(user_running=1))
    borrows = queue("b", h100=Quota(0, None))
    held = replace(runs("r", "a", "n1", flavor="cpu"), user=ADA)
    waiting = job("head", user=ADA, priority=5), job("next", user=BEN), job("x", "b", priority=9)
    of = snapshot(
        nodes=[node("n1", gpus=1)], queues=[capped, borrows], pending=waiting, holding=(held,)
    )
    assert decide(of).started() == ["next"]


class TestHeldQueues:
    def held(self, *pending: PendingView, holding: tuple[HoldingView, ...] = ()) -> Snapshot:
        of = fleet(*pending, holding=holding, others=(queue("b", h100=8),))
        return replace(of, queues=(replace(of.queues[0], held_by=("tenant a",)), of.queues[1]))

    def test_nothing_of_it_starts_and_others_do(self) -> None:
        made = decide(self.held(job("w"), job("x", "b")))
        assert made.started() == ["x"]
        assert made.reason("w") is ReasonCode.QUEUE_HELD
        assert "Held, so that nothing starts" in describe(made.hold("w").reason)
        assert "tenant a" in describe(made.hold("w").reason)

    def test_nobody_is_evicted_for_it_and_it_keeps_no_quota(self) -> None:
        low = tuple(runs(f"r{i}", "a", f"n{1 + i // 8}/{i % 8}", priority=-1) for i in range(16))
        made = decide(self.held(job("w", priority=9), holding=low))
        assert made.victims() == []

    def test_a_retry_is_told_of_the_held_queue_first(self) -> None:
        made = decide(self.held(job("w", not_before=2_000_000)))
        assert made.reason("w") is ReasonCode.QUEUE_HELD

    def test_the_dry_run_says_so(self) -> None:
        answer = would_start(self.held(), Policy(), job("w"))
        assert isinstance(answer, Hold)
        assert answer.reason.code is ReasonCode.QUEUE_HELD

    def test_it_has_no_estimate(self) -> None:
        of = self.held(job("w"), job("x", "b"))
        found = forecast(snapshot=of, policy=Policy(), run_times={}, passes=3, seed=1)
        assert [(f.workload, f.basis, f.p50_s) for f in found] == [
            ("w", Basis.NONE, None),
            ("x", Basis.PLAN, 0),
        ]


def test_an_estimate_waits_for_the_cap_to_come_free() -> None:
    held = replace(runs("r", "a", "n1/0", since_s=0), user=ADA)
    of = fleet(*(job(n, user=u) for n, u in (("mine", ADA), ("yours", BEN))),
               holding=(held,), user_running=1)  # fmt: skip
    times = {ProjectId("a"): (100,) * 5}
    found = forecast(snapshot=of, policy=Policy(), run_times=times, passes=3, seed=1)
    started = {str(f.workload): f.p50_s for f in found}
    assert started["yours"] == 0
    assert 100 <= (started["mine"] or 0) <= 110


@pytest.mark.parametrize(
    ("closed", "caps", "told"),
    [
        (True, None, "project a is held and starts work"),
        (False, CapsView(running=2), "project a passes max_running: 3 of 2 for all"),
        (False, CapsView(user_running=1), "project a passes user_max_running: 2 of 1 for ada"),
        (
            False,
            CapsView(user_gpus_milli=2000),
            "project a passes user_max_gpus_milli: 3000 of 2000 for ada",
        ),
    ],
)
def test_a_plan_that_knows_no_caps_breaks_the_law(
    closed: bool, caps: CapsView | None, told: str
) -> None:
    held = replace(runs("r", "a", "n1/0"), user=ADA)
    of = fleet(job("w1", "a", pods(2), user=ADA), job("w2", user=BEN), holding=(held,))
    made = plan(of, Policy())
    assert violations(of, made) == ()
    law = replace(of, queues=(replace(of.queues[0], held_by=("a",) if closed else (), caps=caps),))
    assert violations(law, made) == (told,)


@settings(max_examples=200, deadline=None)
@given(of=snapshots())
def test_a_cap_is_told_as_reached_only_where_it_is(of: Snapshot) -> None:
    """Counted anew: what holds, what starts and what waits for an eviction, of its submitter."""
    made = decide(of)
    queues = {q.project: q for q in of.queues}
    for waiting in of.pending:
        hold = made.holds.get(waiting.id)
        if hold is None or hold.reason.code is not ReasonCode.CAP_REACHED:
            continue
        told = dict(hold.reason.numbers)
        caps = queues[waiting.project].caps
        assert caps is not None
        mine = [h for h in of.holding if h.project == waiting.project]
        ours = [p for p in of.pending if p.project == waiting.project]
        if told["cap"] != "max_running":
            mine = [h for h in mine if h.user == waiting.user]
            ours = [p for p in ours if p.user == waiting.user]
        waits = [p for p in ours if made.waits(p.id)]
        if told["cap"] == "user_max_gpus_milli":
            used, limit, asked = (int(told[f"{n}_milli"]) for n in ("used", "limit", "asked"))
            parts = {flavor.id: part(flavor) for flavor in of.flavors}
            got: list[Place | HeldView] = [p for held in mine for p in held.placements]
            got += (p for w in ours if w.id in made.admits for p in made.places(w.id))
            asks = [s.min_count * s.gpu_count * s.gpu_milli for w in waits for s in w.pod_sets]
            most = sum(asks) + sum(each.amount_milli * parts[each.flavor] for each in got)
            assert limit == caps.user_gpus_milli
            assert limit - asked < used < most + 1
        else:
            limit, used = int(told["limit_count"]), int(told["used_count"])
            count = len(mine) + sum(1 for p in ours if p.id in made.admits) + len(waits)
            assert limit in (caps.running, caps.user_running)
            assert limit <= used <= count
