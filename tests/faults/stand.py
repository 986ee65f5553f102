"""An installation whose cluster is a real one behind the proxy, with all that goes on in it: the
watch in a thread, as `watch_clusters` has it, and the Celery tasks, called in turns.

What must not live here: what goes wrong (rows.py), and when (scene.py).
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
import redis
from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError, connection
from django.db.models.functions import Now

from clusters import registry
from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.client import Client
from clusters.port import Change
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict
from scheduler import tasks
from scheduler.loop import run
from scheduler.loop.catching import catch
from scheduler.loop.dispatching import collect
from scheduler.loop.observing import settle
from scheduler.loop.watching import readers, strays, watch
from scheduler.management.commands import watch_clusters
from scheduler.models import LIVE, Attempt, Confinement, Operation, Workload
from scheduler.services import workloads
from tests.crash.children import Children
from tests.crash.diary import Diary
from tests.faults.proxy import Proxy
from tests.flows.world import Installation, furnish
from tests.kube.api import Json
from tests.kube.control_plane import NAMES, ControlPlane
from tests.networks import LOOPBACK
from tests.simulation import store_credential
from tests.waiting import eventually

READ_S = 1.5
"""After which a request without an answer is given up."""
SHORT_S = 2
"""What leases and claims last here."""
_BROKEN = (OperationalError, InterfaceError, InternalError, redis.RedisError)
"""What a step may raise where its database or its Redis is taken away, or takes no writes; the
next goes on."""


@dataclass
class Stand(Installation):
    """`told` is the whole story of the pods, read beside the proxy."""

    kube: ControlPlane
    proxy: Proxy
    direct: KubernetesCluster
    children: Children
    folder: Path
    told: Diary = field(default_factory=Diary)
    broke: list[Exception] = field(default_factory=list)
    skews: dict[str, timedelta] = field(default_factory=dict)
    """By how much the clock of the worker, or that of the watch, is off: the worker's until its
    turn is over."""
    serial: int = 0
    """Of the cell: names in it end with it."""

    def new_namespace(self) -> None:
        """The project has never been confined, and is to be in another namespace."""
        Confinement.objects.filter(project=self.vision).delete()
        self.vision.namespace = f"berth-vision-{self.serial}"
        self.vision.save(update_fields=["namespace"])

    def make_job(self, name: str, kind: str) -> None:
        """One of the cluster's own, which asks for what a submitted workload of the kind does."""
        resource = "mig-3g.40gb" if kind == "slice" else "gpu"
        pod = pod_template({f"nvidia.com/{resource}": "2" if kind == "single" else "1"})
        count = 3 if kind == "gang" else 1
        body: Json = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {"parallelism": count, "completions": count, "template": pod},
        }
        self.kube.admin.create(f"/apis/batch/v1/namespaces/{self.vision.namespace}/jobs", body)

    def pods_are_kept(self, *, for_s: int) -> None:
        """Once they have ended."""
        settings.BERTH_POD_RETENTION_S = for_s

    def amiss(self) -> str:
        """What operations last failed of, and the cluster."""
        failed = Operation.objects.filter(done_at__isnull=True).values_list("kind", "last_error")
        self.cluster.refresh_from_db()
        collected = Attempt.objects.exclude(collect_at=None).values_list("leftover", "collect_at")
        return (
            f"due {list(failed)}, left {list(collected)[-3:]}, services {self.services()}, told"
            f" {self.is_told()}, cluster {self.cluster.state}: {self.cluster.last_error}"
        )

    def turn(self) -> None:
        """What beat and hints have workers do."""
        for step in (tasks.run_cycle, self.dispatch, tasks.check_starts):
            self.guarded(step)
        self.skews.pop("worker", None)
        time.sleep(0.1)  # workers are no busy loop: what they wait for needs the machine

    def dispatch(self) -> None:
        tasks.dispatch_cluster(cluster_id=str(self.cluster.id))

    def guarded(self, step: Callable[[], None]) -> None:
        """As a worker: what its step breaks of is noted, and the next one has a new connection."""
        try:
            step()
        except _BROKEN as error:
            self.broke.append(error)
            connection.close()

    def is_so(self, reached: Callable[[], bool]) -> bool:
        """No, for now, where the database can't tell."""
        try:
            return reached()
        except _BROKEN as error:
            self.broke.append(error)
            connection.close()
            return False

    def is_quiet(self) -> bool:
        """Nothing is left to do of what has ended, and the diary knows all that happened."""
        due = Attempt.objects.filter(collect_at__lte=Now() + timedelta(seconds=5))
        return not due.exists() and not self.services() and self.is_told()

    def services(self) -> int:
        path = f"/api/v1/services?labelSelector={NAMES.label_installation}={NAMES.installation}"
        return len(self.kube.admin.get(path)["items"])

    def has_pod(self, name: str) -> bool:
        path = f"/api/v1/namespaces/{self.vision.namespace}/pods/{name}"
        return self.kube.admin.call("GET", path).status == 200

    def forget(self, name: str) -> None:
        """What its diary tells of pods of that name."""
        for place, reports in list(self.told.pods.items()):
            if any(report.name == name for report in reports.values()):
                for told in (self.told.pods, self.told.opened, self.told.ran):
                    told.pop(place, None)

    def now(self) -> datetime:
        """The clock of whoever asks."""
        who = "worker" if threading.current_thread() is threading.main_thread() else "watch"
        return datetime.now(UTC) + self.skews.get(who, timedelta())

    def heal(self) -> None:
        """Nothing is wrong from now on."""
        self.proxy.heal()
        self.skews.clear()

    @contextmanager
    def playing(self) -> Iterator[None]:
        """A cell; whatever comes of it, nothing of it is there for the next one."""
        self.serial += 1
        try:
            yield
        except BaseException:
            self.heal()
            self._give_up()
            raise
        finally:
            self.heal()
            self._clean()

    def _give_up(self) -> None:
        """End what a cell that failed left behind."""
        for work in Workload.objects.filter(LIVE):
            with suppress(Conflict):
                workloads.cancel(actor=self.ada, workload=work, at=clock.now())
        live = Workload.objects.filter(LIVE)

        def over() -> bool:
            self.turn()
            return not live.exists() and self.is_quiet()

        eventually("all that was left has ended", over)

    def _clean(self) -> None:
        """Nothing of what ran is in the cluster any more, and its story is closed."""
        selector = f"labelSelector={NAMES.label_installation}={NAMES.installation}"
        for space in self.kube.admin.get(f"/api/v1/namespaces?{selector}")["items"]:
            path = f"/api/v1/namespaces/{space['metadata']['name']}"
            self.kube.admin.delete(f"/apis/batch/v1{path[7:]}/jobs?propagationPolicy=Background")
            self.kube.admin.delete(f"{path}/pods?gracePeriodSeconds=0")
        eventually("nothing is left", lambda: self.is_told() and not self.told.there)
        self.told = Diary()

    def is_told(self) -> bool:
        there = {each.uid: each for each in self.direct.list_pods().items if each.workload}
        told = {
            uid: report
            for reports in self.told.pods.values()
            for uid, report in reports.items()
            if uid in self.told.there
        }
        return there == told

    def write_diary(self, stop: threading.Event) -> None:
        version = self.direct.list_pods().resource_version
        while not stop.is_set():
            with self.direct.watch_pods(resource_version=version) as events:
                for event in events:
                    version = event.resource_version
                    if event.report is not None and event.report.workload:
                        self.told.note(event.report, gone=event.change is Change.DELETE)


@contextmanager
def standing(kube: ControlPlane, children: Children, folder: Path) -> Iterator[Stand]:
    """One with fresh rows, and its watch; the database is the caller's to empty."""
    client = Client(
        server=kube.server, ca_pem=kube.ca_pem, identity=kube.berth_token, allowed=LOOPBACK
    )
    direct = KubernetesCluster(client, names=NAMES, watch_timeout_s=2)
    stop = threading.Event()
    with Proxy(kube.server, kube.ca_pem) as proxy, ExitStack() as stack:
        world = furnish(direct)
        stand = Stand(
            **vars(world),
            kube=kube,
            proxy=proxy,
            direct=direct,
            children=children,
            folder=folder,
        )
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(clock, "now", stand.now)
        store_credential(stand.cluster, server=proxy.url, token=kube.berth_token)
        threads = [
            threading.Thread(
                target=watch_clusters.follow, args=[stand.cluster, stop], name="watch"
            ),
            threading.Thread(target=stand.write_diary, args=[stop]),
        ]
        for thread in threads:
            thread.start()
        try:
            yield stand
        finally:
            stop.set()
            for thread in threads:
                thread.join()


@contextmanager
def short_times() -> Iterator[None]:
    """Berth's own time-outs and pauses, as short as a cell can wait for."""
    with pytest.MonkeyPatch.context() as patch:
        connect = partial(
            registry.connect, read_timeout_s=READ_S, watch_timeout_s=1, watch_read_timeout_s=1.5
        )
        patch.setattr(registry, "connect", connect)
        ports = registry.Ports(connect_timeout_s=1.0, read_timeout_s=READ_S)
        patch.setattr(tasks, "_ports", ports)
        patch.setattr(tasks, "QUIET_S", 0)
        patch.setattr(run.pace, "wait", lambda: None)
        patch.setattr(watch_clusters, "LONGEST_PAUSE_S", 0.5)
        patch.setattr(readers, "RELIST_S", 1.0)
        patch.setattr(readers, "CATCH_S", 0.5)
        patch.setattr(catch, "AGAIN", timedelta(seconds=0.5))
        patch.setattr(watch, "UNSCHEDULABLE_S", 1.0)
        patch.setattr(settle, "PAUSE", timedelta(seconds=0.2))
        patch.setattr(collect, "AGAIN_S", 1)
        patch.setattr(strays, "AGE", timedelta(seconds=0))
        patch.setattr(settings, "BERTH_POD_RETENTION_S", 3600)  # put back at the end
        patch.setattr(settings, "BERTH_LEASE_S", SHORT_S)
        patch.setattr(settings, "BERTH_CLAIM_S", SHORT_S)
        yield


def pod_template(limits: dict[str, str], *, command: tuple[str, ...] = ("sleep", "0")) -> Json:
    """As a confined namespace admits it, of others."""
    container = {
        "name": "main",
        "image": "example.test/train:1",
        "command": list(command),
        "resources": {"limits": limits, "requests": {"cpu": "100m"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    profile = {"type": "RuntimeDefault"}
    return {
        "spec": {
            "restartPolicy": "Never",
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 1000,
                "seccompProfile": profile,
            },
            "containers": [container],
        }
    }
