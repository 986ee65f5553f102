"""The line to a real cluster is cut: its gang starts elsewhere whole, and ends there once the line
is mended, whatever ran on meanwhile."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from django.db import connection

from clusters.models import Cluster, ClusterState
from clusters.port import PodPhase
from clusters.services import clusters
from controlplane.kernel.clock import now
from scheduler import tasks
from scheduler.core.lifecycle import State
from scheduler.loop.dispatching import dispatch
from scheduler.management.commands.watch_clusters import follow
from scheduler.models import Attempt, Placement, WorkloadEvent
from tests.flows.losing import broken
from tests.flows.world import Installation, spec
from tests.kube.control_plane import ControlPlane
from tests.kube.lab import Lab, cluster, lab
from tests.kube.wire import Wire
from tests.simulation import simulation, store_credential
from tests.waiting import PATIENCE_S, eventually

__all__ = ["cluster", "lab"]


@contextmanager
def followed(row: Cluster) -> Iterator[None]:
    """By the watcher, as its command does it."""
    stop = threading.Event()

    def run() -> None:
        try:
            follow(row, stop)
        finally:
            connection.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE_S)


@pytest.fixture
def south(lab: Lab) -> Iterator[Installation]:
    """Simulated; it takes nothing before it is heard."""
    with simulation(layout="demo-north") as simulator:
        by = {"actor": "system:test", "actor_name": "test"}
        row = clusters.register(name="south", region="lab", at=now(), **by)
        fields = {name: getattr(lab, name) for name in Installation.__dataclass_fields__}
        world = replace(Installation(**fields), port=simulator.connect(), cluster=row)
        world.sync()
        yield world


def an_hour_passes() -> None:
    """For clusters that are not heard, since each try began to fail."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE clusters_cluster SET seen_at = seen_at - interval '1 hour',"
            " failing_since = failing_since - interval '1 hour' WHERE failing_since IS NOT NULL"
        )


def test_a_gang_behind_a_cut_line_starts_elsewhere_and_ends_there_once_that_is_mended(
    lab: Lab, south: Installation, control_plane: ControlPlane
) -> None:
    asked = spec(gpus=8, count=2, command=("sleep", "600"), grace_s=1, cluster_loss_requeue_s=600)
    api = urlsplit(control_plane.server)
    assert api.port is not None
    row = lab.cluster
    with Wire(to_port=api.port) as wire:
        store_credential(
            row,
            server=f"https://127.0.0.1:{wire.port}",
            ca=control_plane.ca_pem,
            token=control_plane.berth_token,
        )
        with followed(row):
            [gang] = lab.submit(asked)
            lab.until_state(gang, State.RUNNING)
            first = Attempt.objects.get()
            assert first.cluster_id == row.id

            wire.cut()
            failing = Cluster.objects.filter(id=row.id, failing_since__isnull=False)
            eventually("the watcher has failed", failing.exists)
            clusters.heard(cluster=south.cluster)
            an_hour_passes()
            tasks.check_clusters()
            gang.refresh_from_db()
            assert gang.state == State.PENDING
            south.until_state(gang, State.RUNNING)
            assert gang.attempts.get(number=2).cluster_id == south.cluster.id
            running = [pod.phase for pod in lab.port.list_pods().items if pod.workload]
            assert running == [PodPhase.RUNNING] * 2  # nobody could stop them
            assert broken() == []

            wire.mend()
            heard = Cluster.objects.filter(id=row.id, state=ClusterState.ACTIVE)
            eventually("it is heard again", heard.exists)
            assert dispatch.dispatch(port=lab.port, cluster_id=row.id, at=now).taken == 1
            held = Placement.objects.filter(attempt=first, released_at=None)
            eventually("its pods are seen gone", lambda: not held.exists())
    assert not [pod for pod in lab.port.list_pods().items if pod.workload]
    gang.refresh_from_db()
    assert (gang.state, gang.attempts.count()) == (State.RUNNING, 2)
    assert WorkloadEvent.objects.filter(workload=gang, kind="returned").count() == 1
    assert broken() == []
