"""`./dev pack`, unpacked where no network is: the same commands make what works."""

import fcntl
import os
import shutil
import socket
import struct
import subprocess
from pathlib import Path

import pytest

from tests.bench.report import plain_environ
from tests.demo.running import PROJECT

SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `airgap/pack` makes, unpacked."""
    folder = tmp_path_factory.mktemp("airgap")
    own = PROJECT / ".dev/uv/bin/uv"
    uv = os.environ.get("UV") or shutil.which("uv") or str(own)
    packing = subprocess.run(
        ["airgap/pack", folder / "berth.tar.gz"],
        cwd=PROJECT,
        env={**os.environ, "UV": uv},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert packing.returncode == 0, packing.stdout
    shutil.unpack_archive(folder / "berth.tar.gz", folder, filter="data")
    return folder / "berth"


def alone() -> None:
    """Leave the process a network with a loopback and nothing else."""
    os.unshare(os.CLONE_NEWNET | (os.CLONE_NEWUSER if os.geteuid() else 0))
    up = struct.pack("16sh", b"lo", IFF_UP | IFF_RUNNING)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, up)


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        env=plain_environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        preexec_fn=alone,
    )


def test_the_smoke_run_passes_where_no_network_is(unpacked: Path) -> None:
    done = run("./dev", "smoke", folder=unpacked)
    assert done.returncode == 0, done.stdout
    assert "smoke passed" in done.stdout


def test_what_only_a_checkout_can_do_is_told(unpacked: Path) -> None:
    for command in ("pack", "test"):
        done = run("./dev", command, folder=unpacked)
        assert (done.returncode, done.stdout) == (
            2,
            f"dev: {command} needs a checkout; an installation that was unpacked has demo, smoke"
            " and manage.\n",
        )


def test_another_python_is_told_which_one_is_wanted(unpacked: Path, tmp_path: Path) -> None:
    folder = tmp_path / "berth"
    (folder / "airgap").mkdir(parents=True)
    shutil.copy(unpacked / "airgap/install", folder / "airgap/install")
    (folder / "airgap/tag").write_text("cp399-sparc\n")
    done = run("airgap/install", "python3", folder=folder)
    assert done.returncode == 1
    assert "packed for cp399-sparc, and python3 is cp3" in done.stdout
    assert not (folder / ".venv").exists()
