"""A simulated cluster for tests: in a thread of this process or as a process of its own.

    def test_it(simulator):
        cluster = simulator.connect()          # a ClusterPort
        simulator.fault(kind="throttle", verb="create", resource="pods", seconds=2)

Import `simulator` into a conftest.py to use it as a fixture; `simulation(...)` starts one by hand.
"""

import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
import urllib3

from clusters import credential
from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.client import Client
from clusters.adapters.kubernetes.names import Names
from clusters.models import Cluster
from clusters.services import credentials
from clusters.simulator.server import TOKEN, Options, Server, listening
from tests.networks import LOOPBACK
from tests.waiting import eventually

INSTALLATION = "berth"
PREFIX = "berth.dev"


@dataclass
class Simulator:
    """A running simulated cluster: where it is, and what can be done to it."""

    server: str
    token: str
    stop: Callable[[], None] = lambda: None
    _http: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(retries=False))

    def connect(
        self,
        *,
        installation: str = INSTALLATION,
        token: str | None = None,
        page: int = 500,
        read_timeout_s: float = 5.0,
        watch_timeout_s: int = 60,
        watch_read_timeout_s: float = 70.0,
    ) -> KubernetesCluster:
        """The real adapter on it."""
        return KubernetesCluster(
            Client(
                server=self.server,
                identity=token or self.token,
                allowed=LOOPBACK,
                read_timeout_s=read_timeout_s,
            ),
            names=Names(prefix=PREFIX, installation=installation),
            page=page,
            watch_timeout_s=watch_timeout_s,
            watch_read_timeout_s=watch_read_timeout_s,
        )

    def call(self, method: str, path: str, body: object = None) -> Any:  # Any: JSON
        """A request as an administrator; raises AssertionError when it is refused."""
        answer = self._http.request(
            method,
            self.server + path,
            body=None if body is None else orjson.dumps(body),
            headers={
                "Authorization": f"Bearer {self.token}",
                "Content-Type": f"application/{'merge-patch+' if method == 'PATCH' else ''}json",
            },
            timeout=60,
        )
        assert answer.status < 300, answer.data
        return orjson.loads(answer.data)

    def text(self, path: str) -> str:
        """What a GET answers, as it is."""
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = self._http.request("GET", self.server + path, headers=headers, timeout=60)
        assert answer.status == 200, answer.data
        return answer.data.decode()

    def fault(self, **fault: object) -> Any:  # Any: JSON
        """Inject one (see clusters/simulator/faults.py), or act on a machine: lose-node,
        return-node, delete-node, cordon-node, expose-node, evict-pod, disrupt-pod,
        set-allocatable, pod-says, skew-clocks, forget-history."""
        return self.call("POST", "/_simulator/faults", fault)

    def heal(self) -> None:
        """No more faults of requests and watches."""
        self.call("DELETE", "/_simulator/faults")

    def stats(self) -> Any:  # Any: JSON
        return self.call("GET", "/_simulator/stats")

    def store_credential(self, cluster: Cluster, *, measured: bool = False) -> None:
        """What `clusters.registry.connect` opens; with `measured` it says too that the use of its
        devices is asked there."""
        here = {"server": self.server, "token": self.token}
        store_credential(cluster, **here, **({"metrics": here} if measured else {}))


def store_credential(cluster: Cluster, **fields: Any) -> None:  # Any: as `credential.read`
    """The cluster is reached so from now on."""
    credentials.store(
        cluster=cluster,
        credential=credential.read(fields),
        actor="system:test",
        actor_name="test",
        at=datetime.now(UTC),
    )


@contextmanager
def simulation(
    *,
    layout: str = "demo-north",
    nodes: Path | None = None,
    state: Path | None = None,
    speed: float | None = None,
    start_delay_s: float = 0.01,
    window: int = 10_000,
    bookmark_s: float = 10.0,
) -> Iterator[Simulator]:
    """A simulated cluster in a thread of this process."""
    options = Options(
        port=0,
        layout=layout,
        nodes=nodes,
        state=state,
        speed=speed,
        start_delay_s=start_delay_s,
        prefix=PREFIX,
        window=window,
        bookmark_s=bookmark_s,
    )
    token = secrets.token_urlsafe(24)
    server = Server(options, token=token)
    socket = listening(0)
    port = socket.getsockname()[1]
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()

    def stop() -> None:
        server.should_exit = True
        thread.join(timeout=10)
        assert not thread.is_alive(), "the simulator does not stop"

    try:
        eventually("the simulator serves", lambda: server.started)
        yield Simulator(f"http://127.0.0.1:{port}", token, stop)
    finally:
        stop()


@contextmanager
def simulator_process(*arguments: str, env: dict[str, str] | None = None) -> Iterator[Simulator]:
    """A simulated cluster as a process of its own, with the options of `simulate_cluster`."""
    with listening(0) as free:
        port = free.getsockname()[1]
    token = secrets.token_urlsafe(24)
    process = subprocess.Popen(
        [sys.executable, "-m", "clusters.simulator", "--port", str(port), *arguments],
        env={**os.environ, **(env or {}), TOKEN: token},
    )
    simulator = Simulator(f"http://127.0.0.1:{port}", token)
    try:
        eventually("the simulator answers", lambda: _answers(simulator, process))
        yield simulator
    finally:
        process.terminate()
        process.wait(timeout=20)


def _answers(simulator: Simulator, process: "subprocess.Popen[bytes]") -> bool:
    assert process.poll() is None, "the simulator ended at once"
    try:
        simulator.stats()
    except urllib3.exceptions.HTTPError:
        return False
    return True


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    """A fresh cluster of the layout demo-north, whose pods start after 10 ms."""
    with simulation() as running:
        yield running
