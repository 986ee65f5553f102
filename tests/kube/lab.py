"""A project whose people work in a real cluster, and the loop, moved by hand."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.client import Client
from clusters.confinement import Confinement
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.loop.catching import catch
from scheduler.loop.pods import caught
from scheduler.models import CaughtPod, Origin, Workload
from tenants.models import Project
from tests.flows.world import Installation, furnish, spec
from tests.kube.api import Json
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.crds import KINDS, crd
from tests.kube.fixtures import AddNode
from tests.kube.manifests import apply, remove
from tests.kube.operators import Operator
from tests.kube.work import Work, catches, work_in
from tests.networks import LOOPBACK
from tests.waiting import eventually


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """One that catches, with the kinds of others."""
    documents = [crd(*kind) for kind in KINDS]
    apply(control_plane.admin, documents)
    paths = [f"/apis/{group}/{version}/{kind.lower()}s" for group, version, kind in KINDS]
    eventually(
        "all kinds are served",
        lambda: all(control_plane.admin.call("GET", path).status == 200 for path in paths),
    )
    with catches(control_plane):
        yield control_plane
    remove(control_plane.admin, documents)


@dataclass
class Lab(Installation):
    """The project vision in a namespace of the real cluster, four nodes of eight H100s, of which
    it may hold 32; what its people make there, and an operator."""

    work: Work
    operator: Operator

    @property
    def admin(self) -> Callable[[str], Json]:
        return self.work.kube.admin.get

    def take_in(self) -> None:
        """As the watch does."""
        pods = self.port.list_pods().items
        caught.listed(cluster_id=self.cluster.id, reports=pods, at=now())
        # What was refused is looked at again at once.
        CaughtPod.objects.update(asked_at=None)
        catch.take_in(port=self.port, cluster=self.cluster, at=now())

    def turn(self) -> None:
        self.take_in()
        super().turn()

    def make(self, kind: str, name: str, spec: Json, **metadata: Json) -> Json:
        """An object of that kind, by an administrator of the namespace, and its pods."""
        group, version = next((g, v) for g, v, k in KINDS if k == kind)
        path = f"/apis/{group}/{version}/namespaces/{self.work.namespace}/{kind.lower()}s"
        body = {
            "apiVersion": f"{group}/{version}",
            "kind": kind,
            "metadata": {"name": name, **metadata},
            "spec": spec,
        }
        made = self.work.kube.admin.create(path, body)
        self.operator.turn(made)
        return made

    def pytorch_job(self, name: str, *, workers: int = 3, seconds: int = 2) -> Json:
        """A master and so many workers, of eight GPUs each."""
        template = self.template(seconds=seconds)
        roles = {
            "Master": {"replicas": 1, "template": template},
            "Worker": {"replicas": workers, "template": template},
        }
        return self.make("PyTorchJob", name, {"pytorchReplicaSpecs": roles})

    def template(self, *, seconds: int = 2, gpus: int = 8, **labels: str) -> Json:
        pod = self.work.pod("unused", gpus=gpus, **labels)
        pod["spec"]["containers"][0]["command"] = ["sleep", str(seconds)]
        return {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]}

    def pods(self) -> list[Json]:
        found: list[Json] = self.work.kube.admin.get(f"{self.work.path}/pods")["items"]
        return found

    def gated(self) -> set[str]:
        return {p["metadata"]["name"] for p in self.pods() if p["spec"].get("schedulingGates")}

    def hog(self, *, pods: int = 1) -> Workload:
        """Work of ada's that holds eight GPUs a pod until she cancels it."""
        asked = spec("h100", gpus=8, count=pods, name="hog", command=("sleep", "600"))
        [made] = self.submit(asked)
        self.until_state(made, State.RUNNING)
        return made

    def only(self) -> Workload:
        """The one workload that was made in the cluster."""
        return Origin.objects.get().workload

    def waits(self, code: str) -> Workload:
        """That one, once it is told so."""

        def told() -> bool:
            found = Origin.objects.first()
            return bool(found and (found.workload.reason or {}).get("code") == code)

        self.until(told)
        return self.only()


@pytest.fixture
def lab(cluster: ControlPlane, namespace: str, add_node: AddNode, transactional_db: None) -> Lab:
    for _ in range(4):
        add_node()
    client = Client(
        server=cluster.server,
        identity=cluster.berth_token,
        allowed=LOOPBACK,
        ca_pem=cluster.ca_pem,
    )
    world = furnish(KubernetesCluster(client, names=NAMES))
    Project.objects.filter(id=world.vision.id).update(namespace=namespace)
    world.vision.refresh_from_db()
    work = work_in(cluster, namespace)
    # As Berth does before its first pod there: what the namespace gives pods stays the same.
    world.port.confine(wanted=Confinement(namespace))
    lab = Lab(**vars(world), work=work, operator=Operator(cluster.admin, namespace))
    lab.quota(lab.vision, "h100", 32, borrowing=0)
    return lab
