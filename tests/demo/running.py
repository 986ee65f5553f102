"""Starts the stand-in demo and looks at its processes from outside.

What must not live here: the tests.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.waiting import eventually

PROJECT = Path(__file__).resolve().parents[2]
DEADLINE_S = 60.0


def wait_until(check: Callable[[], bool], what: str) -> None:
    """Poll until `check`; the failure says what was waited for."""
    eventually(what, check, within_s=DEADLINE_S, every_s=0.02)


def descendants(pid: int) -> set[int]:
    """The live processes below `pid`, zombies left out."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            rest = entry.read_text().rpartition(")")[2].split()
            if rest[0] != "Z":
                children.setdefault(int(rest[1]), []).append(int(entry.parent.name))
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found.update(below)
        waiting += below
    return found


def alive(pids: set[int]) -> set[int]:
    """Those of `pids` that still run; a zombie does not."""
    running = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                running.add(pid)
    return running


class Running:
    """One stand-in demo as a child process; its output goes to a file."""

    def __init__(self, data: Path, port: str, kin: str = "loyal") -> None:
        self.data = data
        self._said = data.with_name(f"{data.name}.{time.monotonic_ns()}.out")
        environ = {
            name: value
            for name, value in os.environ.items()
            if name not in {"DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL"}
        }
        with self._said.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.demo.program", str(data), port, kin],
                cwd=PROJECT,
                env=environ,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        return self._said.read_text()

    @property
    def url(self) -> str:
        found = re.search(r"Berth is ready: (\S+)", self.said)
        if found is None:
            raise AssertionError(self.said)
        return found.group(1)

    def starts(self) -> list[int]:
        """The process ids of the worker stand-in, one for each of its starts."""
        try:
            return [int(line) for line in (self.data / "starts.txt").read_text().split()]
        except FileNotFoundError:
            return []

    def ready(self) -> "Running":
        """Wait for the URL to be printed and the last child to have begun."""
        wait_until(lambda: "Berth is ready" in self.said or self.over(), "ready")
        if self.over():
            raise AssertionError(self.said)
        before = self.said.count("worker       | started")
        wait_until(lambda: self.said.count("worker       | started") >= max(before, 1), "worker")
        return self

    def over(self) -> bool:
        return self.process.poll() is not None

    def ask_to_end(self, number: int = signal.SIGINT) -> int:
        """Send the signal and return the exit status."""
        self.process.send_signal(number)
        wait_until(self.over, "the end of the demo")
        return self.process.wait()
