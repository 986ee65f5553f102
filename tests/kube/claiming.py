"""A cluster whose devices a driver publishes, and what people make there that claims some."""

from collections import defaultdict
from collections.abc import Iterator
from uuid import UUID

import pytest

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.client import Client
from clusters.confinement import Confinement
from clusters.parts import Part
from controlplane.kernel.clock import now
from scheduler.loop.watching.hardware import Hardware
from scheduler.loop.watching.readers import SliceList
from scheduler.models import PlacementSpan, Workload
from tenants.models import Project
from tests.flows.world import furnish
from tests.kube import resource_slices as made
from tests.kube.api import Json
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.fixtures import CLAIMS, AddNode, needs
from tests.kube.lab import Lab
from tests.kube.manifests import added_by, apply, remove
from tests.kube.operators import Operator
from tests.kube.work import catches, work_in
from tests.networks import LOOPBACK
from tests.waiting import eventually

CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
WHOLE = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
PROFILE = "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"
SLICE = f"{WHOLE.replace("'gpu'", "'mig'")} && {PROFILE}"


def device_class(name: str, expression: str, **spec: Json | str) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}], **spec},
    }


@pytest.fixture(scope="module")
def granted(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """What `cluster_manifest --dra --catch` adds is applied, and a driver's classes are there."""
    needs(control_plane, *CLAIMS)
    added = [
        *added_by(Part.DRA, names=NAMES),
        device_class("gpu", WHOLE, extendedResourceName="nvidia.com/gpu"),
        device_class("mig", SLICE),
        device_class("any", "device.driver == 'gpu.nvidia.com'"),
    ]
    apply(control_plane.admin, added)
    eventually("Berth may look", lambda: control_plane.berth.call("GET", CLASSES).status == 200)
    with catches(control_plane):
        yield control_plane
    remove(control_plane.admin, added)


@pytest.fixture
def lab(
    granted: ControlPlane, namespace: str, add_node: AddNode, transactional_db: None
) -> Iterator[Lab]:
    """One node, of which a driver publishes four H100s: kube-scheduler by itself would take the
    one first that Berth takes last."""
    node = str(add_node(gpus=0)["metadata"]["name"])
    granted.admin.create(
        made.PATH, made.published(node, [made.whole(node, nth) for nth in (3, 2, 1, 0)])
    )
    client = Client(
        server=granted.server,
        identity=granted.berth_token,
        allowed=LOOPBACK,
        ca_pem=granted.ca_pem,
    )
    world = furnish(KubernetesCluster(client, names=NAMES))
    Project.objects.filter(id=world.vision.id).update(namespace=namespace)
    world.vision.refresh_from_db()
    work = work_in(granted, namespace)
    world.port.confine(wanted=Confinement(namespace))
    hardware = Hardware(world.cluster, now)
    hardware.nodes_listed(world.port.list_nodes().items)
    hardware.slices_listed(SliceList(world.port.list_resource_slices()))
    lab = Lab(**vars(world), work=work, operator=Operator(granted.admin, namespace))
    lab.quota(lab.vision, "h100", 3, borrowing=0)
    yield lab
    granted.admin.delete(f"{made.PATH}/{node}-0")


def template(lab: Lab, name: str, **request: Json | str | int | bool) -> None:
    """By which one claims `count` devices of the class "gpu", or what else is said."""
    exactly = {"deviceClassName": "gpu", **request}
    spec = {"devices": {"requests": [{"name": "devices", "exactly": exactly}]}}
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": spec},
    }
    path = f"/apis/resource.k8s.io/v1/namespaces/{lab.work.namespace}/resourceclaimtemplates"
    lab.work.kube.admin.call("DELETE", f"{path}/{name}")
    lab.work.kube.admin.create(path, body)


def claiming(lab: Lab, of: str, *, seconds: int = 600) -> Json:
    """The spec of a pod that claims by that template."""
    spec: Json = lab.template(gpus=0, seconds=seconds)["spec"]
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": of}]
    spec["containers"][0]["resources"]["claims"] = [{"name": "gpu", "request": "devices"}]
    return spec


def bare(lab: Lab, name: str, of: str) -> None:
    pod = lab.work.pod(name)
    assert lab.work.create(pod | {"spec": claiming(lab, of)}).status == 201


def placed(work: Workload) -> list[set[str]]:
    """By pod, what it was placed on, as the driver calls that."""
    found: dict[UUID, set[str]] = defaultdict(set)
    for span in PlacementSpan.objects.filter(placement__workload=work).select_related("device"):
        found[span.placement_id].add(f"gpu-{span.device.uuid.rpartition('-')[2]}")
    return sorted(found.values(), key=sorted)


def given(lab: Lab) -> list[set[str]]:
    """By claim, which devices it was given."""
    return sorted(filter(None, claims(lab).values()), key=sorted)


def claims(lab: Lab) -> dict[str, set[str]]:
    """By claim of the namespace, which devices it was given."""
    path = f"/apis/resource.k8s.io/v1/namespaces/{lab.work.namespace}/resourceclaims"
    return {
        claim["metadata"]["name"]: {
            each["device"]
            for each in claim.get("status", {})
            .get("allocation", {})
            .get("devices", {})
            .get("results", ())
        }
        for claim in lab.work.kube.admin.get(path)["items"]
    }
