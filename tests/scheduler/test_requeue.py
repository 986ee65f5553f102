"""Work whose cluster is lost: what a late worker may still do there, and any order of what happens
to two clusters."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import transaction

from clusters.models import Cluster
from clusters.port import PodPhase
from clusters.services import clusters
from clusters.services.clusters import LOST_S
from controlplane.kernel.errors import Conflict
from scheduler.core.failures import REQUEUE_S
from scheduler.core.lifecycle import TERMINAL, State
from scheduler.loop.dispatching import dispatch
from scheduler.loop.observing import requeue
from scheduler.loop.pods.claims import keep
from scheduler.models import Attempt, Operation, Placement, PlacementSpan, Workload
from scheduler.selectors.load import load_here
from tenants.models import Quota
from tests import factories
from tests.factories import AT
from tests.flows.losing import broken, lose, silence
from tests.scheduler.fake import FakeCluster
from tests.scheduler.stage import LATER, Stage
from tests.scheduler.test_dispatch import at_the_stored_uid

SHUT = PodPhase.GATED


@pytest.fixture
def stage(committed: Stage) -> Stage:
    """What is checked is checked in a transaction of its own."""
    return committed


@pytest.fixture
def other(stage: Stage) -> Stage:
    """A second cluster like the first, which nothing was ever heard of: it takes nothing yet."""
    cluster = factories.cluster("south", state="degraded")
    nodes = [factories.node(cluster, f"s{number}") for number in (1, 2)]
    return replace(stage, cluster=cluster, nodes=nodes, port=FakeCluster())


def submitted(stage: Stage, name: str = "train", count: int = 2) -> Workload:
    return stage.submit(name, gpus=1, count=count, cluster_loss_requeue_s=600)


def test_no_work_starts_elsewhere_before_its_cluster_counts_as_lost() -> None:
    assert REQUEUE_S[0] == LOST_S


def test_a_worker_that_is_late_stores_and_opens_nothing(
    stage: Stage, other: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pods were made when the cluster was lost, and it goes on when all is over."""
    submitted(stage)
    stage.cycle()

    def meanwhile() -> None:
        clusters.heard(cluster=other.cluster)
        assert lose(stage.cluster) == 1

    at_the_stored_uid(monkeypatch, meanwhile)
    stage.dispatch()
    assert {pod.phase for pod in stage.port.pods.values()} == {SHUT}
    assert not Placement.objects.exclude(pod_uid="", opened_at=None).exists()
    assert broken() == []

    clusters.heard(cluster=stage.cluster)
    assert stage.dispatch() == 1
    stage.relist()
    assert stage.port.pods == {}
    assert not Placement.objects.filter(released_at=None).exists()
    assert broken() == []


def test_a_worker_that_is_late_with_open_pods_says_nothing_of_them(
    stage: Stage, other: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = submitted(stage)
    stage.cycle()

    def late(**asked: object) -> frozenset[object]:
        clusters.heard(cluster=other.cluster)
        assert lose(stage.cluster) == 1
        return keep(**asked)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(dispatch, "keep", late)
    stage.dispatch()
    workload.refresh_from_db()
    assert workload.state == State.PENDING
    assert not Placement.objects.exclude(opened_at=None).exists()
    # They are open in the cluster: their uids are known, and they end when it is back.
    clusters.heard(cluster=stage.cluster)
    stage.dispatch()
    stage.relist()
    assert stage.port.pods == {}
    assert broken() == []


def test_pods_that_run_have_their_grace_when_they_are_stopped(stage: Stage, other: Stage) -> None:
    workload = stage.running(grace_s=90, cluster_loss_requeue_s=600)
    clusters.heard(cluster=other.cluster)
    assert lose(stage.cluster) == 1
    assert stage.dispatch() == 0  # not before it is heard
    clusters.heard(cluster=stage.cluster)
    stage.dispatch()
    assert set(stage.port.graces.values()) == {90}
    assert workload.attempts.count() == 1


def test_the_planner_sees_what_is_held_unseen_and_may_take_none_of_it(
    stage: Stage, other: Stage
) -> None:
    workload = stage.running(count=2, cluster_loss_requeue_s=600)
    clusters.heard(cluster=other.cluster)
    lose(stage.cluster)
    snapshot = load_here(at=LATER).snapshot
    [held] = snapshot.holding
    first = Attempt.objects.get()
    assert (held.id, len(held.placements)) == (str(first.id), 2)
    assert (held.preemptible, held.releasing, held.pod_sets) == (False, False, ())
    assert [each.id for each in snapshot.pending] == [str(workload.id)]

    other.cycle(at=LATER)
    holding = load_here(at=LATER).snapshot.holding
    held_by = {str(each.id): {p.node for p in each.placements} for each in holding}
    assert held_by.keys() == {str(first.id), str(workload.id)}
    assert held_by[str(workload.id)] <= {str(node.id) for node in other.nodes}
    clusters.heard(cluster=stage.cluster)
    assert {each.id: each.releasing for each in load_here(at=LATER).snapshot.holding} == {
        str(first.id): True,
        str(workload.id): False,
    }


def test_the_work_that_was_lost_is_counted_up_to_the_silence(stage: Stage, other: Stage) -> None:
    stage.running(gpus=2, cluster_loss_requeue_s=600)
    clusters.heard(cluster=other.cluster)
    # It ran for two hours by its own clock, in the last of which nothing was heard.
    silence(stage.cluster, for_s=3600)
    assert requeue.requeue_lost(at=AT + timedelta(hours=2)) == 1
    lost = Attempt.objects.get().lost_milli_s
    assert 2000 * 3590 <= lost <= 2000 * 3600


STEPS = 150


@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_losses_and_returns_keeps_every_promise(
    seed: int, stage: Stage, other: Stage
) -> None:
    walk = Walk(random.Random(seed), stage, other)
    walk.lose_one()
    for _ in range(STEPS):
        walk.step()
        assert broken() == [], walk.told
    walk.end()
    assert broken() == [], walk.told
    assert not Placement.objects.filter(released_at=None).exists()
    assert not PlacementSpan.objects.filter(released_at=None).exists()
    assert Quota.objects.get().used_milli == 0
    assert walk.losses


class Walk:
    """What may happen to two clusters, in random order. A cluster that is not heard goes on by
    itself: its pods run and end, and nobody is told."""

    def __init__(self, chance: random.Random, *stages: Stage) -> None:
        self._chance = chance
        self._stages = stages
        self._names = iter(f"w{n}" for n in range(1000))
        self.told: list[str] = []
        self.losses = 0
        self._down: set[str] = set()
        for each in stages:
            clusters.heard(cluster=each.cluster)

    def lose_one(self) -> None:
        """So that no walk goes without."""
        first = self._stages[0]
        self.submit(first)
        self.cycle(first)
        where = Attempt.objects.get().cluster_id
        [of] = [each for each in self._stages if each.cluster.id == where]
        for act in (self.dispatch, self.run_pods, self.fall_silent, self.requeue):
            act(of)

    def step(self) -> None:
        steps: list[Callable[[Stage], None]] = [
            self.submit, self.submit, self.cancel, self.cycle, self.cycle, self.dispatch,
            self.dispatch, self.look, self.look, self.run_pods, self.run_pods, self.end_pods,
            self.fall_silent, self.requeue, self.requeue, self.requeue, self.come_back,
        ]  # fmt: skip
        of, act = self._chance.choice(self._stages), self._chance.choice(steps)
        self.told.append(f"{act.__name__} {of.cluster.name}")
        act(of)
        self.never_two_opened()

    def never_two_opened(self) -> None:
        """Of one workload Berth has opened pods of two attempts only where the first is unseen."""
        live = Placement.objects.filter(released_at=None).exclude(opened_at=None)
        seen = live.filter(attempt__unseen_since=None)
        attempts = set(seen.values_list("workload_id", "attempt_id"))
        assert len(attempts) == len({workload for workload, _ in attempts}), self.told

    def submit(self, of: Stage) -> None:
        if Workload.objects.exclude(state__in=sorted(TERMINAL)).count() < 4:
            submitted(of, next(self._names), count=self._chance.choice([1, 2, 3]))

    def cancel(self, of: Stage) -> None:
        for workload in Workload.objects.exclude(state__in=sorted(TERMINAL)).order_by("id")[:1]:
            if self._chance.random() < 0.1:
                try:
                    with transaction.atomic():
                        of.cancel(workload)
                except Conflict:
                    return

    def cycle(self, of: Stage) -> None:
        of.cycle(at=LATER)

    def dispatch(self, of: Stage) -> None:
        if of.cluster.name not in self._down:
            of.dispatch(at=LATER)

    def look(self, of: Stage) -> None:
        if of.cluster.name not in self._down:
            of.relist()

    def run_pods(self, of: Stage) -> None:
        for pod in of.port.in_phase(PodPhase.WAITING):
            of.port.becomes(pod.name, PodPhase.RUNNING, started_at=AT)

    def end_pods(self, of: Stage) -> None:
        for pod in of.port.in_phase(PodPhase.RUNNING)[:1]:
            of.port.becomes(pod.name, PodPhase.SUCCEEDED, finished_at=LATER, exit_code=0)

    def fall_silent(self, of: Stage) -> None:
        if not self._down or self._chance.random() < 0.1:
            self._down.add(of.cluster.name)

    def requeue(self, of: Stage) -> None:
        if of.cluster.name in self._down:
            self.losses += lose(of.cluster)

    def come_back(self, of: Stage) -> None:
        """A list is stored, then it is heard."""
        if of.cluster.name in self._down:
            self._down.discard(of.cluster.name)
            of.relist()
            clusters.heard(cluster=of.cluster)

    def end(self) -> None:
        for each in self._stages:
            self.come_back(each)
        for workload in Workload.objects.exclude(state__in=sorted(TERMINAL)):
            self._stages[0].cancel(workload)
        for _ in range(4):
            for each in self._stages:
                each.release_claims()
                each.dispatch(at=LATER)
                each.relist()
        assert not Operation.objects.filter(done_at=None).exists(), self.told
        assert set(Workload.objects.values_list("state", flat=True)) <= TERMINAL
        assert not Cluster.objects.exclude(state="active").exists()
