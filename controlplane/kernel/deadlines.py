"""Connections to allowed addresses alone, which a server can't keep from being made by dripping:
that has a limit as a whole.

A socket's own time-out begins anew with each byte. What must not live here: anything that knows
what is sent.
"""

import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

from controlplane.kernel.addresses import Allowed

_IDLE_S = 60.0


@dataclass(slots=True)
class _Step:
    deadline: float
    connection: "GuardedConnection | None"


class Watchdog:
    """Breaks the connection of each step that takes longer than `limit_s`.

    One thread for all connections; it starts with a step and ends after a while without any, so
    that nobody has to stop it.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._steps: deque[_Step] = deque()  # all have the same limit, so the oldest ends first
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def watching(self, connection: "GuardedConnection") -> Iterator[None]:
        step = _Step(time.monotonic() + self._limit_s, connection)
        with self._lock:
            self._steps.append(step)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
                self._thread.start()
        self._news.set()
        try:
            yield
        finally:
            step.connection = None

    def _run(self) -> None:
        while self._wait_for_steps():
            step = self._steps[0]
            left_s = step.deadline - time.monotonic()
            if step.connection is not None and left_s > 0:
                time.sleep(left_s)
                continue
            self._steps.popleft()
            if (connection := step.connection) is not None:
                connection.hang_up()

    def _wait_for_steps(self) -> bool:
        """Whether there is a step; False, and the thread's place given up, when none comes."""
        self._news.clear()
        if not self._steps:
            self._news.wait(_IDLE_S)
        with self._lock:
            if not self._steps:
                self._thread = None
            return bool(self._steps)


class GuardedConnection(HTTPConnection):
    """Connecting is watched."""

    def __init__(
        self, *args: Any, watchdog: Watchdog, allowed: Allowed, **kwargs: Any
    ) -> None:  # Any: urllib3's
        super().__init__(*args, **kwargs)
        self._watchdog = watchdog
        self._allowed = allowed
        self._line: socket.socket | None = None

    def connect(self) -> None:
        with self._watchdog.watching(self):
            super().connect()

    def hang_up(self) -> None:
        """From another thread: whoever reads meets the end of the stream."""
        if (line := self._line) is not None:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        super().close()
        if (line := self._line) is not None:
            self._line = None
            line.close()

    def _new_conn(self) -> socket.socket:
        """The library's own looks the name up itself, where nothing can check the answer."""
        try:
            connected = self._allowed.connect(
                self._dns_host,
                self.port,
                timeout_s=self.timeout,
                options=self.socket_options or (),
            )
        except socket.gaierror as error:
            raise NameResolutionError(self.host, self, error) from error
        except TimeoutError as error:
            raise ConnectTimeoutError(self, f"{self.host} takes no connection") from error
        except OSError as error:
            raise NewConnectionError(self, f"{self.host}: {error}") from error
        # TLS takes the socket away from this object; its double still reaches the connection.
        self._line = connected.dup()
        return connected


class GuardedTlsConnection(GuardedConnection, HTTPSConnection):
    """The same over TLS, handshake included."""
