"""A cluster that makes nodes by itself, on the real control plane."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.client import Client
from clusters.parts import Part
from clusters.services import autoscaling, clusters
from controlplane.kernel.clock import now
from scheduler.loop.scaling import node_asks
from scheduler.models import Workload
from tenants.models import Project
from tests.flows.world import Installation, furnish
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.manifests import added_by, apply, remove
from tests.networks import LOOPBACK
from tests.waiting import eventually


@dataclass
class Growing(Installation):
    """A cluster that is asked for nodes; `seen` are the reasons that were told on the way."""

    kube: ControlPlane
    seen: set[str] = field(default_factory=set)

    def turn(self) -> None:
        self.sync()
        found = self.port.read_autoscaling()
        assert found is not None
        autoscaling.sync(cluster=self.cluster, found=found, at=now())
        super().turn()
        node_asks.plan(at=now())
        node_asks.carry_on(port=self.port, cluster=self.cluster, at=now)
        self.seen |= {str((w.reason or {}).get("code")) for w in Workload.objects.all()}


@contextmanager
def growing(kube: ControlPlane, name: str) -> Iterator[Growing]:
    """One that is asked for nodes, by the rights of the manifest. The project's namespace has that
    name; Berth makes it."""
    added = added_by(Part.AUTOSCALE, names=NAMES)
    apply(kube.admin, added)
    client = Client(
        server=kube.server, identity=kube.berth_token, allowed=LOOPBACK, ca_pem=kube.ca_pem
    )
    port = KubernetesCluster(client, names=NAMES)
    eventually("the role is seen", lambda: _is_seen(port))
    world = Growing(**vars(furnish(port)), kube=kube)
    Project.objects.filter(id=world.vision.id).update(namespace=name)
    world.vision.refresh_from_db()
    world.quota(world.vision, "h100", 64)
    clusters.ask_for_nodes(
        cluster=world.cluster, ask=True, actor="user:oz", actor_name="oz", at=now()
    )
    yield world
    remove(kube.admin, added)
    kube.admin.delete(f"/api/v1/namespaces/{name}/pods?gracePeriodSeconds=0")
    kube.admin.call("DELETE", f"/api/v1/namespaces/{name}")


def _is_seen(port: KubernetesCluster) -> bool:
    said = {step.name: step.said for step in port.probe()}
    return said["autoscale"] == "Berth sees which nodes can come there"
