"""The tasks that ask clusters for use: each cluster by itself, one at a time."""

import runpy
import socket
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from clusters.models import Cluster
from controlplane.kernel import hints
from controlplane.settings import base
from scheduler import tasks
from scheduler.loop.measuring import measure as measuring
from scheduler.selectors import idleness
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import Stage
from tests.simulation import Simulator, simulator, store_credential

__all__ = ["simulator"]

pytestmark = pytest.mark.part_simulator


@pytest.fixture
def measured(stage: Stage, simulator: Simulator) -> Stage:
    simulator.store_credential(stage.cluster, measured=True)
    return stage


def measure(stage: Stage) -> bool:
    """Whether its use was seen."""
    tasks.measure_cluster(cluster_id=str(stage.cluster.id))
    return Cluster.objects.get(id=stage.cluster.id).use_seen_at is not None


def test_each_cluster_is_asked_by_a_task_of_its_own(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = factories.cluster("south")
    sent: list[Any] = []  # Any: arguments of hints
    monkeypatch.setattr(hints, "send", lambda task, **arguments: sent.append((task, arguments)))
    tasks.measure_use()
    ids = {str(stage.cluster.id), str(other.id)}
    assert {task for task, _ in sent} == {hints.MEASURE_CLUSTER}
    assert {arguments["cluster_id"] for _, arguments in sent} == ids


def test_one_process_at_a_time_asks_a_cluster(measured: Stage) -> None:
    work = f"measure:{measured.cluster.id}"
    assert hints.begin(work, for_s=30)
    assert not measure(measured)
    hints.end(work)
    assert measure(measured)
    assert hints.begin(work, for_s=1)
    hints.end(work)


def test_a_cluster_without_a_credential_says_so_and_frees_nobody(stage: Stage) -> None:
    assert not measure(stage)
    assert "has no credential yet" in Cluster.objects.get(id=stage.cluster.id).use_error


def test_a_cluster_that_hangs_is_left_alone_for_a_while(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "READ_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store(stage, metrics=f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert not measure(stage)
        assert Cluster.objects.get().use_error != ""
        Cluster.objects.update(use_error="")
        measure(stage)
        assert Cluster.objects.get().use_error == ""
    assert 0 < tasks.UNMEASURED_S <= idleness.STALE_S / 2
    hints.end(f"measure:{stage.cluster.id}")


def test_once_nobody_is_to_be_asked_nothing_is_wrong(stage: Stage) -> None:
    store(stage, metrics="http://127.0.0.1:1")
    assert not measuring.measure(cluster=stage.cluster, at=lambda: AT)
    stage.cluster.refresh_from_db()
    assert stage.cluster.use_error != ""
    store(stage, metrics="")
    assert measuring.measure(cluster=stage.cluster, at=lambda: AT)
    stage.cluster.refresh_from_db()
    assert stage.cluster.use_error == ""


@pytest.mark.parametrize("seconds", ["0", "121"])
def test_clusters_are_asked_often_enough_that_use_is_known(
    monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    monkeypatch.setenv("BERTH_USE_S", seconds)
    with pytest.raises(ImproperlyConfigured, match=r"BERTH_USE_S .* from 1 to 120"):
        runpy.run_path(base.__file__)


def store(stage: Stage, *, metrics: str) -> None:
    """The credential of its cluster, with where its use is asked for, "" nowhere."""
    told = {"server": "http://127.0.0.1:1", "token": "x" * 20}
    asked = {"metrics": {**told, "server": metrics}} if metrics else {}
    store_credential(stage.cluster, **told, **asked)
