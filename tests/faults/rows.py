"""What goes wrong: the rows of the matrix. Each is a context around what takes the workloads into
the phase; what stands after its `yield` goes on once that has begun.

What must not live here: which of them meets which phase (table.py).
"""

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from psycopg.sql import SQL, Identifier

from clusters.models import Cluster, ClusterState
from clusters.services import clusters
from controlplane.kernel import hints
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.models import Placement
from scheduler.services import workloads
from tests import backups
from tests.faults import nodes, spoil
from tests.faults.proxy import Spoil
from tests.faults.scene import Phase, Scene
from tests.faults.stand import pod_template
from tests.kube.api import Json
from tests.kube.control_plane import NAMES
from tests.waiting import eventually

AWAY_H = 6


@contextmanager
def spoiled(scene: Scene, by: Spoil) -> Iterator[None]:
    """The request, or the line, is what goes wrong."""
    scene.strike(by)
    yield


@contextmanager
def stale_list(scene: Scene) -> Iterator[None]:
    """The next list is as it was before the pods were made."""
    listed = scene.stand.kube.admin.get("/api/v1/pods?limit=500")
    name = scene.placement().pod_name
    yield
    scene.until("its pod is made", lambda: scene.stand.has_pod(name))
    scene.strike(spoil.stale(json.dumps(listed).encode()))


@contextmanager
def node_deleted(scene: Scene) -> Iterator[None]:
    """Its node is taken out of the cluster, and with it what ran there."""
    kube, node = scene.stand.kube, scene.placement().node.name
    made = kube.admin.get(f"/api/v1/nodes/{node}")
    scene.meanwhile(partial(nodes.lose, kube, node))
    try:
        yield
        scene.until("all have ended", scene.is_over)
    finally:
        nodes.bring_back(kube, made)


@contextmanager
def node_silent(scene: Scene) -> Iterator[None]:
    """Its kubelet is not heard of until all is over: what runs there may run on."""
    kube, node = scene.stand.kube, scene.placement().node.name
    scene.meanwhile(partial(nodes.silence, kube, node))
    try:
        yield
        scene.until_met()
        eventually("Berth knows of it", lambda: not nodes.is_known_ready(node))
        scene.until("all have ended", scene.is_over)
    finally:
        nodes.wake(kube, node)
    eventually("Berth knows that it is back", lambda: nodes.is_known_ready(node))


@contextmanager
def devices_gone(scene: Scene) -> Iterator[None]:
    """An Xid error: the device plugin takes all devices of its node out of what is allocatable,
    while what runs there runs on."""
    kube, node = scene.stand.kube, scene.placement().node.name
    before = nodes.allocatable(kube, node)
    scene.meanwhile(partial(nodes.allocate, kube, node, dict.fromkeys(before, "0")))
    try:
        yield
        scene.until_met()
        eventually("Berth knows of it", lambda: not nodes.has_known_devices(node))
        known_at = datetime.now(UTC)
        scene.until("all have ended", scene.is_over)
        later = Placement.objects.filter(node__name=node, created_at__gt=known_at)
        assert not later.exists(), "work was placed on a node without devices"
    finally:
        nodes.allocate(kube, node, before)
    eventually("Berth knows of them again", lambda: nodes.has_known_devices(node))


@contextmanager
def clock_off(scene: Scene, by: timedelta) -> Iterator[None]:
    """Of the process that is in the phase."""
    who = "watch" if scene.phase is Phase.START else "worker"
    scene.apart += abs(by)
    scene.meanwhile(lambda: scene.stand.skews.update({who: by}))
    yield


@contextmanager
def redis_flushed(scene: Scene) -> Iterator[None]:
    def flush() -> None:
        hints._redis().flushdb()

    scene.meanwhile(flush)
    yield


@contextmanager
def redis_down(scene: Scene) -> Iterator[None]:
    """From the phase on nobody reaches it."""
    with pytest.MonkeyPatch.context() as patch:

        def down() -> None:
            patch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1")
            hints._redis.cache_clear()

        scene.meanwhile(down)
        yield
        scene.until("all have ended", scene.is_over)
    hints._redis.cache_clear()


@contextmanager
def database_lost(scene: Scene) -> Iterator[None]:
    """All connections to it end, as where it is started anew."""
    done = threading.Event()

    def end_all() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        connection.close()
        done.set()

    scene.meanwhile(end_all)
    yield
    scene.until("all connections ended", done.is_set)
    connection.close()  # ours too


@contextmanager
def database_altered(scene: Scene, to: str, back: str) -> Iterator[None]:
    """For everybody who connects from the phase on, until steps of workers broke of it."""
    name, broke = connection.settings_dict["NAME"], len(scene.stand.broke)
    params = connection.get_connection_params() | {"dbname": "postgres"}
    params.pop("pool", None)
    with psycopg.connect(**params, autocommit=True) as admin:

        def alter(how: str) -> None:
            admin.execute(SQL("ALTER DATABASE {} " + how).format(Identifier(name)))
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
            )

        scene.meanwhile(partial(alter, to))
        try:
            yield
            scene.until("steps break", lambda: len(scene.stand.broke) > broke + 3)
        finally:
            alter(back)
            connection.close()


@contextmanager
def database_restored(scene: Scene) -> Iterator[None]:
    """All rows are put back as they were before the phase: before it was planned, those of work
    that is started by then."""
    kept, done = backups.rows(), threading.Event()
    scene.apart += timedelta(minutes=5)  # what is adopted is held from then on

    def restore() -> None:
        backups.put_rows_back(kept)
        connection.close()
        done.set()

    if scene.phase is not Phase.PLAN:
        scene.meanwhile(restore)
        yield
        scene.until("the rows are put back", done.is_set)
        if scene.phase is Phase.DELETE:  # nobody knows that they were cancelled
            scene.until("all are cancelled again", partial(_is_cancelled, scene))
        return
    yield
    begun = (State.RUNNING, State.SUCCEEDED)
    scene.until("all were started", lambda: all(w.state in begun for w in scene.refreshed()))
    restore()
    scene.until("all have ended", scene.is_over)
    for work in scene.refreshed():
        assert work.attempts.get().number == 1
        assert "adopted" in work.events.get(after=State.ADMITTED).message


def _is_cancelled(scene: Scene) -> bool:
    works = scene.refreshed()
    for work in works:
        if work.state not in (State.CANCELLING, State.CANCELLED):
            workloads.cancel(actor=scene.stand.ada, workload=work, at=now())
    return all(work.state in (State.CANCELLING, State.CANCELLED) for work in works)


@contextmanager
def cluster_gone(scene: Scene) -> Iterator[None]:
    """Nobody reaches it for hours, by the database's clock; then it is back."""
    stand = scene.stand

    def go() -> None:
        stand.proxy.down = True

    scene.meanwhile(go)
    yield
    scene.until_met()
    scene.until("it is taken for lost", lambda: _is_lost(stand.cluster))
    for _ in range(3):
        stand.turn()
    stand.proxy.down = False


def _is_lost(cluster: Cluster) -> bool:
    """As it will be in some hours."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE clusters_cluster SET seen_at = seen_at - %s * interval '1 hour'"
            " WHERE id = %s AND last_error <> ''",
            [AWAY_H, cluster.id],
        )
    clusters.mark_silent()
    return Cluster.objects.filter(id=cluster.id, state=ClusterState.LOST).exists()


@contextmanager
def gated_orphan(scene: Scene) -> Iterator[None]:
    """A late duplicate that nobody knows, and nobody will open: it goes."""
    name = _orphan(scene, gated=True)
    yield
    scene.until("the orphan is gone", lambda: not scene.stand.has_pod(name))


@contextmanager
def running_orphan(scene: Scene) -> Iterator[None]:
    """A pod of ours that nobody knows, and that runs: it may be anybody's work, and is left
    alone."""
    name = _orphan(scene, gated=False)
    path = f"/api/v1/namespaces/{scene.stand.vision.namespace}/pods/{name}"
    admin = scene.stand.kube.admin

    def runs() -> bool:
        pod = admin.get(path)
        phase: str = pod["status"]["phase"]
        return phase == "Running" and "deletionTimestamp" not in pod["metadata"]

    eventually("it runs", runs)
    yield
    scene.until("all have ended", scene.is_over)
    assert runs(), "it was ended"
    admin.delete(f"{path}?gracePeriodSeconds=0")
    eventually("its end is told", scene.stand.is_told)
    scene.stand.forget(name)


@contextmanager
def namesake(scene: Scene) -> Iterator[None]:
    """Another's pod has the name that its own is to have."""
    _orphan(scene, gated=True, name=scene.placement().pod_name)
    yield


@contextmanager
def delivered_ten_times(scene: Scene) -> Iterator[None]:
    """The task of the phase, to as many processes at once."""
    if scene.phase in (Phase.PLAN, Phase.CREATE):
        _have_done(scene, 10)
        yield
    elif scene.phase is Phase.DELETE:
        yield
        _have_done(scene, 10)
    else:
        yield
        scene.until("all have ended", scene.is_over)
        _have_done(scene, 10)


def _have_done(scene: Scene, count: int) -> None:
    step = "cycle" if scene.phase is Phase.PLAN else "dispatch"
    children = scene.stand.children
    for pid in [children.spawn(step) for _ in range(count)]:
        assert children.reap(pid) == 0


@contextmanager
def schedulers(scene: Scene, count: int) -> Iterator[None]:
    """Beside this one there are others, which do everything that there is to do."""
    children, errors = scene.stand.children, scene.stand.folder / f"errors-{scene.stand.serial}"
    others = [children.spawn("worker", seed=each, errors=str(errors)) for each in range(1, count)]
    yield
    scene.until("all have ended", scene.is_over)
    for pid in others:
        children.kill(pid)
    assert not errors.exists(), errors.read_text()


def _orphan(scene: Scene, *, gated: bool, name: str = "orphan") -> str:
    """By Berth's own account: what others make is caught."""
    labels = {
        NAMES.label_installation: NAMES.installation,
        NAMES.label_workload: str(uuid.uuid4()),
        NAMES.label_attempt: "1",
        NAMES.label_rank: "0",
    }
    pod: Json = pod_template({"nvidia.com/gpu": "1"}, command=("sleep", "600"))
    pod["spec"]["schedulingGates"] = [{"name": NAMES.gate}] if gated else []
    pod |= {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}}
    scene.stand.kube.berth.create(f"/api/v1/namespaces/{scene.stand.vision.namespace}/pods", pod)
    return name
