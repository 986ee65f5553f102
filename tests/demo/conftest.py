"""Fixtures of the demo's tests. No assertions."""

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controlplane.demo.ports import free
from controlplane.embedded.place import temporary
from controlplane.embedded.process import server_account
from tests.demo.running import Running

type Start = Callable[..., Running]


@pytest.fixture
def data() -> Iterator[Path]:
    """A folder for a demo's data that also `nobody` can reach, as a project's mostly is."""
    folder, _lock = temporary("demotest", server_account())
    yield folder / "data"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def start(data: Path) -> Iterator[Start]:
    """Starts demos; those that still run at the end of the test are killed."""
    demos: list[Running] = []

    def begin(port: str = "", kin: str = "loyal") -> Running:
        # Not the default: two workers that begin at once would both see it free.
        demos.append(Running(data, port or str(free()), kin))
        return demos[-1]

    yield begin
    for demo in demos:
        if not demo.over():
            demo.process.send_signal(signal.SIGKILL)
            demo.process.wait()
