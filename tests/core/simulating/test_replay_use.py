"""What is held and borrowed in days that are played again, against each second counted alone."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from random import Random

import pytest

from scheduler.core.explaining.whatif import granted, weighted
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.simulating import replay as replays
from scheduler.core.simulating.carried import carried_out
from scheduler.core.simulating.held_time import Use
from scheduler.core.simulating.replay import Arrival, Memory, Replay, replay
from scheduler.core.snapshot import QueueView, Snapshot
from scheduler.core.units import ClusterId, FlavorId, ProjectId, WorkloadId
from tests.core.build import A30, AT, Quota, cluster, job, node, pods, queue, snapshot

A, B, C = ProjectId("a"), ProjectId("b"), ProjectId("c")
H100 = FlavorId("h100")
SECONDS = 3600


def play(before: Snapshot, after: Snapshot, arrivals: Sequence[Arrival], seconds: int) -> Replay:
    return replay(
        before=before,
        after=after,
        arrivals=arrivals,
        policy=Policy(),
        memory=Memory(kept=0),
        until=AT + seconds,
    )


def test_a_case_that_is_worked_by_hand() -> None:
    """Four devices, looked at each ten seconds; 1 of them is a's own. From 0 on it holds 2 for 45
    seconds and 2 for 75. b wants 2 for 30, and is seen at 20.

    As it is b waits until the end at 45 is seen at 50, and borrows what it holds. With 3 of its
    own it stops 2 of a's at 20, which start anew at 50, beside the others until 75, then alone.
    """
    queues = [
        queue("a", h100=Quota(1, borrow=None)),
        queue("b", h100=Quota(0, borrow=None)),
        queue("c", h100=3),
    ]
    before = snapshot(nodes=[node("n1", gpus=4)], queues=queues)
    after = granted(granted(before, B, H100, 3000), C, H100, -3000)
    arrivals = [
        Arrival(job("a1", "a", pods(gpus=2), submitted_at=AT), 45),
        Arrival(job("a2", "a", pods(gpus=2), submitted_at=AT), 75),
        Arrival(job("b1", "b", pods(gpus=2), submitted_at=AT + 12), 30),
    ]
    found = play(before, after, arrivals, 100)
    assert found.step_s == 10
    key = H100, ClusterId("c1")
    of_a, of_b = found.projects
    assert of_a.use_before == Use({key: 2000 * (45 + 75)}, {H100: 3000 * 45 + 1000 * 30})
    assert of_a.use_after == Use(
        {key: 2000 * (20 + 45 + 75)}, {H100: 3000 * 20 + 1000 * 30 + 3000 * 25 + 1000 * 20}
    )
    assert of_b.use_before == Use({key: 2000 * 30}, {H100: 2000 * 30})
    assert of_b.use_after == Use({key: 2000 * 30}, {})


def test_what_still_runs_counts_until_the_end() -> None:
    fleet = snapshot(nodes=[node("n1", gpus=1)], queues=[queue("a", h100=1)])
    [of_a] = play(fleet, fleet, [Arrival(job("w", submitted_at=AT + 5), 1000)], 95).projects
    assert of_a.use_before == of_a.use_after == Use({(H100, ClusterId("c1")): 1000 * 85}, {})


def test_each_second_counted_by_itself_comes_to_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two clusters, two models, gangs that grow and shrink, evictions, a quota over a model."""
    moments, seen = defaultdict[tuple[QueueView, ...], list[Snapshot]](list), Counter[str]()

    def noted(of: Snapshot, made: Plan) -> tuple[Snapshot, bool]:
        then, changed = carried_out(of, made)
        moments[then.queues].append(then)
        seen.update(preempts=len(made.preempts), shrinks=len(made.shrinks), grows=len(made.grows))
        return then, changed

    monkeypatch.setattr(replays, "carried_out", noted)
    before = fleet()
    after = weighted(granted(granted(before, B, H100, 2000), C, H100, -2000), A, 3)
    for seed in range(4):
        moments.clear()
        pick = Random(seed)
        arrivals = [arrival(pick, nth) for nth in range(60)]
        run_s = {each.pending.id: each.run_s for each in arrivals}
        for each in play(before, after, arrivals, SECONDS).projects:
            for told, of in ((each.use_before, before), (each.use_after, after)):
                assert told == counted(each.project, of, moments[of.queues], run_s)
                seen.update(f"{flavor} borrowed" for flavor in told.borrowed_milli_s)
    assert len(+seen) == 6, seen


def fleet() -> Snapshot:
    queues = [
        queue(
            "a", h100=Quota(1, borrow=None), a30=Quota(0, borrow=None),
            h100all=Quota(14, borrow=None),
        ),
        queue("b", h100=Quota(2, borrow=None), a30=Quota(1, borrow=None)),
        queue("c", h100=2, a30=2, h100all=14),
    ]  # fmt: skip
    clusters = [
        cluster("c1", [node("n1", gpus=4), node("n2", gpus=2, model=A30)]),
        cluster("c2", [node("n3", gpus=2), node("n4", gpus=2, model=A30)]),
    ]
    return snapshot(clusters=clusters, queues=queues)


def arrival(pick: Random, nth: int) -> Arrival:
    count = pick.choice([1, 1, 2, 4])
    asks = pods(count, least=1, flavors=pick.choice(["h100", "h100", "a30", "a30 h100"]))
    came = AT + pick.randrange(SECONDS)
    return Arrival(
        job(f"w{nth}", pick.choice("ab"), asks, submitted_at=came), pick.randrange(1, 600)
    )


def counted(
    project: ProjectId, of: Snapshot, moments: Sequence[Snapshot], run_s: Mapping[WorkloadId, int]
) -> Use:
    """Second by second, what runs of the project then, and what of it is beyond its quota."""
    [quotas] = [each.quotas for each in of.queues if each.project == project]
    nominal = {quota.flavor: quota.nominal_milli for quota in quotas}
    used, borrowed = Counter[tuple[FlavorId, ClusterId]](), Counter[FlavorId]()
    for second in range(AT, AT + SECONDS):
        then = next((each for each in reversed(moments) if each.at <= second), of)
        charged = Counter[FlavorId]()
        for held in then.holding:
            if held.project == project and held.admitted_at + run_s[held.id] > second:
                for pod in held.placements:
                    used[pod.flavor, held.cluster] += pod.amount_milli
                    charged[pod.flavor] += pod.amount_milli
        if FlavorId("h100all") in nominal:
            charged[FlavorId("h100all")] = 7 * charged[H100]
        for flavor, milli in charged.items():
            borrowed[flavor] += max(0, milli - nominal[flavor])
    return Use(dict(+used), dict(+borrowed))
