"""The policy of the printed manifest: in our namespaces, pods with our labels are Berth's."""

from typing import NamedTuple

import pytest

from clusters.adapters.kubernetes import manifests
from clusters.port import PRIORITIES, PodRequest
from tests.kube.api import MERGE_PATCH, Answer, Api, Json
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.editors import editor_of
from tests.kube.fixtures import RESIZE, AddNode, needs
from tests.kube.pods import Pods
from tests.waiting import eventually

STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class Change(NamedTuple):
    """A patch of a pod's spec, and whether ClusterRole edit has the right to it."""

    spec: Json
    subresource: str = ""
    by_an_editor: bool = True


def of_container(**fields: object) -> Json:
    return {"containers": [{"name": "main", **fields}]}


DEBUGGER = {
    "name": "debugger",
    "image": "example.test/debug:1",
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
}
TWICE = {"requests": {"cpu": "200m"}, "limits": {"cpu": "200m"}}
CHANGES = {
    "gate": Change({"schedulingGates": None}),
    "image": Change(of_container(image="example.test/miner:1")),
    "node": Change({"nodeSelector": {"kubernetes.io/hostname": "gpu-1"}}),
    "time limit": Change({"activeDeadlineSeconds": 1}),
    "ephemeral container": Change(
        {"ephemeralContainers": [DEBUGGER]}, "/ephemeralcontainers", by_an_editor=False
    ),
    "size": Change(of_container(resources=TWICE), "/resize", by_an_editor=False),
}


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
        del pod["spec"]["priorityClassName"]
        return pod

    def create(self, pod: Json) -> Answer:
        return self._kube.admin.call("POST", f"{self.path}/pods", pod)

    def label(self, name: str, labels: Json) -> Answer:
        body: Json = {"metadata": {"labels": labels}}
        path = f"{self.path}/pods/{name}"
        return self._kube.admin.call("PATCH", path, body, content_type=MERGE_PATCH)

    def change(self, name: str, change: Change, *, editor: Api) -> Answer:
        """What the editor is told, or an administrator where the editor has no right to it."""
        who = editor if change.by_an_editor else self._kube.admin
        path = f"{self.path}/pods/{name}{change.subresource}"
        return who.call("PATCH", path, {"spec": change.spec}, content_type=STRATEGIC_PATCH)


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


def test_nobody_else_makes_pods_of_its_priorities(project: Project) -> None:
    for priority in PRIORITIES:
        pod = project.foreign("other")
        pod["spec"]["priorityClassName"] = NAMES.priority_class(priority)
        answer = project.create(pod)
        assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
        assert "makes pods of the priorities of Berth's" in answer.body["message"]


def test_nor_through_its_status(control_plane: ControlPlane, project: Project) -> None:
    control_plane.berth.create(f"{project.path}/pods", project.pod("train"))
    for label, value in (("workload", "another"), ("installation", None)):
        body: Json = {"metadata": {"labels": {f"berth.dev/{label}": value}}}
        path = f"{project.path}/pods/train/status"
        answer = control_plane.admin.call("PATCH", path, body, content_type=MERGE_PATCH)
        assert answer.status == 403
        assert "gives pods the labels of Berth's installation" in answer.body["message"]


@pytest.fixture
def editor(control_plane: ControlPlane, project: Project) -> Api:
    """Somebody who is bound to ClusterRole edit in the project's namespace."""
    api = editor_of(control_plane, project.name)
    dry = f"{project.path}/pods?dryRun=All"
    eventually(
        "the editor may make pods",
        lambda: api.call("POST", dry, project.foreign("probe")).status == 201,
    )
    return api


@pytest.mark.parametrize("what", CHANGES)
def test_nobody_else_changes_its_spec(
    control_plane: ControlPlane, project: Project, editor: Api, what: str
) -> None:
    made = control_plane.berth.create(f"{project.path}/pods", project.pod("train"))
    if CHANGES[what].subresource == "/resize":
        needs(control_plane, *RESIZE)
    answer = project.change("train", CHANGES[what], editor=editor)
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert "berth-system:berth changes the spec of a pod of" in answer.body["message"]
    assert control_plane.admin.get(f"{project.path}/pods/train")["spec"] == made["spec"]


@pytest.mark.parametrize("what", CHANGES)
def test_pods_without_our_labels_are_changed_by_whoever_may(
    control_plane: ControlPlane, project: Project, editor: Api, what: str
) -> None:
    if CHANGES[what].subresource == "/resize":
        needs(control_plane, *RESIZE)
    assert project.create(project.foreign("other")).status == 201
    answer = project.change("other", CHANGES[what], editor=editor)
    assert answer.status == 200, answer.body


def test_an_editor_annotates_labels_and_deletes_it(
    control_plane: ControlPlane, project: Project, editor: Api
) -> None:
    control_plane.berth.create(f"{project.path}/pods", project.pod("train"))
    path = f"{project.path}/pods/train"
    noted: Json = {"metadata": {"annotations": {"seen": "yes"}, "labels": {"seen": "yes"}}}
    assert editor.call("PATCH", path, noted, content_type=MERGE_PATCH).status == 200
    whole = editor.get(path)
    whole["metadata"]["annotations"]["seen"] = "twice"
    del whole["metadata"]["resourceVersion"]  # the scheduler may write in between
    assert editor.call("PUT", path, whole).status == 200
    assert editor.call("DELETE", path).status == 200


def test_berth_opens_its_gate_the_scheduler_binds_it_and_its_kubelet_reports(
    control_plane: ControlPlane, project: Project, add_node: AddNode
) -> None:
    node = add_node()["metadata"]["name"]
    pods = Pods(control_plane, project.name)
    control_plane.berth.create(pods.path, project.pod("train"))
    pods.wait_for_reason("train", "SchedulingGated")
    assert pods.open_gate(pods.get("train"), node).status == 200
    assert pods.wait_for("train", "Running")["spec"]["nodeName"] == node
    control_plane.berth.delete(f"{pods.path}/train")
    eventually("it is gone", lambda: gone(control_plane, f"{pods.path}/train"))


def test_the_garbage_collector_takes_it(control_plane: ControlPlane, project: Project) -> None:
    admin, pods = control_plane.admin, f"{project.path}/pods"
    owner = admin.create(f"{project.path}/configmaps", {"metadata": {"name": "owner"}})
    owned = project.pod("owned")
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    ]
    control_plane.berth.create(pods, owned)
    admin.delete(f"{project.path}/configmaps/owner")
    eventually("it goes with its owner", lambda: gone(control_plane, f"{pods}/owned"))
    # The collector takes away the finalizer that this gives it.
    control_plane.berth.create(pods, project.pod("last"))
    admin.delete(f"{pods}/last?propagationPolicy=Foreground")
    eventually("it goes after what it owns", lambda: gone(control_plane, f"{pods}/last"))


def gone(kube: ControlPlane, path: str) -> bool:
    return kube.admin.call("GET", path).status == 404


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
