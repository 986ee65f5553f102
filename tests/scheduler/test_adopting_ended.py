"""What has ended since the backup, while its pods are there still: it is not run again."""

from dataclasses import replace
from typing import Any

import pytest

from clusters.models import Node
from clusters.port import PodPhase
from scheduler.core.failures import FailureClass, Retries
from scheduler.core.lifecycle import State
from scheduler.loop.checking import invariants, rules
from scheduler.models import Attempt, Placement, PlacementSpan, PodSet, Stray
from tenants.models import Quota, UsageInterval
from tests.factories import AT
from tests.scheduler.lost_rows import in_a_while, listed, runs, state
from tests.scheduler.stage import LATER, Stage

DONE: dict[str, Any] = {"phase": PodPhase.SUCCEEDED, "finished_at": LATER}
"""Any: a report's fields."""


def test_it_holds_nothing_that_another_has_by_now(committed: Stage) -> None:
    """The second one ran and succeeded; then the first was started on the same devices."""
    stage = committed
    Node.objects.filter(name="n1").update(schedulable=False)
    stage.hardware_changed()
    first, second = stage.submit("first", gpus=8), stage.submit("second", gpus=8)
    Quota.objects.update(nominal_milli=8000, borrowing_limit_milli=0)
    runs(stage, first)
    pod = runs(stage, second, **DONE)
    listed(stage)
    assert (state(first), state(second)) == (State.RUNNING, State.SUCCEEDED)
    held = Placement.objects.get(workload=second)
    assert (held.pod_uid, held.node.name, held.amount_milli) == (pod.uid, "n2", 8000)
    assert (held.released_at, held.ended_at, held.succeeded) == (LATER, LATER, True)
    assert not held.spans.exists()
    assert Quota.objects.get().used_milli == 8000
    assert not UsageInterval.objects.exists()
    assert not Stray.objects.exists()
    assert rules.told(invariants.violations()) == []


@pytest.mark.parametrize("of", ["a driver's node", "a node that is gone", "memory", "a gang"])
def test_nobody_needs_to_know_what_it_held(of: str, stage: Stage) -> None:
    work = stage.submit(count=2 if of == "a gang" else 1)
    fields = dict(DONE)
    if of == "a driver's node":
        Node.objects.update(device_driver="gpu.nvidia.com")
        fields["resources"] = ()
    if of == "a node that is gone":
        Node.objects.update(gone_at=AT)
    if of == "memory":
        stage.flavor.memory_mib = 81_920
        stage.flavor.save()
        PodSet.objects.update(gpu_memory_mib=40_000)
    for rank in range(work.pod_sets.get().count):
        runs(stage, work, rank=rank, **fields)
    listed(stage)
    assert state(work) is State.SUCCEEDED
    assert not PlacementSpan.objects.exists()


def test_what_failed_counts_and_is_tried_again(stage: Stage) -> None:
    work = stage.submit(retries=Retries(3, (FailureClass.EXIT_CODE,)))
    runs(stage, work, phase=PodPhase.FAILED, exit_code=1, finished_at=LATER)
    listed(stage)
    assert (state(work), work.failures) == (State.PENDING, 1)
    assert Attempt.objects.get().failure == "exit-code"


def test_what_succeeded_and_cannot_be_adopted_is_waited_for_until_it_is_gone(
    stage: Stage,
) -> None:
    work = stage.submit()
    pod = runs(stage, work, node="n9", **DONE)
    strays = listed(stage)
    assert Stray.objects.get().why == "its node n9 is not known"
    assert strays.running() == []
    assert not stage.cycle(at=LATER).admitted
    strays.note(pod, gone=True)
    assert stage.cycle(at=LATER).admitted


def test_what_failed_and_cannot_be_adopted_keeps_nobody_waiting(stage: Stage) -> None:
    work = stage.submit()
    runs(stage, work, node="n9", phase=PodPhase.FAILED, exit_code=1)
    listed(stage)
    assert not Stray.objects.exists()
    assert stage.cycle(at=LATER).admitted


def test_a_stray_that_succeeds_is_not_run_again_before_anybody_looked(stage: Stage) -> None:
    work = stage.submit()
    Quota.objects.update(nominal_milli=0, borrowing_limit_milli=0)
    pod = runs(stage, work)
    strays = listed(stage)
    Quota.objects.update(nominal_milli=8000)
    strays.note(replace(pod, **DONE), gone=False)
    assert not stage.cycle(at=LATER).admitted
    assert strays.take_in_when_due(at=LATER) == [pod.uid]  # at once
    assert state(work) is State.SUCCEEDED
    assert not Stray.objects.exists()


def test_one_that_fails_so_lets_its_work_go_on(stage: Stage) -> None:
    work = stage.submit()
    pod = runs(stage, work, node="n9")
    strays = listed(stage)
    strays.note(replace(pod, phase=PodPhase.FAILED, exit_code=1), gone=False)
    assert not stage.cycle(at=LATER).admitted
    assert strays.take_in_when_due(at=LATER) == []
    assert stage.cycle(at=LATER).admitted


def test_one_of_a_workload_that_nobody_knows_is_no_stray_once_it_ended(stage: Stage) -> None:
    work = stage.submit()
    pod = runs(stage, work, name="mine")
    strays = listed(stage)
    assert Stray.objects.get().workload is None
    strays.note(replace(pod, **DONE), gone=False)
    assert not Stray.objects.exists()
    assert in_a_while(strays) == []
