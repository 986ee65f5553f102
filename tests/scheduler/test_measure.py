"""The tasks that ask clusters for use: each cluster by itself, one at a time."""

from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from clusters.models import Cluster
from controlplane.kernel import hints
from scheduler import tasks
from tests import factories
from tests.scheduler.stage import Stage
from tests.simulation import Simulator, simulator

__all__ = ["simulator"]

pytestmark = pytest.mark.part_simulator


@pytest.fixture
def measured(stage: Stage, simulator: Simulator, tmp_path: Path, settings: Settings) -> Stage:
    settings.BERTH_CREDENTIALS_DIR = tmp_path / "credentials"
    simulator.write_credential(tmp_path / "credentials", stage.cluster.name, measured=True)
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


def test_a_cluster_without_a_credential_file_says_so_and_frees_nobody(
    stage: Stage, tmp_path: Path, settings: Settings
) -> None:
    settings.BERTH_CREDENTIALS_DIR = tmp_path
    assert not measure(stage)
    assert "can't be read" in Cluster.objects.get(id=stage.cluster.id).use_error
