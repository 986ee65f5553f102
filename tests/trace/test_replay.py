"""A small replay through the real processes, and the same again with each of them killed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.trace.killing import VICTIMS
from controlplane.trace.report import Report
from tests.demo.running import PROJECT
from tests.trace import files

PODS = 150
# Both are waited for when a worker is killed; in seconds.
QUICK = {"BERTH_LEASE_S": "3", "BERTH_CLAIM_S": "6"}


def replay(folder: Path, *options: str) -> tuple[int, str]:
    """Exit status and output of `berth import-trace`, which brings its own servers."""
    servers = {"DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL", "DJANGO_SETTINGS_MODULE"}
    environ = {name: value for name, value in os.environ.items() if name not in servers}
    command = [
        sys.executable, "-c", "from controlplane.cli.main import main; main()", "import-trace",
        str(folder), "--nodes", "nodes.csv", "--pods", "pods.csv.gz", *options,
    ]  # fmt: skip
    done = subprocess.run(
        command,
        cwd=folder,
        env={**environ, **QUICK, "PYTHONPATH": str(PROJECT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1200,
    )
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trace")
    files.nodes(folder / "nodes.csv")
    files.pods(folder / "pods.csv.gz", PODS, free=False)
    return folder


@pytest.fixture(scope="module")
def undisturbed(trace: Path) -> Report:
    """The report of a replay in which nothing was killed."""
    status, said = replay(trace, "--json", "undisturbed.json")
    assert status == 0, said
    report: Report = json.loads((trace / "undisturbed.json").read_text())
    return report


def test_every_pod_comes_through_and_each_gpu_second_is_metered_once(undisturbed: Report) -> None:
    assert undisturbed["counts"] == dict.fromkeys(
        ("submitted", "admitted", "bound", "finished"), PODS
    )
    assert undisturbed["problems"] == []
    assert undisturbed["submitted_to_bound_per_s"] > 0
    assert len(undisturbed["allocation"]) == 20
    assert set(undisturbed["processes"]) == {
        "web", "schedule", "dispatch", "periodic", "watcher", "beat", "openb", "postgres",
        "valkey",
    }  # fmt: skip
    assert all(row["peak_mib"] > 1 for row in undisturbed["processes"].values())


def test_processes_that_are_killed_leave_the_same_sums(trace: Path, undisturbed: Report) -> None:
    kills = len(VICTIMS)
    options = ("--kill", str(kills), "--seed", "4", "--reference", "undisturbed.json")
    status, said = replay(trace, *options, "--json", "killed.json")
    assert status == 0, said
    assert f"{kills} kills, 0 problems" in said
    assert "the same sums" in said
    killed = json.loads((trace / "killed.json").read_text())["kills"]
    assert sorted(who.split()[0] for who in killed) == sorted(VICTIMS)


def test_a_bad_row_ends_it_before_anything_starts(trace: Path) -> None:
    (trace / "bad.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn,1,1,?,\n")
    status, said = replay(trace, "--nodes", "bad.csv")
    assert status == 1
    assert said.strip() == "bad.csv, line 2: gpu has to be a whole number from 0 to 64, not '?'."
