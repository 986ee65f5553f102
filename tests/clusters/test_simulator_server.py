"""The simulated cluster as a program: layouts, state over a restart, clock, refusals to start."""

import os
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest
import urllib3

from clusters.port import Change, ClusterError, Fault, PodPhase
from clusters.simulator import layouts
from clusters.simulator.layouts import BadLayout
from clusters.simulator.server import listening
from tests.clusters.acting import opened, request, run, wait
from tests.simulation import Simulator, simulation, simulator, simulator_process
from tests.waiting import eventually

__all__ = ["simulator"]

pytestmark = pytest.mark.part_simulator

CSV = "sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\nn-1,32000,131072,0,\n"


def test_north_has_whole_devices_and_fixed_slices(simulator: Simulator) -> None:
    port = simulator.connect()
    nodes = {node.name: node for node in port.list_nodes().items}
    assert len(nodes["h100-0"].devices) == 8
    mixed = nodes["a100-mig-0"]
    assert [device.mode for device in mixed.devices] == ["mig-static"] * 4 + ["whole"] * 4
    assert mixed.mig_counts == {"1g.10gb": 15, "2g.20gb": 3, "3g.40gb": 2}
    port.close()


def test_south_has_slices_on_demand_and_shared_devices() -> None:
    with simulation(layout="demo-south") as south:
        port = south.connect()
        nodes = {node.name: node for node in port.list_nodes().items}
        flexible = nodes["h100-flex-0"]
        assert [device.mode for device in flexible.devices] == ["mig-dynamic"] * 8
        shared = nodes["t4-0"]
        assert (len(shared.devices), shared.share_replicas, shared.share_isolation) == (
            4,
            4,
            "none",
        )
        assert shared.devices[0].model == "Tesla-T4"
        pod = opened(port, request(resources=(("nvidia.com/gpu.shared", 16),)), node="t4-0")
        wait(port, pod, PodPhase.RUNNING)
        port.close()


def test_a_csv_of_nodes_shares_each_device_in_thousandths(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(CSV)
    with simulation(nodes=path) as trace:
        port = trace.connect()
        first, second = port.list_nodes().items
        assert (first.name, first.cpu_milli, first.memory_mib) == ("n-0", 64_000, 262_144)
        assert [device.model for device in first.devices] == ["P100", "P100"]
        assert first.share_replicas == 1000
        assert (second.devices, second.share_replicas) == ((), 1)
        share = request("true", resources=(("nvidia.com/gpu.shared", 460),))
        wait(port, opened(port, share, node="n-0"), PodPhase.SUCCEEDED)
        port.close()


def test_a_json_layout_lists_pools(tmp_path: Path) -> None:
    path = tmp_path / "layout.json"
    pool = {"name": "b", "count": 2, "cpu_milli": 8000, "memory_mib": 4096}
    path.write_bytes(orjson.dumps([pool]))
    names = [node["metadata"]["name"] for node in layouts.load(str(path), prefix="p")]
    assert names == ["b-0", "b-1"]


def test_machines_stand_in_racks_as_many_in_each() -> None:
    found: dict[str, set[str]] = {}
    for node in layouts.load("demo-north", prefix="p"):
        rack = node["metadata"]["labels"].get("network.topology.nvidia.com/leaf", "")
        found.setdefault(rack, set()).add(node["metadata"]["name"])
    assert found["rack-1"] == {"h100-0", "h100-1"}
    assert found["rack-2"] == {"h100-2", "h100-3"}


@pytest.mark.parametrize(
    ("name", "contents"),
    [
        ("nowhere.json", None),
        ("layout.json", "{"),
        ("layout.json", '[{"name": "b"}]'),
        ("layout.json", '[{"colour": "red"}]'),
        ("nodes.csv", "a,b\n1,2\n"),
        ("nodes.csv", ""),
        ("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn-0,many,1,0,\n"),
        ("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn-0\n"),
    ],
)
def test_a_bad_layout_is_refused_in_a_sentence(
    tmp_path: Path, name: str, contents: str | None
) -> None:
    path = tmp_path / name
    if contents is not None:
        path.write_text(contents)
    with pytest.raises(BadLayout):
        layouts.load(str(path), prefix="p")


def test_pods_outlive_a_restart_and_old_watches_do_not(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    with simulation(state=state) as first:
        port = first.connect()
        ended = run(port, request("sleep", "0.1"))
        gated = port.create_pod(request=request())
        running = wait(port, opened(port, request("sleep", "1")), PodPhase.RUNNING)
        full = {"resources": (("nvidia.com/gpu", 8),)}
        holds = wait(port, opened(port, request(**full), node="h100-1"), PodPhase.RUNNING)
        waits = opened(port, request(**full), node="h100-1")
        wait(port, waits, PodPhase.UNSCHEDULABLE)
        version = port.list_pods().resource_version
        port.close()
    assert state.stat().st_mode & 0o077 == 0

    with simulation(state=state) as second:
        port = second.connect()
        pods = {pod.uid: pod for pod in port.list_pods().items}
        assert pods[ended.uid] == ended
        assert pods[gated.uid] == gated
        assert pods[waits.uid].phase is PodPhase.UNSCHEDULABLE
        with (
            pytest.raises(ClusterError) as raised,
            port.watch_pods(resource_version=version) as events,
        ):
            next(events)
        assert raised.value.fault is Fault.EXPIRED
        over = wait(port, running, PodPhase.SUCCEEDED)
        assert over.started_at == running.started_at
        assert over.finished_at is not None
        assert over.started_at is not None
        assert (over.finished_at - over.started_at).total_seconds() == 1
        port.delete_pod(namespace=holds.namespace, name=holds.name, uid=holds.uid, grace_s=0)
        wait(port, waits, PodPhase.RUNNING)
        port.close()


def test_a_terminated_process_keeps_its_pods(tmp_path: Path) -> None:
    state = ("--state", str(tmp_path / "state.json"), "--start-delay", "0.01")
    with simulator_process(*state) as first:
        port = first.connect()
        ended = run(port, request("true"))
        port.close()
    with simulator_process(*state) as second:
        port = second.connect()
        assert port.list_pods().items == (ended,)
        port.close()


def test_on_an_accelerated_clock_pods_run_as_much_faster() -> None:
    # From the beginning of 2026 on, a thousand seconds in each real one.
    clock = f"{time.time()},1767225600,1000"
    with simulator_process("--start-delay", "0.01", env={"BERTH_CLOCK": clock}) as fast:
        port = fast.connect()
        pod = run(port, request("sleep", "1000"))
        assert pod.started_at is not None
        assert pod.finished_at is not None
        assert (pod.finished_at - pod.started_at).total_seconds() == 1000
        assert pod.started_at.year == 2026
        assert pod.started_at.month == 1
        port.close()


def start(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "clusters.simulator", "--port", "0", *arguments],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "token", "said"),
    [
        ((), "", "BERTH_SIMULATOR_TOKEN"),
        (("--layout", "demo-east"), "t" * 16, "demo-east"),
    ],
)
def test_it_says_in_a_sentence_why_it_does_not_start(
    arguments: tuple[str, ...], token: str, said: str
) -> None:
    ended = start(*arguments, BERTH_SIMULATOR_TOKEN=token)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_nothing_is_told_without_the_token(simulator: Simulator) -> None:
    http = urllib3.PoolManager(retries=False)
    for path in ("/version", "/api/v1/pods", "/_simulator/stats", "/_simulator/faults"):
        for headers in ({}, {"Authorization": "Bearer guess"}, {"Authorization": simulator.token}):
            answer = http.request("GET", simulator.server + path, headers=headers)
            assert answer.status == 401
    http.clear()


def test_it_listens_on_loopback_only() -> None:
    with listening(0) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_named() -> None:
    with listening(0) as bound:
        port = str(bound.getsockname()[1])
        ended = start("--port", port, BERTH_SIMULATOR_TOKEN="t" * 16)
    assert ended.returncode == 2
    assert f"{port}: Address already in use" in ended.stderr


def test_a_quiet_watch_is_kept_up_by_bookmarks() -> None:
    with simulation(bookmark_s=0.1) as running:
        port = running.connect(watch_timeout_s=1)
        listed = port.list_nodes().resource_version
        pod = port.create_pod(request=request())
        with port.watch_nodes(resource_version=listed) as events:
            seen = list(events)
        assert len(seen) >= 5
        assert {event.change for event in seen} == {Change.BOOKMARK}
        assert int(seen[-1].resource_version) == int(pod.resource_version)
        port.close()


def test_it_stops_although_watches_are_open() -> None:
    with simulation() as running:
        port = running.connect()
        version = port.list_pods().resource_version
        with port.watch_pods(resource_version=version) as events:
            eventually("the watch is open", lambda: running.stats()["watches"] == 1)
            running.stop()
            assert list(events) == []
        port.close()
