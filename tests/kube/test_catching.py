"""`cluster_manifest --catch`, or `--catch-url`: what others make in our namespaces waits (R5)."""

from collections.abc import Iterator

import pytest

from tests.kube.api import Answer, Json
from tests.kube.control_plane import ControlPlane
from tests.kube.fixtures import CLAIMS, RESIZE, needs
from tests.kube.hooking import serving
from tests.kube.work import Work, catches, work_in
from tests.waiting import eventually

GATES = [{"name": "berth.dev/placed"}]


@pytest.fixture(scope="module", params=["policy", "hook"])
def policies(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[None]:
    """In force, where pods are changed by a policy, and where by Berth's webhook."""
    if request.param == "policy":
        with catches(control_plane):
            yield
    else:
        with serving() as hook, catches(control_plane, hook=hook):
            yield


@pytest.fixture
def work(control_plane: ControlPlane, namespace: str, policies: None) -> Work:
    return work_in(control_plane, namespace)


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
    end = work.namespace.rpartition("-")[2]
    refused(work.create(work.pod("train", queue=end)), saying="names another project")
    assert work.create(work.pod("train", queue=work.namespace)).status == 201


def test_a_claim_that_others_may_share_is_refused(work: Work) -> None:
    needs(work.kube, *CLAIMS)
    pod = work.pod("train", gpus=0)
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "one"}]
    refused(work.create(pod), saying="name a template of claims (resourceClaimTemplateName)")


def test_who_claims_devices_by_a_template_is_caught(work: Work) -> None:
    needs(work.kube, *CLAIMS)
    pod = work.pod("train", gpus=0)
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    assert is_caught(work.create(pod).body, creator=editor(work))


def test_nobody_changes_which_claims_it_has_once_it_is_to_run(work: Work) -> None:
    needs(work.kube, *CLAIMS)
    pod = work.pod("train", gpus=0)
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    work.create(pod)

    def claims(name: str) -> Answer:
        told = {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]}}
        return work.patch("train", told, subresource="/status", by=work.kube.admin)

    assert claims("made-for-it").status == 200
    labels = {"metadata": {"labels": {"berth.dev/workload": "w"}}}
    assert work.patch("train", labels, by=work.kube.berth).status == 200
    refused(claims("another"), saying="changes which resource claims a pod has")


def test_who_asks_by_a_class_of_devices_is_caught(work: Work) -> None:
    pod = work.pod("train", gpus=0)
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    limits["deviceclass.resource.kubernetes.io/gpu.example.test"] = "1"
    assert is_caught(work.create(pod).body, creator=editor(work))


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
    if subresource == "/resize":
        needs(work.kube, *RESIZE)
    answer = work.patch("train", {"spec": spec}, subresource=subresource, by=work.kube.admin)
    refused(answer, saying="changes the spec of a pod that waits")
    assert work.get("train")["spec"] == made["spec"]


VISIBLE = "NVIDIA_VISIBLE_DEVICES"


@pytest.mark.parametrize("gpus", [0, 1])
def test_a_container_without_a_device_sees_none_whatever_its_image_says(
    work: Work, gpus: int
) -> None:
    pod = work.pod("train", gpus=gpus)
    [container] = pod["spec"]["containers"]
    said = [{"name": "A", "value": "b"}, {"name": "A", "value": "c"}]
    blind: Json = {**container, "resources": {}, "env": said}
    pod["spec"]["containers"].append(blind | {"name": "logs"})
    pod["spec"]["initContainers"] = [blind | {"name": "first"}]
    answer = work.create(pod)
    assert answer.status == 201, answer.body
    spec = answer.body["spec"]
    envs = {one["name"]: one.get("env") for one in spec["containers"] + spec["initContainers"]}
    void = {"name": VISIBLE, "value": "void"}
    main = None if gpus else [void]
    assert envs == {"main": main, "logs": [*said, void], "first": [*said, void]}
    assert [one["image"] for one in spec["containers"]] == ["example.test/train:1"] * 2


SEES: dict[str, Json] = {
    "all": {"value": "all"},
    "what another says": {"valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}},
}


@pytest.mark.parametrize("how", SEES)
@pytest.mark.parametrize("gpus", [0, 1])
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_no_container_says_itself_which_devices_it_sees(
    work: Work, field: str, gpus: int, how: str
) -> None:
    pod = work.pod("train", gpus=gpus)
    [container] = pod["spec"]["containers"]
    seeing = container | {"name": "seeing", "env": [{"name": VISIBLE, **SEES[how]}]}
    pod["spec"].setdefault(field, []).append(seeing)
    refused(work.create(pod), saying=f"a container sets {VISIBLE}")


OTHERS_GATE = {"name": "example.test/storage"}


def gone(gate: Json) -> Json:
    return {"schedulingGates": [gate | {"$patch": "delete"}]}


def gated_twice(work: Work) -> None:
    pod = work.pod("train")
    pod["spec"]["schedulingGates"] = [OTHERS_GATE]
    assert work.create(pod).status == 201


def test_whose_gate_stands_beside_takes_it_away(work: Work) -> None:
    gated_twice(work)
    answer = work.patch("train", {"spec": gone(OTHERS_GATE)})
    assert answer.status == 200, answer.body
    assert work.get("train")["spec"]["schedulingGates"] == GATES


@pytest.mark.parametrize("what", ["gate", "image", "node", "time limit"])
def test_and_changes_nothing_else_by_the_way(work: Work, what: str) -> None:
    gated_twice(work)
    spec, _ = CHANGES[what]
    gates = gone(OTHERS_GATE)["schedulingGates"] + spec.get("schedulingGates", [])
    body: Json = {"spec": {**spec, "schedulingGates": gates}}
    refused(work.patch("train", body), saying="changes the spec of a pod that waits")


def test_an_editor_labels_and_deletes_it(work: Work) -> None:
    work.create(work.pod("train"))
    assert work.patch("train", {"metadata": {"labels": {"seen": "yes"}}}).status == 200
    assert work.editor.call("DELETE", f"{work.path}/pods/train").status == 200
