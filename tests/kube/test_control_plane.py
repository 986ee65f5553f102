"""What Berth relies on in Kubernetes, checked on the real thing over plain HTTPS and JSON."""

from itertools import product

import pytest

from tests.kube import binaries
from tests.kube.api import MERGE_PATCH, Json
from tests.kube.control_plane import ControlPlane
from tests.kube.fixtures import AddNode
from tests.kube.pods import GATE, Pods, condition, ended, seconds
from tests.waiting import eventually


@pytest.fixture
def pods(control_plane: ControlPlane, namespace: str) -> Pods:
    return Pods(control_plane, namespace)


def name_of(node: Json) -> str:
    return str(node["metadata"]["name"])


def test_it_is_the_pinned_version(control_plane: ControlPlane) -> None:
    assert control_plane.admin.get("/version")["gitVersion"] == binaries.version()


def test_a_node_carries_the_labels_and_resources_of_gpu_feature_discovery(
    add_node: AddNode,
) -> None:
    node = add_node(gpus=6, mig={"1g.10gb": 7, "3g.40gb": 2})
    labels = node["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert labels["nvidia.com/gpu.memory"] == "81559"
    assert labels["nvidia.com/gpu.count"] == "8"
    assert labels["nvidia.com/mig.strategy"] == "mixed"
    assert labels["nvidia.com/mig-1g.10gb.count"] == "7"
    for side in ("capacity", "allocatable"):
        assert node["status"][side]["nvidia.com/gpu"] == "6"
        assert node["status"][side]["nvidia.com/mig-1g.10gb"] == "7"
        assert node["status"][side]["nvidia.com/mig-3g.40gb"] == "2"


def test_a_gated_pod_stays_gated_although_it_would_fit(pods: Pods, add_node: AddNode) -> None:
    node = add_node()
    pods.create_gated("waiting", gpu=1)
    pods.wait_for_reason("waiting", "SchedulingGated")
    # A pod that came later and was opened runs: the scheduler has passed the gated one by.
    pods.start("later", node, gpu=1)
    pods.wait_for("later", "Running")
    waiting = pods.get("waiting")
    assert condition(waiting, "PodScheduled")["reason"] == "SchedulingGated"
    assert "nodeName" not in waiting["spec"]


def test_one_patch_opens_the_gate_and_the_scheduler_binds_the_pod_to_the_node_it_names(
    pods: Pods, add_node: AddNode
) -> None:
    add_node()
    chosen = add_node()
    add_node()
    pods.start("train", chosen, gpu=8)
    running = pods.wait_for("train", "Running")
    assert running["spec"]["nodeName"] == name_of(chosen)
    assert "schedulingGates" not in running["spec"]


def test_a_stale_resource_version_is_a_conflict_and_the_gate_stays_shut(
    pods: Pods, add_node: AddNode
) -> None:
    node = add_node()
    before = pods.create_gated("train", gpu=1)
    label = {"metadata": {"labels": {"berth.dev/attempt": "1"}}}
    pods.api.do("PATCH", f"{pods.path}/train", label, content_type=MERGE_PATCH)
    answer = pods.open_gate(before, name_of(node))
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert pods.get("train")["spec"]["schedulingGates"] == [{"name": GATE}]


def test_a_wrong_uid_is_invalid_and_the_gate_stays_shut(pods: Pods, add_node: AddNode) -> None:
    node = add_node()
    pod = pods.create_gated("train", gpu=1)
    pods.wait_for_reason("train", "SchedulingGated")
    other = "00000000-0000-4000-8000-000000000000"
    answer = pods.open_gate(pods.get("train"), name_of(node), uid=other)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert "field is immutable" in answer.body["message"]
    after = pods.get("train")
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]
    assert after["spec"]["schedulingGates"] == [{"name": GATE}]


def test_of_three_four_gpu_pods_on_eight_gpus_two_bind_and_the_third_says_why_not(
    pods: Pods, add_node: AddNode
) -> None:
    node = add_node(gpus=8)
    for name in ("first", "second", "third"):
        pods.start(name, node, gpu=4)
    pods.wait_for("first", "Running")
    pods.wait_for("second", "Running")
    refused = pods.wait_for_reason("third", "Unschedulable")
    assert refused["status"] == "False"
    assert "Insufficient nvidia.com/gpu" in refused["message"]
    assert "nodeName" not in pods.get("third")["spec"]


def test_a_pod_that_sleeps_runs_for_that_long_and_succeeds(pods: Pods, add_node: AddNode) -> None:
    pods.start("train", add_node(), gpu=1, command=["sleep", "2"])
    pods.wait_for("train", "Running")
    state = ended(pods.wait_for("train", "Succeeded"))
    assert (state["exitCode"], state["reason"]) == (0, "Completed")
    assert 2 <= seconds(state) < 10


def test_a_change_of_a_sleeping_pod_does_not_make_it_sleep_longer(
    pods: Pods, add_node: AddNode
) -> None:
    pods.start("train", add_node(), gpu=1, command=["sleep", "3"])
    pods.wait_for("train", "Running")

    def touched_to_the_end() -> Json | None:
        label = {"metadata": {"labels": {"berth.dev/touched": str(next(touches))}}}
        pod = pods.api.do("PATCH", f"{pods.path}/train", label, content_type=MERGE_PATCH)
        return pod if pod["status"]["phase"] == "Succeeded" else None

    touches = iter(range(1_000))
    over = eventually("the pod succeeds while it is touched", touched_to_the_end, every_s=0.4)
    assert 3 <= seconds(ended(over)) < 10


def test_a_pod_whose_command_fails_ends_with_exit_code_one(pods: Pods, add_node: AddNode) -> None:
    pods.start("train", add_node(), gpu=1, command=["false"])
    state = ended(pods.wait_for("train", "Failed"))
    assert (state["exitCode"], state["reason"]) == (1, "Error")


def test_the_gpus_of_a_deleted_pod_are_free_again(pods: Pods, add_node: AddNode) -> None:
    node = add_node(gpus=8)
    pods.start("old", node, gpu=8)
    pods.wait_for("old", "Running")
    pods.api.delete(f"{pods.path}/old")
    pods.start("new", node, gpu=8)
    pods.wait_for("new", "Running")
    assert pods.api.call("GET", f"{pods.path}/old").status == 404


def test_a_node_with_mig_slices_takes_a_pod_that_asks_for_one(
    pods: Pods, add_node: AddNode
) -> None:
    node = add_node(gpus=0, mig={"1g.10gb": 1})
    pods.start("small", node, **{"mig-1g.10gb": 1})
    pods.start("too-many", node, **{"mig-1g.10gb": 1})
    assert pods.wait_for("small", "Running")["spec"]["nodeName"] == name_of(node)
    refused = pods.wait_for_reason("too-many", "Unschedulable")
    assert "Insufficient nvidia.com/mig-1g.10gb" in refused["message"]


def test_berths_role_allows_what_berth_does(control_plane: ControlPlane, namespace: str) -> None:
    berth, inside = control_plane.berth, f"/api/v1/namespaces/{namespace}"
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "gang"},
        "spec": {"clusterIP": "None", "selector": {"berth.dev/workload": "gang"}},
    }
    made: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{namespace}-b"}}
    label = {"metadata": {"labels": {"berth.dev/project": "p"}}}
    berth.get("/api/v1/nodes")
    berth.get("/api/v1/pods?limit=1")
    berth.create("/api/v1/namespaces", made)
    berth.do("PATCH", f"/api/v1/namespaces/{namespace}-b", label, content_type=MERGE_PATCH)
    berth.create(f"{inside}/services", service)
    berth.get(f"{inside}/services/gang")
    control_plane.admin.delete(f"/api/v1/namespaces/{namespace}-b")


def test_berths_role_holds_these_rights_and_no_others(
    control_plane: ControlPlane, namespace: str
) -> None:
    review = control_plane.berth.create(
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": namespace}}
    )
    rights: dict[str, set[str]] = {}
    for rule in review["status"]["resourceRules"]:
        for group, resource in product(rule["apiGroups"], rule["resources"]):
            rights.setdefault(f"{group}/{resource}", set()).update(rule["verbs"])
    asking_about_oneself = {key for key in rights if "k8s.io/selfsubject" in key}
    assert {key: rights[key] for key in rights.keys() - asking_about_oneself} == {
        "/nodes": {"list", "watch"},
        "/pods": {"get", "list", "watch", "create", "patch", "delete"},
        "/namespaces": {"get", "create", "patch"},
        "/services": {"get", "create", "delete"},
        "/serviceaccounts": {"get", "create", "patch"},
        "/limitranges": {"get", "create", "patch"},
        "/resourcequotas": {"get", "create", "patch"},
        "networking.k8s.io/networkpolicies": {"get", "create", "patch"},
        "scheduling.k8s.io/priorityclasses": {"get"},
    }


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/namespaces/kube-system/secrets/any"),
        ("GET", "/api/v1/namespaces/{namespace}/pods/any/log"),
        ("POST", "/api/v1/namespaces/{namespace}/pods/any/exec?command=id"),
        ("POST", "/api/v1/namespaces/{namespace}/pods/any/binding"),
        ("DELETE", "/api/v1/namespaces/{namespace}/pods"),
        ("DELETE", "/api/v1/namespaces/{namespace}/resourcequotas/any"),
        ("POST", "/api/v1/namespaces/{namespace}/serviceaccounts/any/token"),
        ("DELETE", "/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies/any"),
        ("DELETE", "/api/v1/nodes/any"),
    ],
)
def test_berth_is_refused_what_it_has_no_right_to(
    control_plane: ControlPlane, namespace: str, method: str, path: str
) -> None:
    body: Json | None = None if method == "GET" else {}
    answer = control_plane.berth.call(
        method, path.format(namespace=namespace), body, content_type=MERGE_PATCH
    )
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
