"""Pods under our labels that nobody will open are deleted; whatever may run never is."""

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from clusters.port import Fault, PodPhase, PodReport
from controlplane.kernel.ids import uuid7
from scheduler.loop.watching import strays
from scheduler.models import Workload
from tests.factories import AT
from tests.scheduler.stage import Stage

OLD = AT + timedelta(minutes=10)
"""When what was made at AT is just old enough."""


def delete(stage: Stage) -> int:
    return strays.delete(port=stage.port, reports=stage.port.list_pods().items, at=OLD)


def there(stage: Stage, **fields: Any) -> PodReport:  # Any: a report's
    """A gated pod of nobody's, made at AT."""
    told = {
        "namespace": stage.project.namespace,
        "name": f"stray-{len(stage.port.pods)}",
        "uid": str(uuid4()),
        "resource_version": "1",
        "phase": PodPhase.GATED,
        "installation": "berth",
        "workload": str(uuid7()),
        "attempt": 1,
        "created_at": AT,
    }
    pod = PodReport(**{**told, **fields})
    stage.port.pods[pod.name] = pod
    return pod


def of(workload: Workload, *, attempt: int = 1) -> dict[str, Any]:  # Any: a report's fields
    return {"workload": str(workload.id), "attempt": attempt}


def cancelled(stage: Stage) -> Workload:
    workload = stage.started("over")
    stage.cancel(workload)
    stage.dispatch()
    stage.relist()
    return workload


def test_a_gated_pod_of_an_attempt_that_ended_is_deleted(stage: Stage) -> None:
    """As a create that was sent long ago and came too late leaves it."""
    there(stage, **of(cancelled(stage)))
    assert delete(stage) == 1
    assert stage.port.pods == {}


def test_a_gated_pod_of_nobody_we_know_is_deleted(stage: Stage) -> None:
    there(stage)
    assert delete(stage) == 1
    assert stage.port.pods == {}


def test_an_attempt_that_never_was_is_none_that_lives(stage: Stage) -> None:
    there(stage, **of(stage.running(), attempt=2))
    assert delete(stage) == 1


SPARED: dict[str, dict[str, Any]] = {  # Any: a report's fields
    "younger": {"created_at": AT + timedelta(seconds=1)},
    "of unknown age": {"created_at": None},
    "another installation's": {"installation": "another"},
    "of nobody's labels": {"installation": "", "workload": ""},
    "of a label that is no id": {"workload": "train"},
    **{str(phase): {"phase": phase} for phase in PodPhase if phase is not PodPhase.GATED},
}


@pytest.mark.parametrize("fields", SPARED.values(), ids=SPARED.keys())
def test_a_pod_is_left_alone_that_is(fields: dict[str, Any], stage: Stage) -> None:
    pod = there(stage, **fields)
    assert delete(stage) == 0
    assert stage.port.pods == {pod.name: pod}


def test_the_pods_of_what_is_being_started_are_left_alone_however_old(stage: Stage) -> None:
    """Nobody knows their uids until they are stored; until then only the attempt says it."""
    workload = stage.submit(count=2)
    stage.cycle()
    for rank in range(2):
        there(stage, **of(workload), rank=rank)
    assert delete(stage) == 0
    assert len(stage.port.pods) == 2


def test_what_somebody_opens_meanwhile_stays(stage: Stage) -> None:
    pod = there(stage)

    def opened() -> None:
        stage.port.becomes(pod.name, PodPhase.WAITING)

    stage.port.meanwhile("delete", opened)
    delete(stage)
    assert stage.port.pods[pod.name].phase is PodPhase.WAITING


def test_an_empty_database_has_nothing_killed_that_runs(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    known = stage.running()
    for name in stage.port.pods:
        stage.port.becomes(name, PodPhase.RUNNING, created_at=AT)
    stranger = there(stage, phase=PodPhase.RUNNING)
    before = dict(stage.port.pods)
    with caplog.at_level(logging.WARNING):
        assert delete(stage) == 0
    assert stage.port.pods == before
    assert stranger.name in caplog.text
    assert known.placements.get().pod_name not in caplog.text


def test_nothing_is_deleted_while_a_pod_runs_that_nobody_knows(stage: Stage) -> None:
    """The database is older than the cluster: what it says of the gated ones is as old."""
    there(stage)
    runs = there(stage, phase=PodPhase.RUNNING)
    assert delete(stage) == 0
    stage.port.becomes(runs.name, PodPhase.SUCCEEDED)
    assert delete(stage) == 1


def test_one_list_has_few_of_them_deleted(stage: Stage) -> None:
    for _ in range(13):
        there(stage)
    assert delete(stage) == 10
    assert delete(stage) == 3


def test_a_cluster_out_of_reach_is_asked_once_a_list(stage: Stage) -> None:
    for _ in range(3):
        there(stage)
    stage.port.fails("delete", Fault.UNREACHABLE)
    assert delete(stage) == 0
    assert stage.port.calls["delete"] == 1
    stage.port.heal()
    assert delete(stage) == 3


def test_pods_that_are_refused_or_on_their_way_keep_no_other(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strays, "MOST", 2)
    refused = there(stage)
    stage.port.fails("delete", Fault.FORBIDDEN, pod=refused.name)
    for _ in range(3):
        there(stage, deleting=True)
    there(stage)
    assert delete(stage) == 1
    assert stage.port.calls["delete"] == 2


def test_a_pod_that_was_replaced_since_the_list_stays(stage: Stage) -> None:
    pod = there(stage)
    listed = stage.port.list_pods().items
    stage.port.pods[pod.name] = replace(pod, uid="another")
    strays.delete(port=stage.port, reports=listed, at=OLD)
    assert stage.port.pods[pod.name].uid == "another"
