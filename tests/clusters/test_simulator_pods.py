"""What the simulated API server, scheduler and kubelets do with pods, beyond the contract."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.port import ClusterError, Fault, PodPhase
from clusters.simulator.programs import Program, program
from tests.clusters.acting import (
    ENDED,
    delete,
    gone,
    opened,
    read,
    request,
    run,
    wait,
)
from tests.simulation import Simulator, simulation, simulator
from tests.waiting import eventually

__all__ = ["simulator"]

pytestmark = pytest.mark.part_simulator


@pytest.fixture
def port(simulator: Simulator) -> Iterator[KubernetesCluster]:
    port = simulator.connect()
    yield port
    port.close()


def played(*argv: str, name: str = "w-1-0") -> Program:
    container = {"name": "main", "command": list(argv)}
    return program({"metadata": {"name": name}, "spec": {"containers": [container]}})


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("sleep", "5"), Program(5, 0)),
        (("sleep", "0.25"), Program(0.25, 0)),
        (("sleep", "2m"), Program(120, 0)),
        (("true",), Program(0, 0)),
        (("false",), Program(0, 1)),
        (("sh", "-c", "exit 3"), Program(0, 3)),
        (("/bin/bash", "-c", "echo hi; sleep 5 && exit 137"), Program(5, 137)),
        (("sh", "-c", "sleep 1; false; sleep 2"), Program(3, 0)),
        (("sh", "-c", "trap '' TERM; sleep 9"), Program(9, 0, stubborn=True)),
        (("sh", "-c", "sleep 2; tail /dev/zero"), Program(2, 137, killed=True)),
    ],
)
def test_simple_commands_are_played(argv: tuple[str, ...], expected: Program) -> None:
    assert played(*argv) == expected


@pytest.mark.parametrize(
    "argv", [(), ("python", "train.py"), ("sleep", "forever"), ("sh", "-c", "")]
)
def test_any_other_command_runs_for_a_time_that_follows_from_its_name(
    argv: tuple[str, ...],
) -> None:
    assert played(*argv, name="a") == played(*argv, name="a")
    times = {played(*argv, name=f"w-{number}").seconds for number in range(200)}
    assert len(times) > 30
    assert min(times) >= 30
    assert max(times) <= 90


def test_an_exit_code_is_reported(port: KubernetesCluster) -> None:
    pod = run(port, request("sh", "-c", "sleep 0.1; exit 3"))
    assert (pod.phase, pod.exit_code, pod.reason) == (PodPhase.FAILED, 3, "Error")


def test_a_pod_that_wants_too_much_memory_is_killed_for_it(port: KubernetesCluster) -> None:
    pod = run(port, request("sh", "-c", "sleep 0.1; tail /dev/zero"))
    assert (pod.phase, pod.exit_code, pod.reason) == (PodPhase.FAILED, 137, "OOMKilled")


def test_an_evicted_pod_has_failed_and_makes_room(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    gpus = (("nvidia.com/gpu", 8),)
    pod = wait(port, opened(port, request(resources=gpus)), PodPhase.RUNNING)
    simulator.fault(kind="evict-pod", pod=f"{pod.namespace}/{pod.name}")
    evicted = read(port, pod)
    assert evicted is not None
    assert (evicted.phase, evicted.reason) == (PodPhase.FAILED, "Evicted")
    wait(port, opened(port, request(resources=gpus)), PodPhase.RUNNING)


def test_who_takes_a_pod_away_is_told_with_its_end(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    pod = wait(port, opened(port, request("sh", "-c", "sleep 600")), PodPhase.RUNNING)
    version = port.list_pods().resource_version
    with port.watch_pods(resource_version=version) as events:
        by = "EvictionByEvictionAPI"
        simulator.fault(kind="disrupt-pod", pod=f"{pod.namespace}/{pod.name}", by=by)
        ended = next(e.report for e in events if e.report and e.report.phase.ended)
    assert (ended.phase, ended.reason, ended.deleting) == (PodPhase.FAILED, by, True)


def test_a_pod_is_given_notice_once_it_is_that_pod(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    pod = opened(port, request(notice=True))
    until = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
    where = {"namespace": pod.namespace, "name": pod.name}

    def told() -> object:
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        return simulator.call("GET", path)["metadata"]["annotations"].get("berth.dev/notice-until")

    port.give_notice(**where, uid="another", until=until)
    assert told() is None
    port.give_notice(**where, uid=pod.uid, until=until)
    assert told() == "2026-03-01T12:00:30Z"
    delete(port, pod, grace_s=0)
    port.give_notice(**where, uid=pod.uid, until=until)


def test_a_run_time_limit_ends_the_pod_to_the_microsecond(port: KubernetesCluster) -> None:
    pod = run(port, request("sleep", "600", run_time_limit_s=1))
    assert (pod.phase, pod.reason) == (PodPhase.FAILED, "DeadlineExceeded")
    assert pod.started_at is not None
    assert pod.finished_at is not None
    assert (pod.finished_at - pod.started_at).total_seconds() == 1


def test_an_end_is_never_told_before_it_has_come(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    pods = [opened(port, request("sleep", "0.05")) for _ in range(20)]
    for pod in pods:
        report = wait(port, pod, *ENDED)
        assert report.finished_at is not None
        assert report.finished_at <= datetime.now(report.finished_at.tzinfo)


def test_an_image_that_is_not_there_is_said(port: KubernetesCluster) -> None:
    pod = opened(port, request(image="example.test/train:missing"))
    said = eventually("the kubelet said why", lambda: getattr(read(port, pod), "reason", ""))
    assert said.startswith("ErrImagePull: ")
    delete(port, pod)
    gone(port, pod)


def test_a_deleted_pod_stops_soon_and_tells_how(port: KubernetesCluster) -> None:
    pod = wait(port, opened(port, request()), PodPhase.RUNNING)
    with port.watch_pods(resource_version=port.list_pods().resource_version) as events:
        delete(port, pod, grace_s=30)
        marked, stopped, deleted = (next(events).report for _ in range(3))
    assert marked is not None
    assert (marked.deleting, marked.phase) == (True, PodPhase.RUNNING)
    assert stopped is not None
    assert (stopped.phase, stopped.exit_code) == (PodPhase.FAILED, 143)
    assert stopped.finished_at is not None
    assert deleted is not None
    assert deleted.finished_at == stopped.finished_at


def test_a_stubborn_pod_uses_up_its_grace(port: KubernetesCluster) -> None:
    stubborn = request("sh", "-c", "trap '' TERM; sleep 600")
    pod = wait(port, opened(port, stubborn), PodPhase.RUNNING)
    with port.watch_pods(resource_version=port.list_pods().resource_version) as events:
        delete(port, pod, grace_s=1)
        reports = [next(events).report for _ in range(3)]
    assert reports[1] is not None
    assert (reports[1].phase, reports[1].exit_code) == (PodPhase.FAILED, 137)


def test_a_second_deletion_may_only_shorten_the_grace(port: KubernetesCluster) -> None:
    stubborn = request("sh", "-c", "trap '' TERM; sleep 600")
    pod = wait(port, opened(port, stubborn), PodPhase.RUNNING)
    delete(port, pod, grace_s=600)
    delete(port, pod, grace_s=700)
    assert read(port, pod) is not None
    delete(port, pod, grace_s=0)
    assert read(port, pod) is None


def test_a_pod_that_waits_or_has_ended_is_deleted_at_once(port: KubernetesCluster) -> None:
    for pod in (port.create_pod(request=request()), run(port, request("true"))):
        delete(port, pod)
        assert read(port, pod) is None


def test_an_ended_pod_stays_until_it_is_deleted(port: KubernetesCluster) -> None:
    pod = run(port, request("true"))
    assert pod in port.list_pods().items


def test_room_is_counted_for_every_resource(port: KubernetesCluster) -> None:
    big = {"cpu_milli": 100_000, "memory_mib": 1024}
    first = opened(port, request(**big))
    wait(port, first, PodPhase.RUNNING)
    second = opened(port, request(**big))
    assert "Insufficient cpu" in wait(port, second, PodPhase.UNSCHEDULABLE).reason
    third = opened(port, request(memory_mib=1024 * 1024))
    assert "Insufficient memory" in wait(port, third, PodPhase.UNSCHEDULABLE).reason
    delete(port, first, grace_s=0)
    wait(port, second, PodPhase.RUNNING)


def test_a_pod_for_a_node_that_is_not_there_waits(port: KubernetesCluster) -> None:
    pod = opened(port, request(), node="nowhere")
    reason = wait(port, pod, PodPhase.UNSCHEDULABLE).reason
    assert reason.startswith("0/10 nodes are available: 10 node(s) didn't match")


def test_waiting_pods_get_room_in_the_order_they_came(port: KubernetesCluster) -> None:
    eight = {"resources": (("nvidia.com/gpu", 8),)}
    holder = wait(port, opened(port, request(**eight)), PodPhase.RUNNING)
    first, second = opened(port, request(**eight)), opened(port, request(**eight))
    wait(port, second, PodPhase.UNSCHEDULABLE)
    delete(port, holder, grace_s=0)
    wait(port, first, PodPhase.RUNNING)
    wait(port, second, PodPhase.UNSCHEDULABLE)


def test_slices_made_on_demand_have_to_fit_together_on_their_devices() -> None:
    with simulation(layout="demo-south") as south:
        port = south.connect()

        def ask(profile: str) -> PodPhase:
            resources = ((f"nvidia.com/mig-{profile}", 8),)
            pod = opened(port, request(resources=resources), node="h100-flex-0")
            return wait(port, pod, PodPhase.RUNNING, PodPhase.UNSCHEDULABLE).phase

        assert ask("4g.40gb") is PodPhase.RUNNING
        assert ask("4g.40gb") is PodPhase.UNSCHEDULABLE
        assert ask("3g.40gb") is PodPhase.RUNNING
        assert ask("1g.10gb") is PodPhase.UNSCHEDULABLE
        port.close()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"image": ""}, "image"),
        ({"name": "a" * 254}, "metadata.name"),
        ({"run_time_limit_s": 0}, "spec.activeDeadlineSeconds"),
        ({"resources": (("nvidia.com/gpu", -1),)}, "nvidia.com/gpu"),
    ],
)
def test_what_a_real_server_would_refuse_is_refused(
    port: KubernetesCluster, change: dict[str, object], field: str
) -> None:
    with pytest.raises(ClusterError, match=field) as raised:
        port.create_pod(request=request(**change))
    assert raised.value.fault is Fault.INVALID


def test_speed_shortens_what_pods_do_and_the_times_they_tell() -> None:
    with simulation(speed=100) as fast:
        port = fast.connect()
        pod = run(port, request("sleep", "20"))
        assert pod.started_at is not None
        assert pod.finished_at is not None
        assert (pod.finished_at - pod.started_at).total_seconds() == 0.2
        port.close()
