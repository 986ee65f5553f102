"""What grows and shrinks in the database and at the cluster, and what nobody lets happen there."""

from dataclasses import replace
from uuid import UUID

import pytest
from django.db import connection

from clusters.port import Fault, PodPhase
from controlplane.kernel.queues import QueueState
from scheduler.core.lifecycle import State
from scheduler.core.plan import Grow, Plan, Shrink
from scheduler.core.policy import Policy
from scheduler.core.reasons import PreemptRule
from scheduler.core.units import PlacementId, WorkloadId
from scheduler.loop import lease, run
from scheduler.loop.applying import resize
from scheduler.loop.lease import Fenced, Lease
from scheduler.models import (
    CycleRecord,
    Operation,
    OperationKind,
    Placement,
    SchedulerLease,
    Workload,
    WorkloadEvent,
)
from scheduler.selectors import due, elastic
from scheduler.selectors.load import Loaded
from tenants.models import Quota
from tests.factories import AT
from tests.scheduler.stage import LATER, SHARD, Stage
from tests.scheduler.test_drain import move

pytestmark = pytest.mark.django_db


def live(workload: Workload) -> list[Placement]:
    rows = Placement.objects.filter(workload=workload, released_at=None)
    return list(rows.select_related("workload__project", "attempt").order_by("rank"))


def runs_short(stage: Stage) -> Workload:
    """A gang that runs with two pods of a device each; there is quota for all of it now."""
    quota = Quota.objects.get()
    Quota.objects.update(nominal_milli=2000, borrowing_limit_milli=0)
    workload = stage.running("gang", count=4, least=2, gpus=1)
    Quota.objects.update(nominal_milli=quota.nominal_milli)
    assert workload.state == State.RUNNING
    return workload


def held() -> Lease:
    SchedulerLease.objects.update(expires_at=AT)  # whoever had it before is done
    found = lease.acquire(shard=SHARD)
    assert found is not None
    return found


def planned(stage: Stage) -> tuple[Loaded, tuple[Grow, ...]]:
    loaded, made = stage.decide(at=LATER)
    assert made.grows
    return loaded, made.grows


def grow(stage: Stage) -> frozenset[WorkloadId]:
    loaded, grows = planned(stage)
    return resize.grow(lease=held(), loaded=loaded, grows=grows, at=LATER)


def shrink(workload: Workload, *ranks: int, by: Workload | None = None) -> frozenset[WorkloadId]:
    pods = [p for p in live(workload) if p.rank in ranks]
    given = Shrink(
        WorkloadId(str(workload.id)),
        tuple(PlacementId(str(p.id)) for p in pods),
        WorkloadId(str((by or workload).id)),
        PreemptRule.PRIORITY if by else PreemptRule.RECLAIM,
    )
    return resize.shrink(lease=held(), shrinks=[given], at=LATER)


def all_run(stage: Stage, workload: Workload) -> None:
    for placement in live(workload):
        if placement.started_at is None and placement.pod_uid:
            stage.observe(stage.report(placement, PodPhase.RUNNING, started_at=LATER))


def full(stage: Stage) -> Workload:
    """It runs with all four."""
    workload = runs_short(stage)
    grow(stage)
    stage.dispatch()
    all_run(stage, workload)
    return workload


class TestGrowth:
    def test_it_is_charged_at_once_and_started_as_any_pod(self, stage: Stage) -> None:
        workload = runs_short(stage)
        before = dict(stage.port.pods)
        assert grow(stage) == {str(workload.id)}
        assert Quota.objects.get().used_milli == 4000
        assert stage.dispatch() == 1
        assert stage.dispatch() == 0
        assert [p.rank for p in live(workload)] == [0, 1, 2, 3]
        assert all(p.opened_at for p in live(workload))
        assert before.items() <= stage.port.pods.items(), "the pods that ran were touched"
        assert stage.port.calls["create"] == 4

    def test_its_pods_are_told_what_the_first_ones_were(self, stage: Stage) -> None:
        full(stage)
        told = [dict(request.env) for request in stage.port.requests.values()]
        assert sorted(env["RANK"] for env in told) == ["0", "1", "2", "3"]
        for name, value in {
            "WORLD_SIZE": "2",
            "BERTH_MIN_PODS": "2",
            "BERTH_MAX_PODS": "4",
        }.items():
            assert {env[name] for env in told} == {value}
        assert len({env["MASTER_ADDR"] for env in told}) == 1

    def test_a_gang_that_starts_with_one_pod_has_a_service_for_the_others(
        self, stage: Stage
    ) -> None:
        Quota.objects.update(nominal_milli=1000, borrowing_limit_milli=0)
        stage.running("gang", count=2, least=1)
        assert len(stage.port.services) == 1
        [request] = stage.port.requests.values()
        assert request.subdomain

    @pytest.mark.parametrize("state", [QueueState.HELD, QueueState.DRAINING])
    def test_none_in_a_queue_that_was_closed_meanwhile(
        self, stage: Stage, state: QueueState
    ) -> None:
        runs_short(stage)
        loaded, grows = planned(stage)
        move(stage, state)
        assert not resize.grow(lease=held(), loaded=loaded, grows=grows, at=LATER)
        assert Placement.objects.count() == 2

    def test_none_of_what_was_cancelled_meanwhile(self, stage: Stage) -> None:
        workload = runs_short(stage)
        loaded, grows = planned(stage)
        stage.cancel(workload)
        assert not resize.grow(lease=held(), loaded=loaded, grows=grows, at=LATER)
        assert (Placement.objects.count(), Quota.objects.get().used_milli) == (2, 2000)

    def test_none_where_the_quota_was_cut_meanwhile(self, stage: Stage) -> None:
        runs_short(stage)
        loaded, grows = planned(stage)
        Quota.objects.update(nominal_milli=3000)
        assert not resize.grow(lease=held(), loaded=loaded, grows=grows, at=LATER)
        assert (Placement.objects.count(), Quota.objects.get().used_milli) == (2, 2000)

    def test_none_on_what_another_took_meanwhile(self, stage: Stage) -> None:
        workload = runs_short(stage)
        loaded, grows = planned(stage)
        taken = grows[0].places[0]
        [other] = [replace(grows[0], places=(taken,))]
        assert resize.grow(lease=held(), loaded=loaded, grows=[other], at=LATER)
        assert not resize.grow(lease=held(), loaded=loaded, grows=grows, at=LATER)
        assert len(live(workload)) == 3

    def test_a_scheduler_that_was_taken_over_grows_nothing(self, stage: Stage) -> None:
        runs_short(stage)
        loaded, grows = planned(stage)
        old = held()
        SchedulerLease.objects.update(epoch=old.epoch + 1)
        with pytest.raises(Fenced):
            resize.grow(lease=old, loaded=loaded, grows=grows, at=LATER)

    def test_a_cluster_that_refuses_the_new_pods_leaves_the_others_alone(
        self, stage: Stage
    ) -> None:
        workload = runs_short(stage)
        grow(stage)
        stage.port.fails("create", Fault.INVALID)
        stage.dispatch()
        workload.refresh_from_db()
        assert workload.state == State.RUNNING
        assert Operation.objects.get(kind=OperationKind.RESIZE).failures == 1
        stage.port.heal()
        stage.release_claims()
        stage.dispatch()
        assert Operation.objects.get(kind=OperationKind.RESIZE).done_at

    def test_what_comes_while_others_are_started_is_started_next(self, committed: Stage) -> None:
        stage = committed
        workload = runs_short(stage)
        loaded, grows = planned(stage)
        first, second = (replace(grows[0], places=(p,)) for p in grows[0].places)
        second = replace(second, places=(replace(second.places[0], rank=0),))
        resize.grow(lease=held(), loaded=loaded, grows=[first], at=LATER)

        def another_comes() -> None:
            resize.grow(lease=held(), loaded=loaded, grows=[second], at=LATER)
            connection.close()  # this thread's own

        stage.port.meanwhile("open", another_comes)
        stage.dispatch()
        assert [bool(p.opened_at) for p in live(workload)] == [True, True, True, False]
        stage.dispatch()
        assert all(p.opened_at for p in live(workload))
        assert stage.dispatch() == 0


class TestShrinking:
    def test_only_the_pods_that_go_are_deleted_and_hold_until_they_are_gone(
        self, stage: Stage
    ) -> None:
        workload = full(stage)
        names = [p.pod_name for p in live(workload)]
        assert shrink(workload, 2, 3) == {str(workload.id)}
        assert Quota.objects.get().used_milli == 4000
        stage.dispatch()
        assert sorted(stage.port.pods) == names[:2]
        assert len(live(workload)) == 4
        stage.relist()
        assert [p.rank for p in live(workload)] == [0, 1]
        assert Quota.objects.get().used_milli == 2000
        workload.refresh_from_db()
        assert workload.state == State.RUNNING
        assert not Operation.objects.filter(done_at=None).exists()

    def test_the_least_stays_whatever_the_plan_says(self, stage: Stage) -> None:
        workload = full(stage)
        shrink(workload, 0, 1, 2, 3)
        gone = Placement.objects.exclude(dismissed_at=None).values_list("rank", flat=True)
        assert sorted(gone) == [2, 3]
        assert not shrink(workload, 0, 1)

    def test_its_timeline_says_for_whom(self, stage: Stage) -> None:
        workload = full(stage)
        shrink(workload, 3, by=stage.submit("urgent"))
        told = WorkloadEvent.objects.get(kind="shrunk")
        assert told.message == (
            "1 fewer for urgent, for work of higher priority in the same project; 3 of 4 pods"
        )

    def test_a_pod_that_never_was_is_given_back_at_once(self, stage: Stage) -> None:
        workload = runs_short(stage)
        grow(stage)
        shrink(workload, 2, 3)
        stage.dispatch()
        assert [p.rank for p in live(workload)] == [0, 1]
        workload.refresh_from_db()
        assert workload.state == State.RUNNING

    def test_what_ends_is_not_shrunk_too(self, stage: Stage) -> None:
        workload = full(stage)
        stage.cancel(workload)
        assert not shrink(workload, 3)
        assert not Placement.objects.exclude(dismissed_at=None).exists()

    def test_a_deletion_that_fails_is_tried_again(self, stage: Stage) -> None:
        workload = full(stage)
        shrink(workload, 3)
        stage.port.fails("delete", Fault.UNREACHABLE, times=1)
        stage.dispatch()
        assert len(stage.port.pods) == 4
        stage.release_claims()
        stage.dispatch()
        assert len(stage.port.pods) == 3

    def test_a_scheduler_that_was_taken_over_shrinks_nothing(self, stage: Stage) -> None:
        workload = full(stage)
        old = held()
        SchedulerLease.objects.update(epoch=old.epoch + 1)
        given = Shrink(
            WorkloadId(str(workload.id)), (), WorkloadId(str(workload.id)), PreemptRule.RECLAIM
        )
        with pytest.raises(Fenced):
            resize.shrink(lease=old, shrinks=[given], at=LATER)


class TestWhatBecomesOfTheGang:
    def test_it_runs_when_its_least_runs(self, stage: Stage) -> None:
        workload = stage.started("gang", count=3, least=2, gpus=1)
        first, second, _ = live(workload)
        stage.observe(stage.report(first, PodPhase.RUNNING, started_at=AT))
        workload.refresh_from_db()
        assert workload.state == State.BOUND
        stage.observe(stage.report(second, PodPhase.RUNNING, started_at=LATER))
        workload.refresh_from_db()
        assert (workload.state, workload.started_at) == (State.RUNNING, LATER)

    def test_with_fewer_than_its_least_left_it_is_tried_again(self, stage: Stage) -> None:
        workload = full(stage)
        _, second, third, last = live(workload)
        for pod in (second, third):
            stage.observe(stage.report(pod, PodPhase.FAILED, reason="NodeLost"))
        workload.refresh_from_db()
        assert workload.state == State.RUNNING
        assert not Operation.objects.filter(kind=OperationKind.STOP).exists()
        stage.observe(stage.report(last, PodPhase.FAILED, reason="NodeLost"))
        assert Operation.objects.filter(kind=OperationKind.STOP).exists()

    def test_a_pod_that_fails_of_its_work_fails_it(self, stage: Stage) -> None:
        workload = full(stage)
        last = live(workload)[-1]
        stage.observe(stage.report(last, PodPhase.FAILED, reason="Error", exit_code=1))
        assert Operation.objects.filter(kind=OperationKind.STOP).exists()

    def test_it_has_succeeded_when_all_that_stayed_have(self, stage: Stage) -> None:
        workload = full(stage)
        shrink(workload, 3)
        stage.dispatch()
        stage.relist()
        for pod in live(workload):
            stage.observe(stage.report(pod, PodPhase.SUCCEEDED, exit_code=0))
        workload.refresh_from_db()
        assert workload.state == State.SUCCEEDED


class TestWhoAsks:
    def test_a_cycle_is_planned_while_something_runs_short(self, committed: Stage) -> None:
        stage = committed
        assert run.run_cycle(at=LATER) is None
        workload = runs_short(stage)
        assert (due.now(at=AT).plan, elastic.missing()) == (True, 2)
        record = run.run_cycle(at=LATER, policy=Policy())
        assert record is not None
        assert record.plan["grows"] == [[str(workload.id), 2]]
        assert CycleRecord.objects.filter(input__isnull=False).count() == 1
        assert (due.now(at=AT).plan, elastic.missing()) == (False, 0)
        assert run.run_cycle(at=LATER) is None

    def test_what_leaves_is_loaded_as_leaving(self, stage: Stage) -> None:
        workload = full(stage)
        shrink(workload, 3)
        [view] = stage.decide(at=LATER)[0].snapshot.holding
        assert sorted((p.rank, p.leaving) for p in view.placements) == [
            (0, False), (1, False), (2, False), (3, True),
        ]  # fmt: skip
        assert UUID(view.id) == workload.id

    def test_of_a_plan_without_any_nothing_is_asked(self, stage: Stage) -> None:
        loaded, made = stage.decide()
        assert made == Plan()
        assert not resize.grow(lease=held(), loaded=loaded, grows=(), at=AT)
        assert not resize.shrink(lease=held(), shrinks=(), at=AT)
