"""Pods created and opened per second on a real API server: through Berth, and by a bare loop.

The bare loop sends the same two calls for the same pods as Berth's dispatcher, over connections
that it keeps, and reads of an answer the uid and version alone. It is taken with one thread and
with as many as the dispatcher has; the better one counts. Berth's time is that of `dispatch`, from
the first claim to the last attempt's end, its rows in PostgreSQL included. Both go on by turns
against one server, on nodes of KWOK; what a turn made is gone before the next one begins. On a
machine whose speed varies, only turns that follow each other compare: the ratio is the median of
those of the rounds, without a first one, where the database knows nothing of its tables yet.

What must not live here: starting the servers, for Django has to know them before this is imported.
"""

import http.client
import ssl
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from urllib.parse import urlsplit

import orjson
from django.core.management import call_command

from clusters.adapters.kubernetes import manifests
from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.client import JSON, MERGE_PATCH, Client
from clusters.confinement import Confinement
from clusters.models import Cluster, Device
from clusters.port import NVIDIA_GPU, PodRequest
from clusters.services import inventory
from controlplane.kernel import clock
from scheduler.core.lifecycle import State
from scheduler.loop.dispatching.calls import THREADS
from scheduler.loop.dispatching.dispatch import dispatch
from scheduler.loop.run import run_cycle
from scheduler.loop.watching.hardware import arrange
from scheduler.models import Placement, Workload
from tests import factories
from tests.bench.decisions import waiting
from tests.bench.report import Figures
from tests.kube.api import Json
from tests.kube.control_plane import NAMES, ControlPlane
from tests.networks import LOOPBACK
from tests.waiting import eventually

PODS = 400
ROUNDS = 7
GPUS = 8
MODEL = "NVIDIA H100 80GB HBM3"


def take(figures: Figures, kube: ControlPlane) -> None:
    """Add the medians of the rounds, and how far their ratios are apart."""
    call_command("migrate", verbosity=0, interactive=False)
    nodes = [f"bench-{nth}" for nth in range(PODS * (ROUNDS + 1) // GPUS)]
    _add(kube, nodes)
    port = KubernetesCluster(
        Client(
            server=kube.server, identity=kube.berth_token, allowed=LOOPBACK, ca_pem=kube.ca_pem
        ),
        names=NAMES,
    )
    cluster = factories.cluster()
    inventory.sync(
        cluster=cluster,
        reports=port.list_nodes().items,
        complete=True,
        arrange=arrange,
        at=clock.now(),
    )
    model = Device.objects.values_list("model", flat=True).distinct().get()
    flavor, ada = factories.flavor(model=model), factories.user("ada")
    project = factories.project(factories.tenant())
    factories.quota(project, flavor, PODS * (ROUNDS + 1) * 1000)
    port.confine(wanted=Confinement(project.namespace))
    bare, berth, ratios = [], [], []
    for _ in range(ROUNDS + 1):
        turns = []
        for threads in (1, THREADS):
            turns.append(_bare(kube, project.namespace, nodes, threads))
            _clear(kube, project.namespace)
        bare.append(max(turns))
        waiting([project], ada, flavor, PODS)
        berth.append(_berth(port, cluster))
        _clear(kube, project.namespace)
        ratios.append(berth[-1] / bare[-1])
    del bare[0], berth[0], ratios[0]
    figures.add("write_bare_pods_per_s", median(bare), "pods/s")
    figures.add("write_berth_pods_per_s", median(berth), "pods/s")
    figures.add("write_ratio", median(ratios), "x", at_least=0.8)
    figures.add("write_ratio_min", min(ratios), "x")
    figures.add("write_ratio_max", max(ratios), "x")


def _add(kube: ControlPlane, names: Sequence[str]) -> None:
    for name in names:
        kube.add_gpu_node(
            name,
            model=MODEL,
            gpus=GPUS,
            memory_mib=81_559,
            cpu_milli=96_000,
            ram_mib=1_048_576,
            ready=False,
        )
    for name in names:
        kube.wait_for_node(name)


def _berth(port: KubernetesCluster, cluster: Cluster) -> float:
    """Pods a second, of those that wait; where each goes is decided before."""
    waits = Workload.objects.filter(state=State.PENDING.value)
    while before := waits.count():
        run_cycle(at=clock.now())
        assert waits.count() < before, "what waits does not start"
    begun = time.perf_counter()
    while dispatch(port=port, cluster_id=cluster.id, at=clock.now).taken:
        pass
    took = time.perf_counter() - begun
    assert not Placement.objects.filter(opened_at__isnull=True).exists()
    return PODS / took


def _bare(kube: ControlPlane, namespace: str, nodes: Sequence[str], threads: int) -> float:
    """Pods a second."""
    bodies = [
        orjson.dumps(manifests.pod(_request(namespace, f"bare-{nth}"), names=NAMES))
        for nth in range(PODS)
    ]
    loops = [_Loop(kube, namespace) for _ in range(threads)]

    def go(nth: int) -> None:
        for pod in range(nth, PODS, threads):
            loops[nth].start(bodies[pod], f"bare-{pod}", nodes[pod // GPUS])

    with ThreadPoolExecutor(threads) as pool:
        begun = time.perf_counter()
        list(pool.map(go, range(threads)))
        return PODS / (time.perf_counter() - begun)


def _request(namespace: str, name: str) -> PodRequest:
    return PodRequest(
        namespace=namespace,
        name=name,
        workload=name,
        attempt=1,
        rank=0,
        image="registry.example.org/train:1",
        command=(),
        args=(),
        env=(),
        cpu_milli=4000,
        memory_mib=16_384,
        resources=((NVIDIA_GPU, 1),),
    )


class _Loop:
    """One connection, kept."""

    def __init__(self, kube: ControlPlane, namespace: str) -> None:
        context = ssl.create_default_context(cadata=kube.ca_pem)
        self._connection = http.client.HTTPSConnection(
            urlsplit(kube.server).netloc, context=context
        )
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._token = kube.berth_token

    def start(self, body: bytes, name: str, node: str) -> None:
        born = self._ask("POST", self._path, body, JSON)["metadata"]
        opening = manifests.opening(
            uid=born["uid"], resource_version=born["resourceVersion"], hostname=node
        )
        self._ask("PATCH", f"{self._path}/{name}", orjson.dumps(opening), MERGE_PATCH)

    def _ask(self, method: str, path: str, body: bytes, kind: str) -> Json:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        assert answer.status < 300, text
        found: Json = orjson.loads(text)
        return found


def _clear(kube: ControlPlane, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    kube.admin.delete(f"{path}?gracePeriodSeconds=0")
    eventually(
        "the pods are gone", lambda: not kube.admin.get(f"{path}?limit=1")["items"], within_s=120
    )
