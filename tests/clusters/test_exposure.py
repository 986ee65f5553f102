"""What the pod that looks for devices tells: no answer is never a good one."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from clusters.adapters.kubernetes import exposure
from clusters.adapters.kubernetes.names import Names
from clusters.exposure import ExposureReport

NAMES = Names(prefix="berth.dev", installation="berth")
MESSAGE = "looked\n/dev/nvidia0\nGPU 0: H100\n\ndone\n"


def told(phase: str, **terminated: object) -> ExposureReport:
    body: dict[str, Any] = exposure.pod(  # Any: JSON
        hostname="n1", tolerates="amd.com/gpu", image="busybox:1", names=NAMES
    )
    body["metadata"] |= {"uid": "u1", "resourceVersion": "1"}
    body["spec"]["nodeName"] = "n1"
    state = {"terminated": terminated} if terminated else {"running": {}}
    body["status"] = {
        "phase": phase,
        "containerStatuses": [{"name": "main", "state": state}],
    }
    return exposure.report(body, names=NAMES)


def test_it_asks_for_no_device_and_wants_to_see_all() -> None:
    made = exposure.pod(hostname="n1", tolerates="amd.com/gpu", image="busybox:1", names=NAMES)
    [container] = made["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "0", "memory": "0"}
    assert not any("/" in name for name in container["resources"]["limits"])
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"} in container["env"]
    keys = [one["key"] for one in made["spec"]["tolerations"]]
    assert keys == ["nvidia.com/gpu", "amd.com/gpu", "cloud.google.com/gke-queued"]
    assert made["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "n1"}
    assert made["metadata"]["labels"] == {"berth.dev/installation": "berth"}


def test_each_line_is_a_device_that_it_saw() -> None:
    report = told("Succeeded", exitCode=0, message=MESSAGE)
    assert report.node == "n1"
    assert report.saw == ("/dev/nvidia0", "GPU 0: H100")
    assert told("Succeeded", exitCode=0, message="looked\n\ndone\n").saw == ()


@pytest.mark.parametrize(
    "message",
    [
        None,
        7,
        "",
        "looked\n",
        "done\n",
        "\ndone\n",
        "looked",
        "looked\n/dev/nvidia0",
        "sh: not found",
        "/dev/nvidia0\ndone",
        "done\nlooked",
    ],
)
def test_what_is_cut_or_of_another_making_is_no_answer(message: object) -> None:
    report = told("Succeeded", exitCode=0, message=message)
    assert (report.ended, report.saw) == (True, None)
    assert report.why == "it ended and said nothing that could be read"


def test_a_pod_that_failed_gives_no_answer_whatever_it_says() -> None:
    report = told("Failed", exitCode=127, reason="StartError", message="looked\ndone\n")
    assert (report.ended, report.saw, report.why) == (True, None, "StartError")


def test_one_that_runs_has_not_answered() -> None:
    report = told("Running")
    assert (report.ended, report.saw) == (False, None)


def test_what_it_saw_is_bounded_and_printable() -> None:
    lines = "\n".join(f"/dev/nvidia{number}\x1b[31m{'x' * 300}" for number in range(200))
    saw = told("Succeeded", exitCode=0, message=f"looked\n{lines}\ndone\n").saw
    assert saw is not None
    assert len(saw) == exposure.MOST_SEEN
    assert all(len(line) <= 120 and line.isprintable() for line in saw)


@pytest.mark.parametrize("smi", ["", "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)"])
def test_the_script_itself_tells_what_is_there(tmp_path: Path, smi: str) -> None:
    """In a shell of this machine, with folders of the test's for what it looks at."""
    for name in ("nvidia0", "nvidiactl") if smi else ():
        (tmp_path / name).touch()
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\necho '{smi or 'No devices found.'}'\n")
    tool.chmod(0o755)
    log = tmp_path / "log"
    made = exposure.pod(hostname="n1", tolerates="", image="busybox:1", names=NAMES)
    script = made["spec"]["containers"][0]["command"][-1]
    script = script.replace("/dev/termination-log", str(log)).replace("/dev/", f"{tmp_path}/")
    path = {"PATH": f"{tool.parent}"}  # no tool but that: a shell has all that it takes
    subprocess.run(["/bin/sh", "-c", script], check=True, env=path, timeout=10)
    saw = told("Succeeded", exitCode=0, message=log.read_text()).saw
    assert saw is not None
    assert [line.rpartition("/")[2] for line in saw] == (
        ["nvidia0", "nvidiactl", smi] if smi else []
    )
