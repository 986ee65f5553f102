"""The contract of certain devices: what drivers publish, and pods that get these and no others."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count

import pytest

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.confinement import Confinement
from clusters.port import Change, ClusterError, Fault, PodPhase, PodReport
from clusters.published import Pin
from tests.contract.stage import Stage
from tests.kube import resource_slices as made
from tests.kube.resource_slices import DRIVER, PATH, Json
from tests.waiting import eventually

pytestmark = pytest.mark.part_simulator

_serial = count(1)


@dataclass
class Claimer:
    """An installation that may claim devices, on a node with what a driver publishes of it."""

    stage: Stage
    port: KubernetesCluster
    node: str
    namespace: str

    def publish(self, *bodies: Json) -> None:
        for body in bodies:
            self.stage.admin("POST", PATH, body)

    def pod(self, *pins: Pin) -> PodReport:
        """Born with its claim, behind its gate."""
        request = replace(self.stage.request(command=("sleep", "600")), pins=pins)
        return self.port.create_pod(request=replace(request, namespace=self.namespace))

    def open(self, pod: PodReport) -> PodReport:
        return self.port.open_gate(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            resource_version=pod.resource_version,
            hostname=self.node,
        )

    def becomes(self, pod: PodReport, phase: PodPhase) -> None:
        def there() -> bool:
            found = self.port.read_pod(namespace=pod.namespace, name=pod.name)
            return found is not None and found.phase is phase

        eventually(f"{pod.name} is {phase}", there)

    def claim(self, name: str) -> Json | None:
        path = f"/apis/resource.k8s.io/v1/namespaces/{self.namespace}/resourceclaims"
        found: list[Json] = self.stage.admin("GET", path)["items"]
        return next((each for each in found if each["metadata"]["name"] == name), None)

    def allocated(self, pod: PodReport) -> set[str]:
        """The names of the devices that its claim was given."""
        claim = self.claim(pod.name)
        assert claim is not None
        results = claim["status"]["allocation"]["devices"]["results"]
        assert {(each["driver"], each["pool"]) for each in results} == {(DRIVER, self.node)}
        return {each["device"] for each in results}

    def whole(self, nth: int) -> Pin:
        return Pin(DRIVER, made.uuid(self.node, nth))

    def piece(self, profile: str, start: int, nth: int = 0) -> Pin:
        return Pin(DRIVER, made.uuid(self.node, nth), profile, start)


@contextmanager
def _claimer(stage: Stage) -> Iterator[Claimer]:
    with stage.claiming() as port:
        node = stage.add_node(gpus=0)
        namespace = f"claims-{next(_serial)}"
        port.confine(wanted=Confinement(namespace))
        yield Claimer(stage, port, node, namespace)
        for pod in port.list_pods().items:
            if pod.namespace == namespace:
                port.delete_pod(namespace=namespace, name=pod.name, uid=pod.uid, grace_s=0)
        for each in port.list_resource_slices().items:
            if each.node == node:
                stage.admin("DELETE", f"{PATH}/{each.name}")


@pytest.fixture
def claimer(stage: Stage) -> Iterator[Claimer]:
    with _claimer(stage) as found:
        yield found


def test_what_drivers_publish_is_listed_and_followed(claimer: Claimer) -> None:
    node = claimer.node
    before = claimer.port.list_resource_slices()
    assert [each for each in before.items if each.node == node] == []
    with claimer.port.watch_resource_slices(resource_version=before.resource_version) as events:
        claimer.publish(made.published(node, [made.whole(node, 0)]))
        event = next(event for event in events if event.report and event.report.node == node)
    assert event.change is Change.UPSERT
    assert event.report is not None
    [device] = event.report.devices
    assert (device.uuid, device.model, device.memory_mib) == (
        made.uuid(node, 0),
        "H100-80GB-HBM3",
        81_920,
    )
    [listed] = [each for each in claimer.port.list_resource_slices().items if each.node == node]
    assert listed == event.report


def test_a_pod_gets_the_devices_that_it_is_pinned_to(claimer: Claimer) -> None:
    node = claimer.node
    claimer.publish(made.published(node, [made.whole(node, nth) for nth in range(4)]))
    one, two = claimer.pod(claimer.whole(2)), claimer.pod(claimer.whole(3), claimer.whole(1))
    for pod in (two, one):
        claimer.open(pod)
    for pod in (one, two):
        claimer.becomes(pod, PodPhase.RUNNING)
    assert claimer.allocated(one) == {"gpu-2"}
    assert claimer.allocated(two) == {"gpu-1", "gpu-3"}
    claims = {each.name: each for each in claimer.port.list_device_claims().items}
    assert claims[one.name].devices == ((DRIVER, node, "gpu-2"),)
    assert (claims[one.name].installation, claims[one.name].workload) == ("dra", one.workload)


def test_two_never_get_one_device(claimer: Claimer) -> None:
    node = claimer.node
    claimer.publish(made.published(node, [made.whole(node, nth) for nth in range(2)]))
    one, two = claimer.pod(claimer.whole(0)), claimer.pod(claimer.whole(0))
    claimer.open(one)
    claimer.becomes(one, PodPhase.RUNNING)
    claimer.open(two)
    claimer.becomes(two, PodPhase.UNSCHEDULABLE)
    claimer.port.delete_pod(namespace=one.namespace, name=one.name, uid=one.uid, grace_s=0)
    claimer.becomes(two, PodPhase.RUNNING)
    assert claimer.allocated(two) == {"gpu-0"}


def test_slices_of_one_device_are_cut_where_they_are_pinned(claimer: Claimer) -> None:
    claimer.publish(*made.cuttable(claimer.node))
    small, large = (
        claimer.pod(claimer.piece("1g.10gb", 2)),
        claimer.pod(claimer.piece("3g.40gb", 4)),
    )
    for pod in (small, large):
        claimer.open(pod)
    for pod in (small, large):
        claimer.becomes(pod, PodPhase.RUNNING)
    assert claimer.allocated(small) == {"gpu-0-mig-1g10gb-2"}
    assert claimer.allocated(large) == {"gpu-0-mig-3g40gb-4"}


def test_no_counter_is_taken_twice(claimer: Claimer) -> None:
    claimer.publish(*made.cuttable(claimer.node))
    first, beside = (
        claimer.pod(claimer.piece("1g.10gb", 2)),
        claimer.pod(claimer.piece("2g.20gb", 2)),
    )
    claimer.open(first)
    claimer.becomes(first, PodPhase.RUNNING)
    claimer.open(beside)
    claimer.becomes(beside, PodPhase.UNSCHEDULABLE)


def test_slices_that_are_cut_are_given_by_their_place(claimer: Claimer) -> None:
    node = claimer.node
    pieces = [made.piece(node, 0, "1g.10gb", start, cut=True) for start in (0, 1, 2)]
    claimer.publish(made.published(node, pieces))
    pod = claimer.pod(claimer.piece("1g.10gb", 1))
    claimer.open(pod)
    claimer.becomes(pod, PodPhase.RUNNING)
    assert claimer.allocated(pod) == {"gpu-0-mig-1g10gb-1"}


def test_a_second_request_changes_nothing(claimer: Claimer) -> None:
    request = replace(
        claimer.stage.request(), pins=(claimer.whole(0),), namespace=claimer.namespace
    )
    first = claimer.port.create_pod(request=request)
    claim = claimer.claim(request.name)
    assert claim is not None
    again = claimer.port.create_pod(request=request)
    assert (again.uid, claimer.claim(request.name)) == (first.uid, claim)
    assert [owner["uid"] for owner in claim["metadata"]["ownerReferences"]] == [first.uid]


def test_a_claim_that_got_lost_on_the_way_is_made_by_the_next_try(claimer: Claimer) -> None:
    request = replace(
        claimer.stage.request(), pins=(claimer.whole(0),), namespace=claimer.namespace
    )
    path = f"/apis/resource.k8s.io/v1/namespaces/{claimer.namespace}/resourceclaims"
    first = claimer.port.create_pod(request=request)
    claimer.stage.admin("DELETE", f"{path}/{request.name}")
    assert claimer.port.create_pod(request=request).uid == first.uid
    assert claimer.claim(request.name) is not None


def test_another_claim_of_that_name_is_a_conflict(claimer: Claimer) -> None:
    request = replace(
        claimer.stage.request(), pins=(claimer.whole(0),), namespace=claimer.namespace
    )
    path = f"/apis/resource.k8s.io/v1/namespaces/{claimer.namespace}/resourceclaims"
    claimer.stage.admin(
        "POST",
        path,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": request.name},
            "spec": {
                "devices": {
                    "requests": [{"name": "any", "exactly": {"deviceClassName": "berth-dra"}}]
                }
            },
        },
    )
    with pytest.raises(ClusterError) as raised:
        claimer.port.create_pod(request=request)
    assert raised.value.fault is Fault.CONFLICT


def test_the_claim_of_an_earlier_pod_is_waited_for(claimer: Claimer) -> None:
    request = replace(
        claimer.stage.request(), pins=(claimer.whole(0),), namespace=claimer.namespace
    )
    path = f"/apis/resource.k8s.io/v1/namespaces/{claimer.namespace}/resourceclaims"
    claimer.port.create_pod(request=request)
    left, other = claimer.claim(request.name), claimer.pod(claimer.whole(1))
    assert left is not None
    claimer.stage.admin("DELETE", f"{path}/{request.name}")
    metadata = {key: left["metadata"][key] for key in ("name", "labels", "annotations")}
    owner = left["metadata"]["ownerReferences"][0] | {"name": other.name, "uid": other.uid}
    left["metadata"] = metadata | {"ownerReferences": [owner]}
    claimer.port._client.call("POST", path, body=left)  # nobody else may
    with pytest.raises(ClusterError, match="of an earlier pod is still there") as raised:
        claimer.port.create_pod(request=request)
    assert raised.value.fault is Fault.SERVER


def test_the_claim_goes_with_its_pod(claimer: Claimer) -> None:
    node = claimer.node
    claimer.publish(made.published(node, [made.whole(node, 0)]))
    pod = claimer.pod(claimer.whole(0))
    assert claimer.claim(pod.name) is not None
    claimer.port.delete_pod(namespace=pod.namespace, name=pod.name, uid=pod.uid, grace_s=0)
    eventually("the claim is gone", lambda: claimer.claim(pod.name) is None)


def test_classes_of_devices_are_listed(claimer: Claimer) -> None:
    [own] = [each for each in claimer.port.read_device_classes() if each.name == "berth-dra"]
    assert own.resources == ("deviceclass.resource.kubernetes.io/berth-dra",)
    assert (own.selected, own.unclear != "") == (None, True)
