"""What a project's confinement holds back in a real cluster."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import pytest

from clusters.adapters.kubernetes import manifests
from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.client import Client
from clusters.confinement import Confinement
from clusters.port import ClusterError, Fault, PodPhase, PodRequest
from tests.kube.api import Api, Json
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.fixtures import AddNode
from tests.networks import LOOPBACK
from tests.waiting import eventually

_serial = count(1)
_GPU = "nvidia.com/gpu"


@pytest.fixture
def port(control_plane: ControlPlane) -> Iterator[KubernetesCluster]:
    client = Client(
        server=control_plane.server,
        identity=control_plane.berth_token,
        allowed=LOOPBACK,
        ca_pem=control_plane.ca_pem,
    )
    found = KubernetesCluster(client, names=NAMES)
    yield found
    found.close()


@pytest.fixture
def wanted(control_plane: ControlPlane, port: KubernetesCluster) -> Iterator[Confinement]:
    """In force: the project's pods may ask for four GPUs together."""
    found = Confinement(f"project-{next(_serial)}", ((_GPU, 4),))
    port.confine(wanted=found)
    _counted(control_plane, found)
    yield found
    space = f"/api/v1/namespaces/{found.namespace}"
    control_plane.admin.delete(f"{space}/pods?gracePeriodSeconds=0")
    control_plane.admin.delete(space)


def _counted(kube: ControlPlane, wanted: Confinement) -> None:
    """Wait until the quota controller has seen the quota: the API server goes by its word."""
    path = f"/api/v1/namespaces/{wanted.namespace}/resourcequotas/{NAMES.own}"
    hard = {f"requests.{name}": str(most) for name, most in wanted.limits}
    eventually("the quota is counted", lambda: kube.admin.get(path)["status"].get("hard") == hard)


def request(wanted: Confinement, name: str, gpus: int) -> PodRequest:
    return PodRequest(
        namespace=wanted.namespace,
        name=name,
        workload=name,
        attempt=1,
        rank=0,
        image="example.test/train:1",
        command=("sleep", "1"),
        args=(),
        env=(),
        cpu_milli=100,
        memory_mib=64,
        resources=((_GPU, gpus),) if gpus else (),
    )


def refused(port: KubernetesCluster, asked: PodRequest) -> ClusterError:
    with pytest.raises(ClusterError) as call:
        port.create_pod(request=asked)
    return call.value


def test_more_than_the_wall_is_refused_until_it_is_raised(
    control_plane: ControlPlane, port: KubernetesCluster, wanted: Confinement
) -> None:
    port.create_pod(request=request(wanted, "three", 3))
    error = refused(port, request(wanted, "two", 2))
    assert error.fault is Fault.QUOTA
    assert "exceeded quota: berth, requested: requests.nvidia.com/gpu=2" in str(error)
    port.create_pod(request=request(wanted, "none", 0))  # cores are no part of it
    raised = replace(wanted, limits=((_GPU, 5),))
    port.confine(wanted=raised)
    _counted(control_plane, raised)

    def gated() -> bool:
        try:
            return port.create_pod(request=request(wanted, "two", 2)).phase is PodPhase.GATED
        except ClusterError as error:  # the API server may go by an older word a moment longer
            if error.fault is not Fault.QUOTA:
                raise
            return False

    eventually("the raised wall lets it in", gated)


def test_a_wall_that_is_lowered_leaves_what_is_there(
    control_plane: ControlPlane, port: KubernetesCluster, wanted: Confinement
) -> None:
    port.create_pod(request=request(wanted, "three", 3))
    lowered = replace(wanted, limits=((_GPU, 1),))
    port.confine(wanted=lowered)
    _counted(control_plane, lowered)
    assert port.read_pod(namespace=wanted.namespace, name="three") is not None
    assert refused(port, request(wanted, "one", 1)).fault is Fault.QUOTA


def test_what_has_ended_makes_room_below_it(
    port: KubernetesCluster, wanted: Confinement, add_node: AddNode
) -> None:
    node = add_node()["metadata"]["name"]
    born = port.create_pod(request=request(wanted, "first", 4))
    port.open_gate(
        namespace=born.namespace,
        name=born.name,
        uid=born.uid,
        resource_version=born.resource_version,
        hostname=node,
    )

    refusals: list[Fault] = []

    def made() -> bool:
        try:
            port.create_pod(request=request(wanted, "second", 4))
        except ClusterError as error:
            refusals.append(error.fault)
            return False
        return True

    eventually("the second is made once the first has ended", made)
    assert set(refusals) <= {Fault.QUOTA}


def foreign(wanted: Confinement, name: str, gpus: int = 0) -> Json:
    """A pod of somebody else that Pod Security lets in."""
    pod = manifests.pod(request(wanted, name, gpus), names=NAMES)
    pod["metadata"]["labels"] = {"app": "dashboard"}
    del pod["spec"]["priorityClassName"]
    return pod


def test_pods_of_others_are_no_part_of_it(
    control_plane: ControlPlane, port: KubernetesCluster, wanted: Confinement
) -> None:
    pods = f"/api/v1/namespaces/{wanted.namespace}/pods"
    assert control_plane.admin.call("POST", pods, foreign(wanted, "big", 64)).status == 201
    port.create_pod(request=request(wanted, "four", 4))


def privileged(pod: Json) -> None:
    pod["spec"]["containers"][0]["securityContext"] = {"privileged": True}


def host_path(pod: Json) -> None:
    pod["spec"]["volumes"] = [{"name": "root", "hostPath": {"path": "/"}}]


def host_network(pod: Json) -> None:
    pod["spec"]["hostNetwork"] = True


@pytest.mark.parametrize("worsen", [privileged, host_path, host_network])
def test_a_pod_that_would_leave_its_machine_is_refused(
    control_plane: ControlPlane, wanted: Confinement, worsen: Callable[[Json], None]
) -> None:
    pods = f"/api/v1/namespaces/{wanted.namespace}/pods"
    pod = foreign(wanted, "leaving")
    assert control_plane.admin.call("POST", f"{pods}?dryRun=All", pod).status == 201
    worsen(pod)
    answer = control_plane.admin.call("POST", pods, pod)
    assert answer.status == 403
    assert 'violates PodSecurity "restricted:latest"' in answer.body["message"]


def test_its_pods_account_may_do_no_more_than_anybody(
    control_plane: ControlPlane, wanted: Confinement
) -> None:
    space = f"/api/v1/namespaces/{wanted.namespace}"
    accounts = f"{space}/serviceaccounts"
    control_plane.admin.create(accounts, {"metadata": {"name": "nobody"}})
    assert _rules(control_plane, wanted, "nobody") == _rules(
        control_plane, wanted, NAMES.workload_account
    )
    resources, _ = _rules(control_plane, wanted, NAMES.workload_account)
    assert {name for _, names in resources for name in names} == {
        "selfsubjectaccessreviews",
        "selfsubjectrulesreviews",
        "selfsubjectreviews",
    }
    pod = manifests.pod(request(wanted, "train", 1), names=NAMES)
    assert pod["spec"]["automountServiceAccountToken"] is False


def _rules(
    kube: ControlPlane, wanted: Confinement, account: str
) -> tuple[list[tuple[list[str], list[str]]], list[Json]]:
    """As `kubectl auth can-i --list` says it of that account: verbs with resources, and paths.
    Sorted, for the server answers in whatever order its cache holds the bindings."""
    path = f"/api/v1/namespaces/{wanted.namespace}/serviceaccounts/{account}/token"
    token = kube.admin.create(path, {"spec": {}})["status"]["token"]
    answer = Api(kube.server, kube.ca_pem, token).create(
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        {"spec": {"namespace": wanted.namespace}},
    )
    status = answer["status"]
    resources = sorted((rule["verbs"], rule["resources"]) for rule in status["resourceRules"])
    return resources, sorted(status["nonResourceRules"], key=str)
