"""What Berth relies on in a cluster: the simulator and a real Kubernetes have to agree on it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from clusters.confinement import Confinement
from clusters.port import ClusterError, Fault, NodeReport, PodPhase, PodReport
from tests.contract.stage import ENDED, Stage
from tests.kube import binaries
from tests.waiting import eventually


def refused(call: pytest.ExceptionInfo[ClusterError]) -> Fault:
    return call.value.fault


def node_of(stage: Stage, name: str) -> NodeReport:
    return next(node for node in stage.port.list_nodes().items if node.name == name)


def test_it_says_its_version_and_whether_it_is_simulated(stage: Stage) -> None:
    version = stage.port.version()
    pinned = "v1.36.3" if stage.simulated else binaries.version()
    assert version.version.startswith(pinned)
    assert version.simulated is stage.simulated


def test_a_node_shows_its_devices_and_the_slices_it_advertises(stage: Stage) -> None:
    node = node_of(stage, stage.add_node(gpus=6, mig={"1g.10gb": 7, "3g.40gb": 2}))
    assert (node.ready, node.schedulable, node.hostname) == (True, True, node.name)
    assert (node.cpu_milli, node.memory_mib) == (96_000, 1_048_576)
    assert [device.mode for device in node.devices] == ["mig-static"] * 2 + ["whole"] * 6
    assert {(device.model, device.memory_mib) for device in node.devices} == {
        ("H100-80GB-HBM3", 81_559)
    }
    assert node.mig_counts == {"1g.10gb": 7, "3g.40gb": 2}


def test_a_pod_is_born_gated_and_stays_so_although_it_would_fit(stage: Stage) -> None:
    node = stage.add_node()
    request = stage.request(gpu=1)
    born = stage.port.create_pod(request=request)
    assert (born.phase, born.node, born.started_at) == (PodPhase.GATED, "", None)
    assert (born.installation, born.workload, born.attempt, born.rank) == (
        "berth",
        request.workload,
        1,
        0,
    )
    assert (born.cpu_milli, born.memory_mib) == (1000, 512)
    assert born.resources == (("nvidia.com/gpu", 1),)
    # A pod that came later and was opened has run: the scheduler has passed the gated one by.
    stage.wait(stage.start(node, gpu=1), PodPhase.RUNNING, *ENDED)
    assert stage.read(born).phase is PodPhase.GATED


def test_a_second_create_changes_nothing(stage: Stage) -> None:
    request = stage.request()
    first = stage.port.create_pod(request=request)
    assert stage.port.create_pod(request=request) == stage.read(first)
    assert stage.read(first).uid == first.uid


def test_a_second_create_returns_a_pod_that_was_opened_meanwhile(stage: Stage) -> None:
    request = stage.request(command=("sleep", "60"))
    opened = stage.open(stage.port.create_pod(request=request), stage.add_node())
    stage.wait(opened, PodPhase.RUNNING)
    again = stage.port.create_pod(request=request)
    assert (again.uid, again.phase) == (opened.uid, PodPhase.RUNNING)


@pytest.mark.parametrize(
    "change", [{"image": "example.test/other:1"}, {"attempt": 2}, {"cpu_milli": 999}]
)
def test_another_spec_under_the_same_name_conflicts(
    stage: Stage, change: dict[str, object]
) -> None:
    request = stage.request()
    stage.port.create_pod(request=request)
    with pytest.raises(ClusterError) as call:
        stage.port.create_pod(request=replace(request, **change))  # type: ignore[arg-type]  # by case
    assert refused(call) is Fault.CONFLICT


def test_a_pod_in_a_namespace_that_is_not_there_is_not_found(stage: Stage) -> None:
    with pytest.raises(ClusterError) as call:
        stage.port.create_pod(request=replace(stage.request(), namespace="contract-nowhere"))
    assert refused(call) is Fault.NOT_FOUND


def test_a_pod_that_can_never_be_accepted_is_invalid(stage: Stage) -> None:
    with pytest.raises(ClusterError) as call:
        stage.port.create_pod(request=replace(stage.request(), name="Not_A_Name"))
    assert refused(call) is Fault.INVALID


def test_opening_with_a_stale_version_conflicts(stage: Stage) -> None:
    pod = stage.port.create_pod(request=stage.request())
    node = stage.add_node()
    stage.open(pod, node)
    with pytest.raises(ClusterError) as call:
        stage.open(pod, node)
    assert refused(call) is Fault.CONFLICT


def test_opening_a_pod_with_another_uid_conflicts(stage: Stage) -> None:
    pod = stage.port.create_pod(request=stage.request())
    with pytest.raises(ClusterError) as call:
        stage.open(replace(pod, uid=str(uuid4())), stage.add_node())
    assert refused(call) is Fault.CONFLICT
    assert stage.read(pod).phase is PodPhase.GATED


def test_opening_a_pod_that_is_gone_is_not_found(stage: Stage) -> None:
    pod = stage.port.create_pod(request=stage.request())
    stage.port.delete_pod(namespace=pod.namespace, name=pod.name, uid=pod.uid, grace_s=0)
    with pytest.raises(ClusterError) as call:
        stage.open(pod, "anywhere")
    assert refused(call) is Fault.NOT_FOUND


def test_an_opened_pod_lands_on_the_node_it_was_opened_onto(stage: Stage) -> None:
    stage.add_node()
    node = stage.add_node()
    stage.add_node()
    pod = stage.start(node, command=("sleep", "60"), gpu=1)
    assert stage.wait(pod, PodPhase.RUNNING).node == node


def test_a_pod_gets_a_mig_slice_of_the_profile_it_asked_for(stage: Stage) -> None:
    node = stage.add_node(gpus=7, mig={"1g.10gb": 1})
    asked = {"command": ("sleep", "60"), "mig-1g.10gb": 1}
    assert stage.wait(stage.start(node, **asked), PodPhase.RUNNING).node == node
    stage.wait(stage.start(node, **asked), PodPhase.UNSCHEDULABLE)


def test_the_clusters_own_scheduler_refuses_an_overfull_node_until_another_pod_ends(
    stage: Stage,
) -> None:
    node = stage.add_node(gpus=8)
    stays = stage.start(node, command=("sleep", "600"), gpu=4)
    ends = stage.start(node, command=("sleep", "600"), gpu=4)
    stage.wait(stays, PodPhase.RUNNING)
    stage.wait(ends, PodPhase.RUNNING)
    waits = stage.start(node, command=("sleep", "600"), gpu=4)
    refusal = stage.wait(waits, PodPhase.UNSCHEDULABLE)
    assert "Insufficient nvidia.com/gpu" in refusal.reason
    assert refusal.node == ""
    stage.port.delete_pod(namespace=ends.namespace, name=ends.name, uid=ends.uid, grace_s=1)
    assert stage.wait(waits, PodPhase.RUNNING).node == node


def test_a_pod_that_ends_by_itself_makes_room(stage: Stage) -> None:
    node = stage.add_node(gpus=8)
    ends = stage.start(node, command=("sleep", "3"), gpu=8)
    stage.wait(ends, PodPhase.RUNNING)
    waits = stage.start(node, command=("sleep", "60"), gpu=8)
    stage.wait(waits, PodPhase.UNSCHEDULABLE)
    stage.wait(waits, PodPhase.RUNNING)
    assert stage.read(ends).phase is PodPhase.SUCCEEDED


def test_sleep_succeeds_with_the_times_it_ran_between(stage: Stage) -> None:
    pod = stage.wait(stage.start(stage.add_node(), command=("sleep", "2")), *ENDED)
    assert (pod.phase, pod.exit_code, pod.reason) == (PodPhase.SUCCEEDED, 0, "")
    assert pod.started_at is not None
    assert pod.finished_at is not None
    ran = pod.finished_at - pod.started_at
    if stage.simulated:
        assert ran == timedelta(seconds=2)
    assert timedelta(seconds=2) <= ran < timedelta(seconds=10)


def test_false_fails_with_its_exit_code(stage: Stage) -> None:
    pod = stage.wait(stage.start(stage.add_node(), command=("false",)), *ENDED)
    assert (pod.phase, pod.exit_code, pod.reason) == (PodPhase.FAILED, 1, "Error")
    assert pod.finished_at is not None


@pytest.mark.parametrize("grace_s", [0, 1])
def test_a_running_pod_is_deleted_by_its_uid(stage: Stage, grace_s: int) -> None:
    pod = stage.start(stage.add_node(), command=("sleep", "600"))
    stage.wait(pod, PodPhase.RUNNING)
    where = {"namespace": pod.namespace, "name": pod.name}
    stage.port.delete_pod(**where, uid=pod.uid, grace_s=grace_s)
    eventually("the pod is gone", lambda: stage.port.read_pod(**where) is None)
    stage.port.delete_pod(**where, uid=pod.uid, grace_s=grace_s)


def test_a_pod_that_runs_is_given_notice_and_another_is_not(stage: Stage) -> None:
    request = replace(stage.request(command=("sleep", "600")), grace_s=1, notice=True)
    pod = stage.open(stage.port.create_pod(request=request), stage.add_node())
    stage.wait(pod, PodPhase.RUNNING)
    where = {"namespace": pod.namespace, "name": pod.name}
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
    until = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
    stage.port.give_notice(**where, uid=str(uuid4()), until=until)
    told = stage.admin("GET", path)["metadata"]["annotations"]
    assert "berth.dev/notice-until" not in told
    stage.port.give_notice(**where, uid=pod.uid, until=until)
    told = stage.admin("GET", path)["metadata"]["annotations"]
    assert told["berth.dev/notice-until"] == "2026-03-01T12:00:30Z"
    stage.port.delete_pod(**where, uid=pod.uid, grace_s=0)
    stage.port.give_notice(**where, uid=pod.uid, until=until)


def test_another_pod_of_that_name_is_not_deleted(stage: Stage) -> None:
    pod = stage.port.create_pod(request=stage.request())
    where = {"namespace": pod.namespace, "name": pod.name}
    stage.port.delete_pod(**where, uid=str(uuid4()), grace_s=0)
    assert stage.read(pod) == pod


def test_a_pod_that_changed_since_its_version_is_not_deleted(stage: Stage) -> None:
    seen = stage.port.create_pod(request=stage.request(command=("sleep", "60")))
    opened = stage.open(seen, stage.add_node())
    where = {"namespace": seen.namespace, "name": seen.name, "uid": seen.uid}
    stage.port.delete_pod(**where, grace_s=0, resource_version=seen.resource_version)
    running = stage.wait(opened, PodPhase.RUNNING)
    assert not running.deleting


def test_a_gated_pod_that_is_as_it_was_seen_is_deleted_at_once(stage: Stage) -> None:
    seen = stage.port.create_pod(request=stage.request())
    where = {"namespace": seen.namespace, "name": seen.name}
    stage.port.delete_pod(**where, uid=seen.uid, grace_s=0, resource_version=seen.resource_version)
    assert stage.port.read_pod(**where) is None


def test_a_pod_says_when_it_was_made(stage: Stage) -> None:
    before = datetime.now(UTC) - timedelta(seconds=2)  # told in whole seconds
    born = stage.port.create_pod(request=stage.request()).created_at
    assert born is not None
    assert before <= born <= datetime.now(UTC) + timedelta(seconds=1)


def test_a_pod_that_ended_is_deleted_by_its_uid(stage: Stage) -> None:
    pod = stage.wait(stage.start(stage.add_node(), command=("sleep", "1")), *ENDED)
    where = {"namespace": pod.namespace, "name": pod.name}
    stage.port.delete_pod(**where, uid=pod.uid, grace_s=10)
    eventually("the pod is gone", lambda: stage.port.read_pod(**where) is None)


def test_a_foreign_pod_is_reported_with_what_it_holds(stage: Stage) -> None:
    node = stage.add_node()
    limits = {"cpu": "2500m", "memory": "3Gi", "nvidia.com/gpu": "2"}
    name = f"foreign-{node}"
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"berth.dev/installation": "another"}},
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": node},
            "containers": [
                {
                    "name": "main",
                    "image": "example.test/other:1",
                    "command": ["sleep", "600"],
                    "resources": {"limits": limits},
                }
            ],
        },
    }
    stage.admin("POST", "/api/v1/namespaces/default/pods", body)

    def running() -> PodReport | None:
        pod = stage.port.read_pod(namespace="default", name=name)
        return pod if pod is not None and pod.phase is PodPhase.RUNNING else None

    pod = eventually("the foreign pod runs", running)
    assert (pod.workload, pod.installation, pod.node) == ("", "another", node)
    assert (pod.cpu_milli, pod.memory_mib) == (2500, 3072)
    assert pod.resources == (("nvidia.com/gpu", 2),)
    assert pod in stage.port.list_pods().items
    stage.port.delete_pod(namespace="default", name=name, uid=pod.uid, grace_s=0)


def test_a_pod_that_is_not_there_reads_as_none(stage: Stage) -> None:
    assert stage.port.read_pod(namespace=stage.namespace, name="nobody") is None


def test_a_namespace_is_made_once_and_left_as_it_is(stage: Stage) -> None:
    name = f"{stage.namespace}-more"
    stage.port.confine(wanted=Confinement(name))
    made = stage.admin("GET", f"/api/v1/namespaces/{name}")
    stage.port.confine(wanted=Confinement(name))
    again = stage.admin("GET", f"/api/v1/namespaces/{name}")
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    labels = made["metadata"]["labels"]
    assert labels["berth.dev/installation"] == "berth"
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_a_namespace_is_owned_by_its_label(stage: Stage) -> None:
    assert stage.port.owns_namespace(namespace=stage.namespace)
    assert not stage.port.owns_namespace(namespace="default")
    assert not stage.port.owns_namespace(namespace="nowhere")


def test_a_namespace_of_somebody_else_is_not_taken_over(stage: Stage) -> None:
    with pytest.raises(ClusterError) as call:
        stage.port.confine(wanted=Confinement("default"))
    assert refused(call) is Fault.CONFLICT
    labels = stage.admin("GET", "/api/v1/namespaces/default")["metadata"]["labels"]
    assert "berth.dev/installation" not in labels


def test_a_gangs_service_is_made_once_and_never_shared(stage: Stage) -> None:
    where = {"namespace": stage.namespace, "name": f"gang-{stage.namespace}"}
    for _ in range(2):
        stage.port.ensure_service(**where, workload="one", attempt=1)
    path = f"/api/v1/namespaces/{stage.namespace}/services/{where['name']}"
    spec = stage.admin("GET", path)["spec"]
    assert spec["clusterIP"] == "None"
    assert spec["selector"]["berth.dev/workload"] == "one"
    assert spec["selector"]["berth.dev/attempt"] == "1"
    for workload, attempt in (("two", 1), ("one", 2)):
        with pytest.raises(ClusterError) as call:
            stage.port.ensure_service(**where, workload=workload, attempt=attempt)
        assert refused(call) is Fault.CONFLICT


def test_a_gangs_service_is_deleted_by_whose_it_is(stage: Stage) -> None:
    where = {"namespace": stage.namespace, "name": f"gang-{stage.namespace}"}
    stage.port.ensure_service(**where, workload="one", attempt=1)

    def services() -> list[str]:
        path = f"/api/v1/namespaces/{stage.namespace}/services"
        return [service["metadata"]["name"] for service in stage.admin("GET", path)["items"]]

    for workload, attempt in (("two", 1), ("one", 2)):
        stage.port.delete_service(**where, workload=workload, attempt=attempt)
        assert services() == [where["name"]]
    for _ in range(2):
        stage.port.delete_service(**where, workload="one", attempt=1)
        assert services() == []


def test_a_gangs_pod_is_accepted_with_its_rendezvous_name(stage: Stage) -> None:
    request = replace(stage.request(), subdomain="gang")
    assert stage.port.create_pod(request=request).phase is PodPhase.GATED


def test_a_missing_right_is_named(stage: Stage) -> None:
    port = stage.connect(token=stage.without_right())
    with pytest.raises(ClusterError) as call:
        port.create_pod(request=stage.request())
    assert refused(call) is Fault.FORBIDDEN
    assert 'cannot create resource "pods"' in str(call.value)
    port.close()


def test_an_unknown_token_is_unauthorized_and_never_repeated(stage: Stage) -> None:
    port = stage.connect(token="not-a-token-of-this-cluster")
    with pytest.raises(ClusterError) as call:
        port.list_nodes()
    assert refused(call) is Fault.UNAUTHORIZED
    assert "not-a-token" not in str(call.value)
    port.close()
