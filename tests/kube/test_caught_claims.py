"""Work made in a real cluster that asks for devices by their class waits for Berth, is charged,
and runs on devices that a driver publishes."""

from collections import defaultdict
from collections.abc import Iterator
from uuid import UUID

import pytest

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.client import Client
from clusters.confinement import Confinement
from clusters.parts import Part
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.loop.hardware import Hardware
from scheduler.loop.readers import SliceList
from scheduler.models import CaughtPod, Placement, PlacementSpan, Workload
from tenants.models import Project
from tests.flows.world import furnish
from tests.kube import resource_slices as made
from tests.kube.api import Json
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.fixtures import AddNode
from tests.kube.lab import Lab
from tests.kube.manifests import added_by, apply, remove
from tests.kube.operators import Operator
from tests.kube.waiting import eventually
from tests.kube.work import catches, work_in
from tests.networks import LOOPBACK

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


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "deviceclass.resource.kubernetes.io/gpu"])
def test_who_asks_by_a_resource_of_a_class_is_charged_and_gets_such_devices(
    lab: Lab, resource: str
) -> None:
    pod = lab.work.pod("train", gpus=0)
    [container] = pod["spec"]["containers"]
    container["command"] = ["sleep", "600"]
    container["resources"]["limits"] = {resource: "2"}
    assert lab.work.create(pod).status == 201
    assert lab.gated() == {"train"}
    lab.turn()
    work = lab.only()
    lab.until_state(work, State.RUNNING)
    [asked] = work.pod_sets.all()
    assert (asked.gpu_count, [each.name for each in asked.flavors.all()]) == (2, ["h100"])
    assert Placement.objects.get(workload=work).amount_milli == 2000
    [given] = claims(lab).values()
    assert len(given) == 2


def test_a_class_that_nobody_can_read_is_refused_and_told(lab: Lab) -> None:
    pod = lab.work.pod("train", gpus=0)
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    limits["deviceclass.resource.kubernetes.io/any"] = "1"
    assert lab.work.create(pod).status == 201
    lab.take_in()
    assert lab.gated() == {"train"}
    told = CaughtPod.objects.get().refusal
    assert told.endswith(
        "The device class any does not say type == 'gpu', or type == 'mig' and which profile."
    )


def test_a_pod_that_claims_devices_waits_is_charged_and_gets_the_very_ones(lab: Lab) -> None:
    template(lab, "two", count=2)
    bare(lab, "first", "two")
    lab.turn()
    first = lab.only()
    lab.until_state(first, State.RUNNING)
    assert Placement.objects.get(workload=first).amount_milli == 2000
    bare(lab, "second", "two")
    lab.turn()
    second = Workload.objects.exclude(id=first.id).get()
    lab.until(lambda: (Workload.objects.get(id=second.id).reason or {})["code"] == "quota-used")
    assert lab.gated() == {"second"}
    assert given(lab) == placed(first)
    lab.work.kube.admin.delete(f"{lab.work.path}/pods/first")
    lab.until_state(second, State.RUNNING)
    eventually("it was given its own", lambda: given(lab) == placed(second))


def test_so_do_the_pods_of_a_job(lab: Lab) -> None:
    template(lab, "one")
    jobs = f"/apis/batch/v1/namespaces/{lab.work.namespace}/jobs"
    body: Json = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sweep"}}
    pods = {"parallelism": 3, "completions": 3, "template": {"spec": claiming(lab, "one")}}
    lab.work.editor.create(jobs, {**body, "spec": pods})
    eventually("its pods are there", lambda: len(lab.gated()) == 3)
    lab.turn()
    work = lab.only()
    lab.until_state(work, State.RUNNING)
    assert given(lab) == placed(work)
    assert len(set().union(*given(lab))) == 3
    assert sum(each.amount_milli for each in Placement.objects.filter(workload=work)) == 3000


def test_who_makes_the_template_larger_gets_what_is_charged(lab: Lab) -> None:
    """Whatever claim was made for the pod, its placement's takes the place of that."""
    template(lab, "one", count=3)
    bare(lab, "train", "one")
    eventually("a controller made its claim", lambda: len(claims(lab)) == 1)
    template(lab, "one", count=1)
    lab.turn()
    work = lab.only()
    template(lab, "one", count=3)
    lab.until_state(work, State.RUNNING)
    assert Placement.objects.get(workload=work).amount_milli == 1000
    assert given(lab) == placed(work)
    assert len(given(lab)[0]) == 1


REFUSED: dict[str, tuple[Json, str]] = {
    "all": ({"allocationMode": "All"}, "asks for all devices: say how many (ExactCount)."),
    "other class": ({"deviceClassName": "none"}, "There is no device class none."),
    "unclear class": ({"deviceClassName": "any"}, "does not say type == 'gpu'"),
    "unclear selector": (
        {"selectors": [{"cel": {"expression": "device.driver != 'tpu'"}}]},
        """selects by "device.driver != 'tpu'", which Berth can't read.""",
    ),
    "taints": ({"tolerations": [{"operator": "Exists"}]}, "sets tolerations: leave that out."),
    "slices": (
        {"deviceClassName": "mig"},
        "Of the devices that it claims none are flavors",
    ),
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_can_not_be_charged_stays_gated_and_is_told_why(lab: Lab, how: str) -> None:
    request, why = REFUSED[how]
    template(lab, "odd", **request)
    bare(lab, "train", "odd")
    lab.take_in()
    assert lab.gated() == {"train"}
    assert why in CaughtPod.objects.get().refusal


def test_so_does_what_names_a_template_that_is_not_there(lab: Lab) -> None:
    bare(lab, "train", "none")
    lab.take_in()
    assert CaughtPod.objects.get().refusal == "There is no template none for its claim gpu."
    template(lab, "none")
    lab.turn()
    lab.until_state(lab.only(), State.RUNNING)
