"""The port, where a pod looks for devices that it never asked for: the simulator's kubelet, and a
real API server with a kubelet that a test plays."""

from collections.abc import Iterator
from typing import Any

import pytest

from clusters.adapters.kubernetes.exposure import NAME
from clusters.exposure import ExposureReport
from clusters.port import ClusterError, Fault
from tests.contract.stage import Stage
from tests.waiting import eventually

POD = f"/api/v1/namespaces/berth-system/pods/{NAME}"
DEVICES = ["/dev/nvidia0", "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)"]


@pytest.fixture
def node(stage: Stage) -> Iterator[str]:
    """On which a pod may look; whatever looks is taken away."""
    yield stage.add_node(gpus=8)
    if (left := stage.port.read_exposure_probe()) is not None:
        stage.port.end_exposure_probe(uid=left.uid)


def start(stage: Stage, node: str) -> str:
    return stage.port.start_exposure_probe(
        hostname=node, tolerates="nvidia.com/gpu", image="docker.io/library/busybox:1.37"
    )


def expose(stage: Stage, node: str, *, saw: list[str] | None) -> None:
    if stage.simulated:
        fault = {"kind": "expose-node", "node": node, "saw": saw}
        stage.admin("POST", "/_simulator/faults", fault)


def ended(stage: Stage, *, saw: list[str] | None) -> ExposureReport:
    """Once its kubelet says that it ended, with what it saw as its message, None for nothing."""
    if not stage.simulated:
        body = eventually("it runs", lambda: _running(stage))
        lines = [] if saw is None else ["looked", *saw, "done", ""]
        message = {"message": "\n".join(lines)} if lines else {}
        [container] = body["status"]["containerStatuses"]
        over = {"exitCode": 0, "reason": "Completed", **message}
        body["status"]["containerStatuses"] = [{**container, "state": {"terminated": over}}]
        body["status"]["phase"] = "Succeeded"
        stage.admin("PUT", f"{POD}/status", body)

    def found() -> ExposureReport | None:
        report = stage.port.read_exposure_probe()
        return report if report and report.ended else None

    return eventually("it ended", found)


def _running(stage: Stage) -> Any:  # Any: JSON
    body = stage.admin("GET", POD)
    return body if body["status"]["phase"] == "Running" else None


@pytest.mark.parametrize("saw", [[], DEVICES], ids=["nothing", "devices"])
def test_what_the_pod_saw_is_read_from_its_status(stage: Stage, node: str, saw: list[str]) -> None:
    expose(stage, node, saw=saw)
    uid = start(stage, node)
    assert ended(stage, saw=saw) == ExposureReport(uid=uid, ended=True, saw=tuple(saw), node=node)
    [pod] = [one for one in stage.port.list_pods().items if one.uid == uid]
    assert (pod.node, pod.workload, pod.resources, pod.cpu_milli) == (node, "", (), 0)
    stage.port.end_exposure_probe(uid=uid)
    assert stage.port.read_exposure_probe() is None
    stage.port.end_exposure_probe(uid=uid)  # gone already


def test_there_is_one_at_a_time_and_another_is_not_taken_away(stage: Stage, node: str) -> None:
    uid = start(stage, node)
    with pytest.raises(ClusterError) as refused:
        start(stage, node)
    assert refused.value.fault is Fault.CONFLICT
    stage.port.end_exposure_probe(uid="00000000-0000-0000-0000-000000000000")
    report = stage.port.read_exposure_probe()
    assert report is not None
    assert report.uid == uid


def test_an_end_without_a_message_is_no_answer(stage: Stage, node: str) -> None:
    expose(stage, node, saw=None)
    start(stage, node)
    report = ended(stage, saw=None)
    assert (report.saw, report.why) == (None, "it ended and said nothing that could be read")
