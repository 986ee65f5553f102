"""The policy of the printed manifest: in our namespaces, pods with our labels are Berth's."""

import pytest

from clusters.adapters.kubernetes import manifests
from clusters.port import PodRequest
from tests.kube.api import MERGE_PATCH, Answer, Json
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.waiting import eventually

pytestmark = pytest.mark.xdist_group("kube")


class Project:
    """A project's namespace, and what an administrator tries in it."""

    def __init__(self, kube: ControlPlane, name: str, path: str) -> None:
        self._kube = kube
        self.name = name
        self.path = path

    def pod(self, name: str) -> Json:
        """A pod exactly as Berth makes it."""
        request = PodRequest(
            namespace=self.name,
            name=name,
            workload="work",
            attempt=1,
            rank=0,
            image="example.test/train:1",
            command=("sleep", "600"),
            args=(),
            env=(),
            cpu_milli=100,
            memory_mib=64,
        )
        return manifests.pod(request, names=NAMES)

    def foreign(self, name: str) -> Json:
        pod = self.pod(name)
        pod["metadata"]["labels"] = {"app": "dashboard"}
        return pod

    def create(self, pod: Json) -> Answer:
        return self._kube.admin.call("POST", f"{self.path}/pods", pod)

    def label(self, name: str, labels: Json) -> Answer:
        body: Json = {"metadata": {"labels": labels}}
        path = f"{self.path}/pods/{name}"
        return self._kube.admin.call("PATCH", path, body, content_type=MERGE_PATCH)


@pytest.fixture
def project(control_plane: ControlPlane, namespace: str) -> Project:
    """Once the policy is in force there: the API server takes a moment to see it."""
    path = f"/api/v1/namespaces/{namespace}"
    ours = manifests.namespace(namespace, names=NAMES)
    control_plane.admin.do("PATCH", path, ours, content_type=MERGE_PATCH)
    found = Project(control_plane, namespace, path)
    dry = f"{path}/pods?dryRun=All"
    eventually(
        "the policy refuses somebody",
        lambda: control_plane.admin.call("POST", dry, found.pod("probe")).status == 403,
    )
    return found


def test_a_pod_that_passes_for_berths_is_refused_whoever_makes_it(project: Project) -> None:
    answer = project.create(project.pod("forged"))
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert "only system:serviceaccount:berth-system:berth gives pods" in answer.body["message"]


@pytest.mark.parametrize("label", ["installation", "workload", "attempt", "rank"])
def test_each_label_of_ours_is_berths_alone(project: Project, label: str) -> None:
    pod = project.foreign("forged")
    pod["metadata"]["labels"][f"berth.dev/{label}"] = "1"
    assert project.create(pod).status == 403


def test_berth_makes_it(control_plane: ControlPlane, project: Project) -> None:
    made = control_plane.berth.create(f"{project.path}/pods", project.pod("train"))
    assert made["metadata"]["labels"]["berth.dev/installation"] == "berth"


def test_nobody_else_gives_takes_or_changes_its_labels(
    control_plane: ControlPlane, project: Project
) -> None:
    control_plane.berth.create(f"{project.path}/pods", project.pod("train"))
    assert project.create(project.foreign("other")).status == 201
    assert project.label("other", {"berth.dev/workload": "work"}).status == 403
    assert project.label("train", {"berth.dev/workload": "another"}).status == 403
    assert project.label("train", {"berth.dev/installation": None}).status == 403
    assert project.label("train", {"seen": "yes"}).status == 200
    assert project.label("other", {"app": None}).status == 200  # no label is left


@pytest.fixture
def replica_set(project: Project) -> Json:
    pod = project.foreign("dashboard")
    del pod["spec"]["restartPolicy"], pod["spec"]["schedulingGates"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "dashboard"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "dashboard"}},
            "template": {"metadata": {"labels": {"app": "dashboard"}}, "spec": pod["spec"]},
        },
    }


def test_a_controller_of_a_namespace_goes_on_making_its_pods(
    control_plane: ControlPlane, project: Project, replica_set: Json
) -> None:
    sets = f"/apis/apps/v1/namespaces/{project.name}/replicasets"
    control_plane.admin.create(sets, replica_set)
    pods = f"{project.path}/pods?labelSelector=app%3Ddashboard"
    eventually("it made one", lambda: control_plane.admin.get(pods)["items"])
    control_plane.admin.delete(f"{sets}/dashboard")


def test_a_namespace_that_is_not_ours_is_not_our_business(
    control_plane: ControlPlane, project: Project
) -> None:
    elsewhere = control_plane.add_namespace()
    pod = project.pod("theirs")
    pod["metadata"]["namespace"] = elsewhere
    path = f"/api/v1/namespaces/{elsewhere}"
    assert control_plane.admin.call("POST", f"{path}/pods", pod).status == 201
    control_plane.admin.delete(f"{path}/pods/theirs?gracePeriodSeconds=0")
    control_plane.admin.delete(path)
