"""Plan → rows: a stale plan costs the workload it is wrong about, and nobody else."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F

from controlplane.audit.models import AuditEvent
from scheduler.core.lifecycle import State
from scheduler.core.plan import Hold, Plan
from scheduler.core.reasons import Reason, ReasonCode
from scheduler.core.units import WorkloadId
from scheduler.loop import lease
from scheduler.loop.applying import apply, holds
from scheduler.models import Attempt, Operation, Placement, PlacementSpan, Workload
from tenants.models import Quota
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import SHARD, Stage


def states() -> dict[str, str]:
    return dict(Workload.objects.order_by("name").values_list("name", "state"))


def used() -> int:
    return Quota.objects.get().used_milli


def test_what_is_admitted_holds_its_room_its_quota_and_a_start_that_is_due(stage: Stage) -> None:
    workload = stage.submit(gpus=2, count=2)
    outcome = stage.cycle()
    assert outcome.admitted == {str(workload.id)}
    assert used() == 4000
    attempt = Attempt.objects.get()
    assert (attempt.number, attempt.cluster_id, attempt.ended_at) == (1, stage.cluster.id, None)
    ranks = Placement.objects.order_by("rank").values_list("rank", "amount_milli", "pod_uid")
    assert list(ranks) == [(0, 2000, ""), (1, 2000, "")]
    assert PlacementSpan.objects.filter(released_at=None).count() == 4
    assert Operation.objects.filter(attempt=attempt, kind="start", done_at=None).count() == 1
    assert states() == {"train": "ADMITTED"}


def test_a_node_that_vanished_since_the_plan_costs_only_who_was_to_run_on_it(stage: Stage) -> None:
    stage.submit("one", gpus=8)
    stage.submit("other", gpus=8)
    loaded, decided = stage.decide()
    lost = {admit.workload: admit.places[0].node for admit in decided.admits}
    one = Workload.objects.get(name="one")
    [node] = [node for node in stage.nodes if str(node.id) == lost[WorkloadId(str(one.id))]]
    node.gone_at = AT
    node.save()
    stage.hardware_changed()

    outcome = stage.carry_out(loaded, decided)
    assert outcome.refused == (str(one.id),)
    assert states() == {"one": "PENDING", "other": "ADMITTED"}
    assert used() == 8000


def test_a_span_that_was_taken_since_the_plan_costs_only_who_wanted_it(stage: Stage) -> None:
    stage.submit("one", gpus=8)
    stage.submit("other", gpus=8)
    loaded, decided = stage.decide()
    _take_first_span(stage, decided.admits[0].places[0].spans[0][0])
    outcome = stage.carry_out(loaded, decided)
    assert outcome.refused == (decided.admits[0].workload,)
    assert len(outcome.admitted) == 1


def test_what_the_second_look_misses_the_database_refuses_for_that_one_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply, "still_fitting", lambda loaded, batch: list(batch))
    for number in range(5):
        stage.submit(f"w{number}", gpus=2)
    loaded, decided = stage.decide()
    _take_first_span(stage, decided.admits[2].places[0].spans[0][0])
    outcome = stage.carry_out(loaded, decided)
    assert outcome.refused == (decided.admits[2].workload,)
    assert len(outcome.admitted) == 4
    held = PlacementSpan.objects.filter(released_at=None).count()
    assert (used(), held) == (8000, 9)


def _take_first_span(stage: Stage, device_id: str) -> None:
    """As an unfenced scheduler would."""
    other = factories.workload(
        stage.project, stage.ada, [stage.flavor], "intruder", state=State.ADMITTED
    )
    [device] = [d for node in stage.nodes for d in node.devices.all() if str(d.id) == device_id]
    factories.span(factories.place(other, device.node, stage.flavor), device)


def test_a_quota_that_was_cut_since_the_plan_lets_in_what_it_still_holds(stage: Stage) -> None:
    for number in range(4):
        stage.submit(f"w{number}", gpus=4)
    loaded, decided = stage.decide()
    assert len(decided.admits) == 4
    Quota.objects.update(nominal_milli=9000, borrowing_limit_milli=0)
    outcome = stage.carry_out(loaded, decided)
    assert (len(outcome.admitted), len(outcome.refused)) == (2, 2)
    assert used() == 8000
    assert Attempt.objects.count() == 2


def test_a_quota_that_was_deleted_since_the_plan_costs_only_who_was_to_use_it(
    stage: Stage,
) -> None:
    other = factories.project(stage.project.tenant, "other")
    factories.quota(other, stage.flavor)
    stage.submit("mine", gpus=1)
    theirs = factories.workload(other, stage.ada, [stage.flavor], "theirs")
    loaded, decided = stage.decide()
    assert len(decided.admits) == 2
    Quota.objects.filter(project=other).delete()
    outcome = stage.carry_out(loaded, decided)
    assert outcome.refused == (str(theirs.id),)
    assert states() == {"mine": "ADMITTED", "theirs": "PENDING"}


def test_a_gang_that_no_longer_fits_whole_gets_nothing(stage: Stage) -> None:
    stage.submit(gpus=8, count=2)
    loaded, decided = stage.decide()
    stage.nodes[1].gone_at = AT
    stage.nodes[1].save()
    stage.hardware_changed()
    outcome = stage.carry_out(loaded, decided)
    assert len(outcome.refused) == 1
    assert not Placement.objects.exists()
    assert not PlacementSpan.objects.exists()
    assert used() == 0


def test_who_was_cancelled_since_the_plan_is_left_alone(stage: Stage) -> None:
    gone = stage.submit("gone")
    stage.submit("here")
    loaded, decided = stage.decide()
    stage.cancel(gone)
    outcome = stage.carry_out(loaded, decided)
    assert outcome.refused == (str(gone.id),)
    assert states() == {"gone": "CANCELLED", "here": "ADMITTED"}
    assert used() == 1000


def test_the_same_plan_twice_changes_nothing(stage: Stage) -> None:
    stage.submit(gpus=2)
    loaded, decided = stage.decide()
    stage.carry_out(loaded, decided)
    audited = AuditEvent.objects.count()
    assert not stage.carry_out(loaded, decided).admitted
    assert (used(), Placement.objects.count(), AuditEvent.objects.count()) == (2000, 1, audited)


def test_a_victim_keeps_its_room_until_its_pods_are_seen_gone(stage: Stage) -> None:
    Quota.objects.update(borrowing_limit_milli=0)
    victim = stage.running("victim", gpus=8, count=2)
    stage.submit("urgent", gpus=8, priority_class="urgent")
    outcome = stage.cycle()
    assert outcome.preempted == {str(victim.id)}
    assert states() == {"victim": "PREEMPTING", "urgent": "PENDING"}
    assert used() == 16_000
    assert PlacementSpan.objects.filter(released_at=None).count() == 16
    assert Operation.objects.filter(kind="stop", done_at=None).count() == 1


def test_a_victim_that_ended_since_the_plan_is_left_alone(stage: Stage) -> None:
    Quota.objects.update(borrowing_limit_milli=0)
    victim = stage.running("victim", gpus=8, count=2)
    stage.submit("urgent", gpus=8, priority_class="urgent")
    loaded, decided = stage.decide()
    assert decided.preempts
    Workload.objects.filter(id=victim.id).update(
        state=State.SUCCEEDED, ended_at=AT, version=F("version") + 1
    )
    assert stage.carry_out(loaded, decided).preempted == frozenset()
    assert not Operation.objects.filter(kind="stop").exists()


def test_a_reason_is_written_when_it_is_new_or_old_and_not_each_cycle(stage: Stage) -> None:
    Quota.objects.update(nominal_milli=8000, borrowing_limit_milli=0)
    stage.submit("first", gpus=8)
    waits = stage.submit("waits", gpus=8)
    written = []
    for seconds in (0, 2, 60):
        stage.cycle(at=AT + timedelta(seconds=seconds))
        waits.refresh_from_db()
        assert waits.reason is not None
        assert waits.reason["code"] == "quota-used"
        written.append(waits.reason_at)
    assert written == [AT, AT, AT + timedelta(seconds=60)]


def test_each_who_waits_gets_the_reason_of_its_own(stage: Stage) -> None:
    submitted = [stage.submit(f"w{number}") for number in range(4)]
    loaded, _ = stage.decide()
    holds = tuple(
        Hold(
            (WorkloadId(str(workload.id)),),
            Reason(ReasonCode.BEHIND, (("admitted", number % 2),)),
        )
        for number, workload in enumerate(submitted)
    )
    stage.carry_out(loaded, Plan(holds=holds))
    reasons = Workload.objects.order_by("name").values_list(
        "reason__numbers__admitted", "reason_at"
    )
    assert list(reasons) == [(0, AT), (1, AT), (0, AT), (1, AT)]


def test_what_there_is_no_time_for_is_left_and_waits(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        stage.submit(f"w{number}")
    loaded, decided = stage.decide()
    monkeypatch.setattr(apply, "BUDGET_S", 0.0)
    outcome = stage.carry_out(loaded, decided)
    assert (outcome.admitted, outcome.refused, outcome.left) == (frozenset(), (), 3)
    assert set(states().values()) == {"PENDING"}


def test_a_batch_that_is_refused_costs_the_other_batches_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply, "BATCH", 2)
    monkeypatch.setattr(apply, "still_fitting", lambda loaded, batch: list(batch))
    for number in range(5):
        stage.submit(f"w{number}", gpus=2)
    loaded, decided = stage.decide()
    _take_first_span(stage, decided.admits[1].places[0].spans[0][0])
    outcome = stage.carry_out(loaded, decided)
    assert outcome.refused == (decided.admits[1].workload,)
    assert (len(outcome.admitted), used()) == (4, 8000)


def test_why_they_wait_does_not_wait_for_the_disk(stage: Stage) -> None:
    stage.submit("starts", gpus=8, count=2)
    waits = stage.submit("waits")
    loaded, decided = stage.decide()
    held = lease.acquire(shard=SHARD)
    assert held is not None
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = on")  # which the tests' server has not
        holds.write(lease=held, waiting=loaded.waiting, holds=decided.holds, at=AT, speed=1.0)
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone()[0] == "off"
    waits.refresh_from_db()
    assert waits.reason_at == AT
