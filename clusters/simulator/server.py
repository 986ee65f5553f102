"""Runs a simulated cluster: the server's life, its state file, its command-line options."""

import argparse
import asyncio
import contextlib
import gc
import logging
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import uvicorn

from clusters.simulator import layouts
from clusters.simulator.answers import Json
from clusters.simulator.app import App
from clusters.simulator.cluster import Cluster

logger = logging.getLogger(__name__)

TOKEN = "BERTH_SIMULATOR_TOKEN"  # noqa: S105  # the variable's name
SAVE_EACH_S = 3.0


@dataclass(frozen=True, slots=True)
class Options:
    """`port` 0 takes a free one. `nodes` is a CSV that is used instead of `layout`."""

    port: int
    name: str = "simulated"
    layout: str = "demo-north"
    nodes: Path | None = None
    state: Path | None = None
    speed: float | None = None
    start_delay_s: float = 0.2
    prefix: str = "berth.dev"
    window: int = 10_000
    bookmark_s: float = 10.0


class Server(uvicorn.Server):
    """uvicorn, with watches that end when it stops and a state that is saved."""

    def __init__(self, options: Options, *, token: str) -> None:
        self.options = options
        nodes = layouts.load(str(options.nodes or options.layout), prefix=options.prefix)
        self.cluster = Cluster(
            nodes,
            start_delay_s=options.start_delay_s,
            speed=options.speed,
            window=options.window,
            saved=_saved(options.state),
        )
        self.app = App(self.cluster, token=token, bookmark_s=options.bookmark_s)
        self._saved_revision = 0
        self._one_save = asyncio.Lock()
        super().__init__(
            uvicorn.Config(
                self.app,
                host="127.0.0.1",
                port=options.port,
                http="httptools",
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                timeout_keep_alive=120,
                timeout_graceful_shutdown=2,
            )
        )

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn calls each injected cut an error.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self.cluster.resume()
        saving = asyncio.create_task(self._save_now_and_then())
        try:
            await super().serve(sockets)
        finally:
            saving.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.app.watches.close()
        await super().shutdown(sockets)
        # Not after `serve`: uvicorn ends that by raising the signal once more.
        async with self._one_save:
            self._save(self.cluster.state())

    async def _save_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(SAVE_EACH_S)
            if self.options.state and self.cluster.store.revision != self._saved_revision:
                async with self._one_save:
                    self._saved_revision = self.cluster.store.revision
                    await asyncio.to_thread(self._save, self.cluster.state())

    def _save(self, state: bytes) -> None:
        """Replace the state file in one step; a full disk costs the state, not the server."""
        path = self.options.state
        if path is None:
            return
        try:
            fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
            fresh.touch(mode=0o600)
            fresh.write_bytes(state)
            fresh.replace(path)
        except OSError as error:
            logger.warning("the state could not be saved: %s", error.strerror)


def _saved(path: Path | None) -> Json | None:
    if path is None or not path.exists():
        return None
    try:
        saved = orjson.loads(path.read_bytes())
    except ValueError:
        saved = None
    if not isinstance(saved, dict) or {"revision", "objects"} - saved.keys():
        raise layouts.BadLayout(f"{path.name} is no saved state: remove it.")
    return saved


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    built_in = ", ".join(sorted(layouts.BUILT_IN))
    add("--name", default="simulated", help="what it is called in what it prints")
    add("--port", type=int, required=True, help="on 127.0.0.1; 0 takes a free one")
    add("--layout", default="demo-north", help=f"{built_in}, or a JSON file of pools")
    add("--nodes", type=Path, help="a CSV of nodes (sn,cpu_milli,memory_mib,gpu,model)")
    add("--state", type=Path, help="a file that keeps the pods over a restart")
    add("--speed", type=float, help="how many times faster pods run than the clock says")
    add("--start-delay", type=float, default=0.2, help="real seconds until a container starts")


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    """Many long-lived objects and no cycles among them: look for garbage seldom."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def run(arguments: dict[str, object]) -> int:
    """Serve until SIGINT or SIGTERM. The exit status; what is wrong goes to stderr."""
    token = os.environ.get(TOKEN, "")
    if len(token) < 16:
        print(f"Set {TOKEN} to a token of at least 16 characters.", file=sys.stderr)
        return 2
    prefix = os.environ.get("BERTH_PREFIX", "berth.dev")
    keys = {"start_delay": "start_delay_s"}
    fields = {keys.get(key, key): value for key, value in arguments.items()}
    try:
        options = Options(**fields, prefix=prefix)  # type: ignore[arg-type]  # argparse's types
        server = Server(options, token=token)
        bound = listening(options.port)
    except layouts.BadLayout as error:
        print(f"simulate_cluster: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(
            f"simulate_cluster: {error.filename or options.port}: {error.strerror}.",
            file=sys.stderr,
        )
        return 2
    host, port = bound.getsockname()
    machines = len(server.cluster.store.tables["nodes"])
    print(f"{options.name}: {machines} simulated machines on http://{host}:{port}", flush=True)
    with _few_collections(), contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[bound])
    return 0


def listening(port: int) -> socket.socket:
    """A socket on loopback; its port is known before the server runs."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    bound.listen(2048)
    bound.setblocking(False)
    return bound
