"""The simulator's faults, as the adapter meets them: each call fails as it says, and can go on."""

import time
from collections.abc import Iterator

import pytest

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.port import Change, ClusterError, Fault, PodPhase
from tests.clusters.acting import (
    delete,
    gone,
    opened,
    read,
    request,
    wait,
)
from tests.simulation import Simulator, simulator
from tests.waiting import eventually

__all__ = ["simulator"]

pytestmark = pytest.mark.part_simulator


@pytest.fixture
def port(simulator: Simulator) -> Iterator[KubernetesCluster]:
    port = simulator.connect(read_timeout_s=0.3, watch_read_timeout_s=0.5)
    yield port
    port.close()


def test_a_throttled_request_says_how_long_to_wait_and_works_then(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    simulator.fault(kind="throttle", verb="create", resource="pods", seconds=7)
    asked = request()
    with pytest.raises(ClusterError) as raised:
        port.create_pod(request=asked)
    assert (raised.value.fault, raised.value.retry_after_s) == (Fault.THROTTLED, 7.0)
    assert port.create_pod(request=asked).phase is PodPhase.GATED


def test_a_fault_strikes_as_often_as_asked_and_where_asked(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    simulator.fault(kind="error", status=503, verb="list", resource="nodes", count=2, after=1)
    port.list_nodes()
    for _ in range(2):
        with pytest.raises(ClusterError) as raised:
            port.list_nodes()
        assert raised.value.fault is Fault.SERVER
    port.list_nodes()
    port.list_pods()


def test_a_lasting_fault_ends_when_it_is_healed(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    simulator.fault(kind="error", count=0)
    for _ in range(3):
        with pytest.raises(ClusterError):
            port.list_pods()
    simulator.heal()
    port.list_pods()


def test_an_unknown_fault_is_refused(simulator: Simulator) -> None:
    with pytest.raises(AssertionError, match="no such fault"):
        simulator.fault(kind="meteor")
    with pytest.raises(AssertionError, match="no such fault"):
        simulator.fault(kind="error", colour="red")


def test_a_time_out_before_the_effect_leaves_nothing_behind(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    simulator.fault(kind="timeout-before", verb="create", resource="pods")
    asked = request()
    with pytest.raises(ClusterError) as raised:
        port.create_pod(request=asked)
    assert raised.value.fault is Fault.UNREACHABLE
    assert port.read_pod(namespace=asked.namespace, name=asked.name) is None


def test_a_time_out_after_the_effect_is_absorbed_by_asking_again(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    simulator.fault(kind="timeout-after", verb="create", resource="pods")
    asked = request()
    with pytest.raises(ClusterError) as raised:
        port.create_pod(request=asked)
    assert raised.value.fault is Fault.UNREACHABLE
    done = port.read_pod(namespace=asked.namespace, name=asked.name)
    assert done is not None
    assert port.create_pod(request=asked) == done


def test_contention_for_a_quota_is_no_conflict_with_what_is_there(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    asked = request()

    def serve() -> None:
        port.ensure_service(namespace=asked.namespace, name="gang", workload="w", attempt=1)

    for resource, make in (
        ("pods", lambda: port.create_pod(request=asked)),
        ("services", serve),
    ):
        simulator.fault(kind="error", status=409, verb="create", resource=resource)
        with pytest.raises(ClusterError) as raised:
            make()
        assert raised.value.fault is Fault.SERVER
        make()


def test_an_opening_that_was_not_answered_conflicts_when_repeated(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    asked = request()
    pod = port.create_pod(request=asked)
    simulator.fault(kind="timeout-after", verb="patch", resource="pods")
    with pytest.raises(ClusterError) as raised:
        opened(port, asked)
    assert raised.value.fault is Fault.UNREACHABLE
    with pytest.raises(ClusterError) as raised:
        port.open_gate(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            resource_version=pod.resource_version,
            hostname="h100-0",
        )
    assert raised.value.fault is Fault.CONFLICT
    assert wait(port, pod, PodPhase.RUNNING).node == "h100-0"


def test_a_fault_may_strike_one_name_only(simulator: Simulator, port: KubernetesCluster) -> None:
    struck, spared = request(), request()
    simulator.fault(kind="error", verb="create", name=struck.name, count=0)
    port.create_pod(request=spared)
    with pytest.raises(ClusterError):
        port.create_pod(request=struck)


def test_a_stale_list_shows_what_was(simulator: Simulator, port: KubernetesCluster) -> None:
    before = port.list_pods()
    simulator.fault(kind="stale-list", resource="pods")
    pod = port.create_pod(request=request())
    stale = port.list_pods()
    assert stale == before
    with port.watch_pods(resource_version=stale.resource_version) as events:
        assert next(events).report == pod
    assert pod in port.list_pods().items


def test_a_cut_watch_loses_nothing_when_it_is_resumed(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    version = port.list_pods().resource_version
    with port.watch_pods(resource_version=version) as events:
        first = port.create_pod(request=request())
        event = next(events)
        assert event.report == first
        version = event.resource_version
        simulator.fault(kind="cut-watch", resource="pods")
        second = port.create_pod(request=request())
        assert list(events) == []
    with port.watch_pods(resource_version=version) as events:
        assert next(events).report == second


def test_a_half_open_watch_is_given_up_and_loses_nothing(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    version = port.list_pods().resource_version
    simulator.fault(kind="half-open", resource="pods")
    with port.watch_pods(resource_version=version) as events:
        pod = port.create_pod(request=request())
        started = time.monotonic()
        assert list(events) == []
        assert time.monotonic() - started < 3
    with port.watch_pods(resource_version=version) as events:
        assert next(events).report == pod


def test_410_as_a_status_has_expired(simulator: Simulator, port: KubernetesCluster) -> None:
    simulator.fault(kind="gone", verb="watch")
    with (
        pytest.raises(ClusterError) as raised,
        port.watch_pods(resource_version="1") as events,
    ):
        next(events)
    assert raised.value.fault is Fault.EXPIRED


def test_a_list_that_expires_half_way_is_begun_again(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    born = {port.create_pod(request=request()).uid for _ in range(5)}
    simulator.fault(kind="gone", verb="list", resource="pods", after=1)
    paged = simulator.connect(page=2)
    assert born == {pod.uid for pod in paged.list_pods().items}
    paged.close()


def test_a_list_that_always_expires_says_so(simulator: Simulator, port: KubernetesCluster) -> None:
    simulator.fault(kind="gone", verb="list", resource="pods", count=0)
    with pytest.raises(ClusterError) as raised:
        port.list_pods()
    assert raised.value.fault is Fault.EXPIRED


def test_a_watcher_that_falls_behind_the_kept_history_has_expired(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    version = port.list_pods().resource_version
    port.create_pod(request=request())
    simulator.fault(kind="forget-history")
    with (
        pytest.raises(ClusterError) as raised,
        port.watch_pods(resource_version=version) as events,
    ):
        next(events)
    assert raised.value.fault is Fault.EXPIRED


def test_a_lost_node_is_not_ready_and_its_pods_stand_still(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    ends = wait(port, opened(port, request("sleep", "0.3")), PodPhase.RUNNING)
    stays = wait(port, opened(port, request()), PodPhase.RUNNING)
    simulator.fault(kind="lose-node", node="h100-0")
    node = next(node for node in port.list_nodes().items if node.name == "h100-0")
    assert not node.ready
    late = opened(port, request())
    assert "untolerated taint" in wait(port, late, PodPhase.UNSCHEDULABLE).reason
    delete(port, stays, grace_s=1)
    # A pod elsewhere that sleeps longer has ended; the one here has not.
    wait(port, opened(port, request("sleep", "0.5"), node="h100-1"), PodPhase.SUCCEEDED)
    report = read(port, ends)
    assert report is not None
    assert report.phase is PodPhase.RUNNING
    report = read(port, stays)
    assert report is not None
    assert report.deleting

    simulator.fault(kind="return-node", node="h100-0")
    ended = wait(port, ends, PodPhase.SUCCEEDED)
    assert ended.started_at is not None
    assert ended.finished_at is not None
    assert (ended.finished_at - ended.started_at).total_seconds() == 0.3
    gone(port, stays)
    wait(port, late, PodPhase.RUNNING)


def test_a_pod_on_a_lost_node_can_be_forced_out_of_the_api(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    pod = wait(port, opened(port, request()), PodPhase.RUNNING)
    simulator.fault(kind="lose-node", node="h100-0")
    delete(port, pod, grace_s=0)
    assert read(port, pod) is None


def test_a_deleted_nodes_pods_fail_and_are_collected(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    pod = wait(port, opened(port, request()), PodPhase.RUNNING)
    with port.watch_pods(resource_version=port.list_pods().resource_version) as events:
        simulator.fault(kind="delete-node", node="h100-0")
        failed, deleted = next(events), next(events)
    assert failed.report is not None
    assert (failed.report.phase, failed.report.reason) == (PodPhase.FAILED, "NodeLost")
    assert (deleted.change, read(port, pod)) == (Change.DELETE, None)
    assert "h100-0" not in {node.name for node in port.list_nodes().items}


def test_a_cordoned_node_takes_nothing_until_it_is_open_again(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    simulator.fault(kind="cordon-node", node="h100-0")
    node = next(node for node in port.list_nodes().items if node.name == "h100-0")
    assert (node.ready, node.schedulable) == (True, False)
    pod = opened(port, request())
    assert "were unschedulable" in wait(port, pod, PodPhase.UNSCHEDULABLE).reason
    simulator.fault(kind="cordon-node", node="h100-0", cordoned=False)
    wait(port, pod, PodPhase.RUNNING)


def test_a_sick_device_leaves_allocatable_and_comes_back(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    def devices() -> int:
        return next(len(n.devices) for n in port.list_nodes().items if n.name == "h100-0")

    assert devices() == 8
    resources = {"nvidia.com/gpu": 7}
    simulator.fault(kind="set-allocatable", node="h100-0", resources=resources)
    assert devices() == 7
    pod = opened(port, request(resources=(("nvidia.com/gpu", 8),)))
    wait(port, pod, PodPhase.UNSCHEDULABLE)
    simulator.fault(kind="set-allocatable", node="h100-0", resources={"nvidia.com/gpu": 8})
    wait(port, pod, PodPhase.RUNNING)


def test_a_kubelets_clock_may_be_wrong(simulator: Simulator, port: KubernetesCluster) -> None:
    simulator.fault(kind="skew-clocks", seconds=3600)
    pod = wait(port, opened(port, request("sleep", "0.1")), PodPhase.SUCCEEDED)
    simulator.fault(kind="skew-clocks", seconds=0)
    right = wait(port, opened(port, request("sleep", "0.1")), PodPhase.SUCCEEDED)
    assert pod.started_at is not None
    assert pod.finished_at is not None
    assert right.started_at is not None
    assert (pod.started_at - right.started_at).total_seconds() > 3500
    assert (pod.finished_at - pod.started_at).total_seconds() == 0.1


def test_requests_are_counted_by_verb(simulator: Simulator, port: KubernetesCluster) -> None:
    wait(port, opened(port, request("true")), PodPhase.SUCCEEDED)
    stats = simulator.stats()
    assert stats["requests"]["create pods"] == 1
    assert stats["requests"]["patch pods"] == 1
    assert stats["phases"] == {"Succeeded": 1}


def test_a_closed_watch_is_forgotten(simulator: Simulator, port: KubernetesCluster) -> None:
    version = port.list_pods().resource_version
    with port.watch_pods(resource_version=version):
        eventually("the watch is open", lambda: simulator.stats()["watches"] == 1)
    eventually("the watch is closed", lambda: simulator.stats()["watches"] == 0)


def test_a_deletion_in_a_conflict_that_is_not_of_the_pods_is_told(
    simulator: Simulator, port: KubernetesCluster
) -> None:
    pod = port.create_pod(request=request())
    simulator.fault(kind="error", status=409, verb="delete", resource="pods")
    where = {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
    with pytest.raises(ClusterError) as raised:
        port.delete_pod(**where, grace_s=0)
    assert raised.value.fault is Fault.CONFLICT
    port.delete_pod(**where, grace_s=0)
    eventually("it is gone", lambda: port.read_pod(namespace=pod.namespace, name=pod.name) is None)
