"""`cluster_manifest --catch`: what others make in our namespaces waits for Berth (R5)."""

from collections.abc import Iterator

import pytest

from clusters.adapters.kubernetes import catching, manifests
from tests.kube.api import MERGE_PATCH, Answer, Api, Json
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.editors import editor_of
from tests.kube.manifests import apply, remove
from tests.kube.waiting import eventually

pytestmark = pytest.mark.xdist_group("kube")

STRATEGIC_PATCH = "application/strategic-merge-patch+json"
BERTH = "system:serviceaccount:berth-system:berth"
GATES = [{"name": "berth.dev/placed"}]


@pytest.fixture(scope="module")
def policies(control_plane: ControlPlane) -> Iterator[None]:
    documents = catching.documents(names=NAMES, user=BERTH)
    apply(control_plane.admin, documents)
    yield
    remove(control_plane.admin, documents)


class Work:
    """What an editor of a project's namespace makes there, and then tries."""

    def __init__(self, kube: ControlPlane, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace
        self.path = f"/api/v1/namespaces/{namespace}"
        self.editor = editor_of(kube, namespace)

    def pod(self, name: str, *, gpus: int = 1, **labels: str) -> Json:
        """A pod as the namespace admits it: nothing in it is of Berth."""
        limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": {f"berth.dev/{key}": value for key, value in labels.items()},
            },
            "spec": {
                "restartPolicy": "Never",
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 1000,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [
                    {
                        "name": "main",
                        "image": "example.test/train:1",
                        "command": ["sleep", "600"],
                        "resources": {"limits": limits, "requests": {"cpu": "100m"}},
                        "securityContext": {
                            "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }
                ],
            },
        }

    def create(self, pod: Json, *, by: Api | None = None) -> Answer:
        return (by or self.editor).call("POST", f"{self.path}/pods", pod)

    def patch(
        self, name: str, body: Json, *, subresource: str = "", by: Api | None = None
    ) -> Answer:
        path = f"{self.path}/pods/{name}{subresource}"
        return (by or self.editor).call("PATCH", path, body, content_type=STRATEGIC_PATCH)

    def get(self, name: str) -> Json:
        return self.kube.admin.get(f"{self.path}/pods/{name}")


@pytest.fixture
def work(control_plane: ControlPlane, namespace: str, policies: None) -> Work:
    """Once the policies are in force there: the API server takes a moment to see them."""
    ours = manifests.namespace(namespace, names=NAMES)
    path = f"/api/v1/namespaces/{namespace}"
    control_plane.admin.do("PATCH", path, ours, content_type=MERGE_PATCH)
    work = Work(control_plane, namespace)
    dry = f"{path}/pods?dryRun=All"

    def tried(**labels: str) -> Answer:
        return work.editor.call("POST", dry, work.pod("probe", gpus=1, **labels))

    eventually("an editor may make pods", lambda: tried().status == 201)
    eventually("they are gated", lambda: "schedulingGates" in tried().body["spec"])
    eventually("one policy refuses", lambda: tried(queue="another").status == 403)
    return work


def refused(answer: Answer, *, saying: str) -> None:
    assert (answer.status, answer.body.get("reason")) == (403, "Forbidden"), answer.body
    assert saying in answer.body["message"]


def is_caught(pod: Json, *, creator: str) -> bool:
    metadata = pod["metadata"]
    return bool(
        pod["spec"].get("schedulingGates") == GATES
        and metadata["labels"].get("berth.dev/caught") == "berth"
        and metadata["annotations"]["berth.dev/created-by"] == creator
    )


def editor(work: Work) -> str:
    return f"system:serviceaccount:{work.namespace}:editor"


def test_a_pod_with_the_queue_label_is_gated_and_says_who_made_it(work: Work) -> None:
    answer = work.create(work.pod("train", gpus=0, queue=""))
    assert answer.status == 201, answer.body
    assert is_caught(answer.body, creator=editor(work))


def test_so_is_one_that_leaves_the_label_off_and_asks_for_a_device(work: Work) -> None:
    assert is_caught(work.create(work.pod("train")).body, creator=editor(work))


def test_so_is_one_whose_init_container_asks_for_it(work: Work) -> None:
    pod = work.pod("train")
    [container] = pod["spec"]["containers"]
    pod["spec"]["initContainers"] = [container | {"name": "first"}]
    pod["spec"]["containers"] = [container | {"resources": {}}]
    assert is_caught(work.create(pod).body, creator=editor(work))


def test_a_pod_that_asks_for_neither_is_nobodys_business(work: Work) -> None:
    made = work.create(work.pod("notebook", gpus=0)).body
    assert "schedulingGates" not in made["spec"]
    assert "berth.dev/caught" not in made["metadata"].get("labels", {})


def test_what_berth_makes_is_not_caught(work: Work) -> None:
    made = work.create(work.pod("train", workload="w"), by=work.kube.berth).body
    assert "berth.dev/caught" not in made["metadata"]["labels"]


def test_it_is_gated_beside_a_gate_of_somebody_else(work: Work) -> None:
    pod = work.pod("train")
    pod["spec"]["schedulingGates"] = [{"name": "example.test/storage"}]
    gates = work.create(pod).body["spec"]["schedulingGates"]
    assert gates == [{"name": "example.test/storage"}, *GATES]


def test_pods_that_a_job_makes_are_caught(work: Work) -> None:
    pod = work.pod("unused")
    job: Json = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"parallelism": 2, "completions": 2, "template": {"spec": pod["spec"]}},
    }
    work.editor.create(f"/apis/batch/v1/namespaces/{work.namespace}/jobs", job)
    pods = f"{work.path}/pods?labelSelector=job-name%3Dtrain"
    eventually("it made both", lambda: len(work.kube.admin.get(pods)["items"]) == 2)
    for made in work.kube.admin.get(pods)["items"]:
        assert is_caught(made, creator="system:serviceaccount:kube-system:job-controller")


def test_nobody_forges_the_label_or_who_made_it(work: Work) -> None:
    refused(work.create(work.pod("forged", gpus=0, caught="berth")), saying="no other pod does")
    pod = work.pod("train", caught="another")
    pod["metadata"]["annotations"] = {"berth.dev/created-by": "system:admin"}
    assert is_caught(work.create(pod).body, creator=editor(work))


def test_a_pod_that_names_its_node_is_refused(work: Work) -> None:
    pod = work.pod("train")
    pod["spec"]["nodeName"] = "gpu-1"
    answer = work.create(pod)
    assert answer.status == 422
    assert "cannot be set until all schedulingGates have been cleared" in answer.body["message"]


def test_the_queue_label_names_its_own_project_or_none(work: Work) -> None:
    refused(work.create(work.pod("train", queue="another")), saying="names another project")
    assert work.create(work.pod("train", queue=work.namespace)).status == 201


LABELS: Json = {"caught": None, "queue": "", "priority": "urgent"}


@pytest.mark.parametrize("label", LABELS)
def test_nobody_changes_its_labels(work: Work, label: str) -> None:
    work.create(work.pod("train", priority="low"))
    body: Json = {"metadata": {"labels": {f"berth.dev/{label}": LABELS[label]}}}
    refused(work.patch("train", body), saying="changes what a pod that waits")
    through_status = work.patch("train", body, subresource="/status", by=work.kube.admin)
    refused(through_status, saying="changes what a pod that waits")


@pytest.mark.parametrize("annotation", ["gang", "gang-size", "flavors", "created-by"])
def test_nobody_changes_what_it_says_of_its_gang(work: Work, annotation: str) -> None:
    work.create(work.pod("train"))
    body: Json = {"metadata": {"annotations": {f"berth.dev/{annotation}": "2"}}}
    refused(work.patch("train", body), saying="changes what a pod that waits")


def test_a_pod_that_was_not_caught_is_not_made_to_look_so(work: Work) -> None:
    work.create(work.pod("notebook", gpus=0))
    body: Json = {"metadata": {"labels": {"berth.dev/caught": "berth"}}}
    refused(work.patch("notebook", body), saying="changes what a pod that waits")


def of_container(**fields: object) -> Json:
    return {"containers": [{"name": "main", **fields}]}


DEBUGGER = {
    "name": "debugger",
    "image": "example.test/debug:1",
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
}
CHANGES: dict[str, tuple[Json, str]] = {
    "gate": ({"schedulingGates": [{"name": GATES[0]["name"], "$patch": "delete"}]}, ""),
    "image": (of_container(image="example.test/miner:1"), ""),
    "node": ({"nodeSelector": {"kubernetes.io/hostname": "gpu-1"}}, ""),
    "time limit": ({"activeDeadlineSeconds": 1}, ""),
    "ephemeral container": ({"ephemeralContainers": [DEBUGGER]}, "/ephemeralcontainers"),
    "size": (of_container(resources={"requests": {"cpu": "200m"}}), "/resize"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_nobody_changes_its_spec(work: Work, what: str) -> None:
    made = work.create(work.pod("train")).body
    spec, subresource = CHANGES[what]
    answer = work.patch("train", {"spec": spec}, subresource=subresource, by=work.kube.admin)
    refused(answer, saying="changes the spec of a pod that waits")
    assert work.get("train")["spec"] == made["spec"]


def test_an_editor_labels_and_deletes_it(work: Work) -> None:
    work.create(work.pod("train"))
    assert work.patch("train", {"metadata": {"labels": {"seen": "yes"}}}).status == 200
    assert work.editor.call("DELETE", f"{work.path}/pods/train").status == 200
