"""What runs in a cluster and is not in the database, as that was put back from a backup: it is
adopted, or waited for; nothing is started beside it and nothing is deleted."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.models import Node
from clusters.port import PodPhase
from controlplane.kernel.ids import uuid7
from scheduler.core.failures import Retries
from scheduler.core.lifecycle import State
from scheduler.loop.adopting import unknown
from scheduler.loop.checking import invariants, rules
from scheduler.loop.observing import starts
from scheduler.models import Attempt, Operation, Placement, PlacementSpan, Stray, Workload
from tenants.models import Quota
from tests import factories
from tests.factories import AT
from tests.scheduler.lost_rows import in_a_while, listed, runs, state, waits_with
from tests.scheduler.stage import LATER, Stage


def test_a_running_pod_of_a_waiting_workload_is_adopted(committed: Stage) -> None:
    stage = committed
    work = stage.submit(gpus=2)
    pod = runs(stage, work)
    listed(stage)
    assert state(work) is State.RUNNING
    held = Placement.objects.select_related("node", "attempt").get()
    assert (held.pod_uid, held.pod_name, held.node.name) == (pod.uid, pod.name, "n2")
    assert (held.attempt.number, held.created_at, held.started_at) == (1, LATER, LATER)
    assert held.opened_at == LATER
    assert held.spans.filter(released_at=None).count() == 2
    assert Quota.objects.get().used_milli == 2000
    assert not Operation.objects.exists()
    assert not Stray.objects.exists()
    assert "adopted" in work.events.get(after="ADMITTED").message
    assert rules.told(invariants.violations()) == []


def test_what_was_adopted_is_known_by_the_next_list_and_ends_as_any(stage: Stage) -> None:
    work = stage.submit()
    pod = runs(stage, work)
    strays = listed(stage)
    listed(stage, strays)
    assert Attempt.objects.count() == 1
    stage.observe(stage.report(Placement.objects.get(), PodPhase.SUCCEEDED, uid=pod.uid))
    assert state(work) is State.SUCCEEDED
    assert Quota.objects.get().used_milli == 0


def test_nothing_else_is_placed_on_what_it_holds(stage: Stage) -> None:
    Node.objects.filter(name="n1").update(ready=False)
    stage.hardware_changed()
    runs(stage, stage.submit(gpus=8))
    listed(stage)
    other = stage.submit("other", gpus=1)
    stage.hardware_changed()
    waits_with(stage, other)
    assert state(other) is State.PENDING


def test_a_pod_that_ended_since_is_not_run_again(stage: Stage) -> None:
    work = stage.submit()
    runs(stage, work, phase=PodPhase.SUCCEEDED, finished_at=LATER)
    listed(stage)
    assert state(work) is State.SUCCEEDED
    assert Attempt.objects.get().number == 1


def test_of_several_attempts_the_last_is_adopted(stage: Stage) -> None:
    work = stage.submit()
    runs(stage, work, phase=PodPhase.FAILED, exit_code=1)
    runs(stage, work, attempt=2)
    listed(stage)
    assert state(work) is State.RUNNING
    assert Attempt.objects.get().number == 2
    assert work.failures == 0


def test_a_whole_gang_is_adopted(stage: Stage) -> None:
    work = stage.submit(count=3, gpus=4)
    for rank, node in enumerate(("n1", "n2", "n2")):
        runs(stage, work, rank=rank, node=node)
    listed(stage)
    assert state(work) is State.RUNNING
    held = Placement.objects.order_by("rank").values_list("rank", "node__name")
    assert list(held) == [(0, "n1"), (1, "n2"), (2, "n2")]


def test_a_gang_that_may_have_fewer_is_adopted_with_what_it_has(stage: Stage) -> None:
    work = stage.submit(count=4, least=2)
    for rank in range(3):
        runs(stage, work, rank=rank)
    listed(stage)
    assert (state(work), Placement.objects.count()) == (State.RUNNING, 3)


def test_a_part_of_a_gang_keeps_it_waiting_and_it_is_told_why(stage: Stage) -> None:
    work = stage.submit(count=3)
    pods = [runs(stage, work, rank=rank) for rank in (0, 1)]
    listed(stage)
    reason = waits_with(stage, work)
    assert reason["code"] == "strays"
    assert reason["text"].startswith("2 of its pods are in north that the database")
    told = Stray.objects.order_by("name")
    assert [(each.uid, each.workload, each.node) for each in told] == [
        (pod.uid, work, "n2") for pod in pods
    ]
    assert {each.why for each in told} == {"2 of its 3 pods are there"}
    assert stage.port.calls["delete"] == 0


def test_it_starts_again_once_they_have_ended_under_a_number_that_nobody_had(
    stage: Stage,
) -> None:
    work = stage.submit(count=2)
    pod = runs(stage, work, attempt=4)
    strays = listed(stage)
    waits_with(stage, work)
    strays.note(pod, gone=True)
    assert not Stray.objects.exists()
    assert stage.cycle(at=LATER).admitted
    assert Attempt.objects.get().number == 5


def test_a_gated_pod_keeps_nobody_waiting_and_its_name_is_not_used_again(stage: Stage) -> None:
    work = stage.submit()
    runs(stage, work, attempt=3, phase=PodPhase.GATED, node="")
    listed(stage)
    assert not Stray.objects.exists()
    assert stage.cycle(at=LATER).admitted
    assert Attempt.objects.get().number == 4


def test_a_later_attempt_takes_the_place_of_one_that_is_gone(committed: Stage) -> None:
    """The database has the first as running; it ended, and the second was begun."""
    stage = committed
    work = stage.running()
    stage.port.pods.clear()
    pod = runs(stage, work, attempt=2)
    listed(stage)
    assert state(work) is State.RUNNING
    live = Attempt.objects.get(ended_at=None)
    assert (live.number, live.placements.get().pod_uid) == (2, pod.uid)
    assert (work.failures, Attempt.objects.get(number=1).outcome) == (0, "preempted")
    assert rules.told(invariants.violations()) == []


def test_what_tries_only_once_is_no_failure_for_that(stage: Stage) -> None:
    work = stage.running(retries=Retries(0, ()))
    stage.port.pods.clear()
    runs(stage, work, attempt=2)
    listed(stage)
    assert state(work) is State.RUNNING


def test_one_whose_pod_was_never_born_is_followed_too(stage: Stage) -> None:
    work = stage.submit()
    stage.cycle()
    runs(stage, work, attempt=2)
    strays = listed(stage)
    assert state(work) is State.PREEMPTING
    stage.dispatch(at=LATER)
    assert state(work) is State.PENDING
    assert Stray.objects.get().workload == work
    adopted = in_a_while(strays)
    assert (state(work), len(adopted)) == (State.RUNNING, 1)
    assert stage.port.calls["create"] == 0


def test_one_that_runs_is_not_stopped_for_a_later_one(stage: Stage) -> None:
    work = stage.running()
    [own] = stage.port.pods
    stage.port.becomes(own, PodPhase.RUNNING)
    runs(stage, work, attempt=2)
    listed(stage)
    assert state(work) is State.RUNNING
    assert not Operation.objects.filter(kind="stop").exists()
    assert Stray.objects.get().why == "its workload is RUNNING"


def test_what_its_project_may_not_hold_waits_until_it_may(stage: Stage) -> None:
    work = stage.submit()
    Quota.objects.update(nominal_milli=0, borrowing_limit_milli=0)
    pod = runs(stage, work)
    strays = listed(stage)
    assert state(work) is State.PENDING
    assert "quota" in Stray.objects.get().why
    assert strays.running() == [pod]
    assert strays.take_in_when_due(at=LATER) == []  # too soon
    Quota.objects.update(nominal_milli=8000, borrowing_limit_milli=None)
    assert in_a_while(strays) == [pod.uid]
    assert (state(work), strays.running()) == (State.RUNNING, [])
    assert not Stray.objects.exists()


def test_a_pod_of_a_workload_that_nobody_knows_is_told_and_keeps_nobody(stage: Stage) -> None:
    work = stage.submit()
    pod = runs(stage, work, workload=str(uuid7()), name="w-1-0")
    strays = listed(stage)
    told = Stray.objects.get()
    assert (told.workload, told.why, told.uid) == (None, "there is no such workload", pod.uid)
    assert strays.running() == [pod]
    assert stage.cycle(at=LATER).admitted


FORGED: dict[str, dict[str, Any]] = {  # Any: a report's fields
    "in another namespace": {"namespace": "elsewhere"},
    "by another name": {"name": "mine"},
}


@pytest.mark.parametrize("fields", FORGED.values(), ids=FORGED)
def test_a_label_alone_keeps_nobody_waiting(fields: dict[str, Any], stage: Stage) -> None:
    """Whoever may make pods in one namespace says nothing of work in another."""
    work = stage.submit()
    runs(stage, work, attempt=7, **fields)
    listed(stage)
    assert Stray.objects.get().workload is None
    assert stage.cycle(at=LATER).admitted
    assert Attempt.objects.get().number == 1


@pytest.mark.parametrize("label", ["attempt", "rank"])
def test_numbers_that_none_has_are_somebody_elses(label: str, stage: Stage) -> None:
    work = stage.submit()
    runs(stage, work, **{label: 2**40})
    listed(stage)
    assert not Stray.objects.exists()
    assert stage.cycle(at=LATER).admitted


def test_what_is_being_started_is_no_stray(stage: Stage) -> None:
    """Its uid is not stored yet."""
    work = stage.submit()
    stage.cycle()
    runs(stage, work, phase=PodPhase.GATED, node="")
    listed(stage)
    assert not Stray.objects.exists()
    assert (state(work), Placement.objects.get().pod_uid) == (State.ADMITTED, "")
    assert work.attempts_seen == 0


def test_what_was_opened_since_is_known_to_run_and_not_stopped_for_starting_late(
    stage: Stage,
) -> None:
    """The database has it as being started, an hour ago."""
    work = stage.submit()
    stage.cycle()
    pod = runs(stage, work)
    listed(stage)
    assert state(work) is State.RUNNING
    held = Placement.objects.get()
    assert (held.pod_uid, held.opened_at) == (pod.uid, LATER)
    assert starts.give_up_late(at=LATER + timedelta(days=1)) == 0
    stage.dispatch(at=LATER)
    assert not Operation.objects.filter(done_at=None).exists()
    assert (stage.port.calls["create"], stage.port.calls["delete"]) == (0, 0)


def test_a_pod_of_that_name_in_another_namespace_is_not_taken_for_it(stage: Stage) -> None:
    work = stage.submit()
    stage.cycle()
    runs(stage, work, namespace="elsewhere")
    listed(stage)
    assert (state(work), Placement.objects.get().pod_uid) == (State.ADMITTED, "")


def test_another_clusters_pod_of_that_name_is_not_taken_for_it(stage: Stage) -> None:
    other = factories.cluster("c2")
    stage.submit()
    stage.cycle()
    pod = runs(stage, Workload.objects.get())
    unknown.recognise(cluster=other, reports=[pod], owns=lambda _: True, at=LATER)
    assert Placement.objects.get().pod_uid == ""


def test_one_that_was_tried_again_meanwhile_is_not_adopted_late(stage: Stage) -> None:
    work = stage.submit()
    runs(stage, work, phase=PodPhase.SUCCEEDED, node="n9")
    strays = listed(stage)
    Stray.objects.all().delete()
    stage.cycle()
    assert Attempt.objects.get().number == 2
    Attempt.objects.update(ended_at=LATER, outcome="lost")
    Placement.objects.update(released_at=LATER)
    PlacementSpan.objects.update(released_at=LATER)
    Node.objects.filter(name="n1").update(name="n9")
    in_a_while(strays)
    assert Attempt.objects.count() == 1


def test_strays_of_another_cluster_stay(stage: Stage) -> None:
    other = factories.cluster("c2")
    Stray.objects.create(
        cluster=other, uid="u", namespace="n", name="p", attempt=1, why="", found_at=AT
    )
    listed(stage)
    assert Stray.objects.get().cluster == other


def test_a_label_of_another_installation_is_nothing_to_us(stage: Stage) -> None:
    work = stage.submit()
    runs(stage, work, installation="another")
    listed(stage)
    assert not Stray.objects.exists()


def asked(stage: Stage, count: int) -> int:
    """How many queries it takes to adopt so many."""
    for number in range(count):
        runs(stage, stage.submit(f"w{count}-{number}"), cpu_milli=1000)
    with CaptureQueriesContext(connection) as queries:
        listed(stage)
    assert not Stray.objects.exists()
    return len(queries)


def test_the_fleet_is_read_once_for_all_that_are_adopted(stage: Stage) -> None:
    one = asked(stage, 1)
    assert (asked(stage, 6) - one) / 5 <= 12


def test_what_stays_as_it_is_is_tried_less_and_less_often(stage: Stage) -> None:
    runs(stage, stage.submit(), node="n9")
    strays = listed(stage)
    waits = []
    for _ in range(6):
        waits.append(round((strays._due or 0) - time.monotonic()))
        in_a_while(strays)
    assert waits == [15, 30, 60, 120, 240, 240]
    listed(stage, strays)
    assert round((strays._due or 0) - time.monotonic()) == 15
