"""A cluster that is asked for all nodes at once, by ProvisioningRequests. The test is the
autoscaler."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from clusters.models import Cluster
from clusters.services import autoscaling, clusters, declared_pools, inventory
from clusters.services.autoscaling import Described
from clusters.services.declared_pools import Declared
from controlplane.kernel.clock import now
from scheduler.loop.scaling import node_asks
from scheduler.loop.watching import hardware
from scheduler.models import NodeAsk, Workload
from tests.flows.world import H100, World, build, spec
from tests.simulation import simulation

HOME = "/namespaces/berth-system"
REQUESTS = f"/apis/autoscaling.x-k8s.io/v1{HOME}/provisioningrequests"
TEMPLATES = f"/api/v1{HOME}/podtemplates"
QUEUED = "queued-provisioning.gke.io"
SELECTOR = {"cloud.google.com/gke-nodepool": "a3"}
POOL = Declared("a3", SELECTOR, QUEUED, 4, {"maxRunDurationSeconds": "604800"})
SHAPE = Described(H100, 8, 96_000, 1_000_000)
BY = {"actor": "user:oz", "actor_name": "oz"}


@contextmanager
def requesting() -> Iterator[World]:
    """A cluster that is to be asked, without a node, and a declared pool of up to four."""
    with simulation() as simulator:
        world = build(simulator)
        world.quota(world.vision, "h100", 64)
        inventory.sync(
            cluster=world.cluster, reports=(), complete=True, arrange=hardware.arrange, at=now()
        )
        declared_pools.declare(cluster=world.cluster, pool=POOL, node=SHAPE, at=now(), **BY)
        clusters.ask_for_nodes(cluster=world.cluster, ask=True, at=now(), **BY)
        read(world)
        yield world


def read(world: World, at: datetime | None = None) -> None:
    """What the watch reads each 15 s."""
    found = world.port.read_autoscaling()
    assert found is not None
    autoscaling.sync(cluster=world.cluster, found=found, at=at or now())


def submitted(world: World, count: int = 2, *, gpus: int = 8) -> Workload:
    [work] = world.submit(spec("h100", gpus=gpus, count=count))
    return work


def step(world: World, at: datetime | None = None) -> None:
    read(world, at)
    world.cycle()
    node_asks.plan(at=at or now())
    carry_on(world, at)


def carry_on(world: World, at: datetime | None = None) -> None:
    cluster = Cluster.objects.get(name="north")
    assert node_asks.carry_on(port=world.port, cluster=cluster, at=lambda: at or now())


def requests(world: World) -> list[Any]:  # Any: JSON
    return list(world.simulator.call("GET", REQUESTS)["items"])


def templates(world: World) -> list[Any]:  # Any: JSON
    return list(world.simulator.call("GET", TEMPLATES)["items"])


def say(world: World, *kinds: str, message: str = "", to: Workload | None = None) -> None:
    """The autoscaler says these of the one request, or of the one for that work."""
    asks = NodeAsk.objects.filter(workload=to) if to else None
    [request] = [
        one
        for one in requests(world)
        if asks is None or one["metadata"]["name"] in {ask.request_name for ask in asks}
    ]
    told = [{"type": kind, "status": "True", "message": message} for kind in kinds]
    request["status"] = {"conditions": told}
    world.simulator.call("PUT", f"{REQUESTS}/{request['metadata']['name']}", request)


def annotations(world: World) -> list[dict[str, str]]:
    """Of the pods of work."""
    metadata = [pod["metadata"] for pod in world.simulator.call("GET", "/api/v1/pods")["items"]]
    return [one["annotations"] for one in metadata if "berth.dev/workload" in one["labels"]]


def stands(world: World, *names: str, of: Mapping[str, str] = SELECTOR) -> None:
    """Nodes with these labels that are there and ready, as Berth has seen; those of the pool."""
    there = world.simulator.call("GET", "/api/v1/nodes")["items"]
    product = "nvidia.com/gpu.product"
    like = next(n for n in there if "H100" in n["metadata"]["labels"].get(product, ""))
    taint = {"key": "cloud.google.com/gke-queued", "value": "true", "effect": "NoSchedule"}
    for name in names:
        labels = {**like["metadata"]["labels"], **of, "kubernetes.io/hostname": name}
        metadata = {"name": name, "labels": labels}
        body = {"metadata": metadata, "spec": {"taints": [taint]}, "status": like["status"]}
        world.simulator.call("POST", "/api/v1/nodes", body)
    reports = [one for one in world.port.list_nodes().items if one.name in names]
    inventory.sync(
        cluster=world.cluster, reports=reports, complete=True, arrange=hardware.arrange, at=now()
    )
