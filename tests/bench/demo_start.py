"""How soon `make demo` shows a page: from a clean clone with a warm package cache, and again."""

import http.client
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from controlplane.demo.ports import HOST, free
from tests.bench.report import ROOT, Figures, plain_environ

_WITHIN_S = 300.0
_POLL_S = 0.05
# A clone makes an environment of its own.
_OURS = frozenset({"VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT", "PYTHONPATH", "PYTHONPYCACHEPREFIX"})


def take(figures: Figures) -> None:
    """Clone what is committed, start twice, add the seconds until the sign-in page answers."""
    # Below a folder that the database's account can pass.
    scratch = Path(tempfile.mkdtemp(prefix="berth-bench-"))
    scratch.chmod(0o711)
    try:
        clone = scratch / "berth"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        for name in ("demo_first_start_s", "demo_second_start_s"):
            figures.add(name, _start(clone, scratch / f"{name}.out"), "s")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _start(clone: Path, said: Path) -> float:
    """Seconds from the command to the page; the demo is stopped again."""
    port = free()
    began = time.perf_counter()
    with said.open("wb") as out:
        demo = subprocess.Popen(
            ["make", "demo", f"ARGS=--port {port}"],
            cwd=clone,
            env=plain_environ(_OURS),
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while not _answers(port):
            if demo.poll() is not None or time.perf_counter() - began > _WITHIN_S:
                raise SystemExit(f"bench-path: make demo did not start:\n{said.read_text()}")
            time.sleep(_POLL_S)
        return time.perf_counter() - began
    finally:
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGINT)
        demo.wait(timeout=60)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/sign-in")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
