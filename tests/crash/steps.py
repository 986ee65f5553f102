"""What a child does before it dies: one step of the loop, or all of them until it is killed.

The steps are the Celery tasks themselves, called directly, and the watcher's own loop.
"""

import contextlib
import os
import random
import threading
import time
import traceback
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from django.conf import settings
from rest_framework.test import APIClient

from clusters import registry
from clusters.adapters.kubernetes import adapter, lists
from clusters.models import Cluster
from clusters.services import inventory
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict
from scheduler import tasks
from scheduler.loop.measuring import meter as metering
from scheduler.loop.observing import observe as observing
from scheduler.loop.recutting import recuts as recutting
from scheduler.loop.scaling import node_asks
from scheduler.loop.watching import foreign, readers
from scheduler.loop.watching.watch import Watch
from scheduler.management.commands import watch_clusters
from scheduler.services import workloads
from tenants import access
from tenants.models import Project, User
from tenants.services import deliveries
from tests.flows.world import spec
from tests.waiting import PATIENCE_S

CLUSTER = "north"


def submit(*, specs: list[dict[str, Any]], project: str = "vision") -> None:  # Any: of `spec`
    for each in specs:
        each["command"] = tuple(each["command"])
    workloads.submit(
        actor=access.actor_for(user=User.objects.get(username="ada")),
        project=Project.objects.get(slug=project),
        specs=[spec(**each) for each in specs],
        at=clock.now(),
    )


def post(
    *,
    key: str,
    command: list[str],
    name: str = "posted",
    flavor: str = "h100",
    gpus: int = 1,
    count: int = 1,
) -> None:
    """The submission as it comes over the API; one that is not answered 201 raises."""
    client = APIClient(SERVER_NAME="localhost")
    client.force_authenticate(User.objects.get(username="ada"))
    pod_set = {
        "name": "main",
        "count": count,
        "cpu_milli": 1000,
        "memory_mib": 1024,
        "gpu_count": gpus,
        "flavors": [flavor],
        "image": "busybox",
        "command": command,
    }
    project = str(Project.objects.get(slug="vision").id)
    body = {"project": project, "name": name, "pod_sets": [pod_set]}
    patient = time.monotonic() + PATIENCE_S
    while True:
        answer = client.post(
            "/api/v1/workloads", body, format="json", headers={"Idempotency-Key": key}
        )
        # PostgreSQL may take a moment to see that who held the key has died.
        if answer.json().get("code") != "in-flight" or time.monotonic() > patient:
            break
    if answer.status_code != 201:
        raise AssertionError(answer.content)


def cycle() -> None:
    tasks.run_cycle()


def check_clusters() -> None:
    tasks.check_clusters()


def dispatch(*, cluster: str = CLUSTER) -> None:
    tasks.dispatch_cluster(cluster_id=str(Cluster.objects.get(name=cluster).id))


def observe() -> None:
    """A relist."""
    cluster, port = Cluster.objects.get(name=CLUSTER), registry.connect(CLUSTER)
    expected = observing.expected(cluster_id=cluster.id)
    pods = port.list_pods().items
    observing.listed(cluster_id=cluster.id, reports=pods, expected=expected, at=clock.now())


def recut(*, ahead_s: int) -> None:
    """As it would go on so much later."""
    cluster = Cluster.objects.get(name=CLUSTER)
    at = clock.now() + timedelta(seconds=ahead_s)
    recutting.carry_on(port=registry.connect(CLUSTER), cluster=cluster, at=lambda: at)


def ask_for_nodes() -> None:
    cluster = Cluster.objects.get(name=CLUSTER)
    node_asks.carry_on(port=registry.connect(CLUSTER), cluster=cluster, at=clock.now)


def meter(*, at: str, accelerated: str) -> None:
    os.environ["BERTH_CLOCK"] = accelerated
    clock.acceleration.cache_clear()
    metering.tick(at=datetime.fromisoformat(at))


def probe(*, probe_id: str) -> None:
    tasks.probe_cluster(probe_id=probe_id)


def send_notices(*, at: str, folder: str) -> None:
    """Each mail becomes a file."""
    backend = "django.core.mail.backends.filebased.EmailBackend"
    settings.MAILERS = {"default": {"BACKEND": backend, "OPTIONS": {"file_path": folder}}}
    deliveries.mail_due(at=lambda: datetime.fromisoformat(at), goes_on=lambda: True)


def watch() -> None:
    """Until it is killed, as the command does it: a watch that breaks begins anew."""
    parent = os.getppid()
    cluster, stop = Cluster.objects.get(name=CLUSTER), threading.Event()
    threading.Thread(target=_when_orphaned, args=[parent, stop.set], daemon=True).start()
    Watch(cluster=cluster, port=registry.connect(CLUSTER), at=clock.now, stop=stop).run()


def follow(*, most_nodes: int, most_pods: int) -> None:
    """All clusters, as the command does it, with limits that a test can wait for."""
    connect = partial(
        registry.connect, read_timeout_s=4.0, watch_timeout_s=2, watch_read_timeout_s=4.0
    )
    for module, name, value in (
        (registry, "connect", connect),
        (readers, "PULSE_S", 0.3),
        (readers, "EXPIRY_S", 0.5),
        (readers, "AUTOSCALING_S", 0.5),
        (readers, "UNSERVED_S", 0.5),
        (lists, "LONGEST_S", 3.0),
        (adapter, "MOST_PODS", most_pods),
        (foreign, "MOST_PODS", most_pods),
        (inventory, "MOST_NODES", most_nodes),
    ):
        patch.object(module, name, value).start()
    parent, stop = os.getppid(), threading.Event()
    threading.Thread(target=_when_orphaned, args=[parent, stop.set], daemon=True).start()
    watch_clusters.follow_all(stop)


def worker(*, seed: int, errors: str) -> None:
    """Steps in random order until it is killed; what they raise is written down."""
    parent = os.getppid()
    chance = random.Random(seed)
    steps: list[Callable[[], None]] = [cycle, dispatch, dispatch, observe, tasks.meter]
    while os.getppid() == parent:
        step = chance.choice(steps)
        _noting(Path(errors), step)
        time.sleep(chance.uniform(0, 0.02))


def watcher(*, errors: str) -> None:
    """As `watch`, and what breaks is written down."""
    _noting(Path(errors), watch)


def _noting(errors: Path, step: Callable[[], None]) -> None:
    try:
        with contextlib.suppress(Conflict):  # a lost race for a workload
            step()
    except Exception:  # as a Celery worker: it is told, and the next task goes on
        with errors.open("a") as file:
            file.write(traceback.format_exc())


def _when_orphaned(parent: int, act: Callable[[], None]) -> None:
    while os.getppid() == parent:
        time.sleep(0.2)
    act()


STEPS: dict[str, Callable[..., None]] = {
    each.__name__: each
    for each in (
        submit,
        post,
        cycle,
        check_clusters,
        dispatch,
        observe,
        recut,
        ask_for_nodes,
        meter,
        probe,
        send_notices,
        watch,
        follow,
        worker,
        watcher,
    )
}
