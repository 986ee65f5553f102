"""From a pod that sleeps on its GPUs to work that was freed: use is asked of the simulated
cluster's own gauges, over HTTP, by the sealed credential."""

from datetime import timedelta

import pytest

from clusters.models import Cluster
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.loop.measuring import idle, measure
from scheduler.models import Idleness, Workload
from tenants.models import Project
from tests.flows.world import World, spec
from tests.simulation import store_credential


@pytest.fixture
def measured(world: World) -> World:
    world.simulator.store_credential(world.cluster, measured=True)
    Project.objects.update(idle_timeout_s=1, idle_warning_s=0)
    return world


def running(world: World, name: str, *command: str) -> Workload:
    [workload] = world.submit(spec("h100", gpus=2, name=name, command=command))
    return world.until_state(workload, State.RUNNING)


def test_work_that_sleeps_on_its_devices_is_freed_and_work_that_uses_them_is_not(
    measured: World,
) -> None:
    sleeps, works = (
        running(measured, "sleeps", "sleep", "600"),
        running(measured, "works", "train"),
    )
    measure.measure(cluster=measured.cluster, at=now)
    assert list(Idleness.objects.values_list("attempt__workload", flat=True)) == [sleeps.id]
    Idleness.objects.update(since=now() - timedelta(hours=1))
    measured.until_state(sleeps, State.FAILED)
    works.refresh_from_db()
    assert works.state == State.RUNNING
    assert sleeps.attempts.get().trouble.startswith("freed: idle, its devices were unused for 36")
    assert [event.message for event in sleeps.events.filter(kind=idle.EVENT)] != []


def test_a_cluster_that_is_not_measured_or_does_not_answer_frees_nobody(
    measured: World,
) -> None:
    running(measured, "sleeps", "sleep", "600")
    measured.simulator.store_credential(measured.cluster)
    measure.measure(cluster=measured.cluster, at=now)
    cluster = Cluster.objects.get()
    assert (cluster.use_seen_at, cluster.use_error) == (None, "")
    here = {"server": measured.simulator.server, "token": measured.simulator.token}
    wrong = {**here, "token": "a-token-that-is-not-it"}
    store_credential(measured.cluster, **here, metrics=wrong)
    measure.measure(cluster=measured.cluster, at=now)
    cluster = Cluster.objects.get()
    assert cluster.use_seen_at is None
    assert "Unauthorized" in cluster.use_error
    assert not Idleness.objects.exists()
    measured.simulator.store_credential(measured.cluster, measured=True)
    measure.measure(cluster=measured.cluster, at=now)
    assert Cluster.objects.get().use_error == ""
    assert Idleness.objects.count() == 1
