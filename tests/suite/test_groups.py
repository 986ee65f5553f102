"""Which tests one worker runs alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.groups import INSTALLATIONS, KUBE, group_of


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("tests/kube/test_probe.py::test_it", KUBE),
        ("tests/faults/test_matrix.py::test_it[401 in open]", KUBE),
        ("tests/contract/test_cluster_port.py::test_it[kubernetes-a]", KUBE),
        ("tests/contract/test_cluster_port.py::test_it[a-kubernetes]", KUBE),
        ("tests/demo/test_smoke.py::test_it", INSTALLATIONS),
        ("tests/trace/test_replay.py::test_it", INSTALLATIONS),
        ("tests/contract/test_cluster_port.py::test_it[simulator]", None),
        ("tests/web/test_home.py::test_it[kubernetes]", None),
    ],
)
def test_a_test_is_of_the_group_whose_server_it_shares(nodeid: str, group: str | None) -> None:
    assert group_of(nodeid) == (group or nodeid)


SUITE = """
import os
import pytest

@pytest.mark.parametrize("nth", range(20))
def test_it(nth):
    with open("workers", "a") as file:
        file.write(os.environ["PYTEST_XDIST_WORKER"] + chr(10))
"""


def test_all_of_a_group_run_in_one_worker(tmp_path: Path) -> None:
    folder = tmp_path / "tests/kube"
    folder.mkdir(parents=True)
    for name in ("test_one.py", "test_two.py"):
        (folder / name).write_text(SUITE)
    environ = {name: value for name, value in os.environ.items() if name != "PYTEST_XDIST_WORKER"}
    plugins = ["-p", "tests.plugin", "-p", "no:django", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, "-n", "2", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    workers = (tmp_path / "workers").read_text().split()
    assert len(workers) == 40
    assert len(set(workers)) == 1
