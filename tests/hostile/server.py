"""An API server over TLS that is sound until it is told to be hostile.

Whatever it is not told to be hostile at goes on to a simulated cluster and back, so that work runs
there before, and after. A request and its answer are one connection.
"""

import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.clusters.authority import Authority

type Act = Callable[["Line"], None]
"""What is done with a request in place of an answer; the connection is closed after it."""

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_LISTED = {"nodes", "pods", "resourceslices", "resourceclaims"}
_WATCHES = re.compile(rf"GET \S+/v1/({'|'.join(_LISTED)})\?watch=1")
GONE = b"HTTP/1.1 410 Gone\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


@dataclass
class Line:
    """One request, `head`, and the way back to whoever asks."""

    head: str
    _connection: ssl.SSLSocket
    _over: threading.Event

    def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            self._connection.sendall(piece)

    def pause(self, seconds: float) -> None:
        """Nothing is said for so long. Raises OSError when nobody is to be answered any more."""
        if self._over.wait(seconds):
            raise OSError

    @property
    def asked_token(self) -> str:
        """The token of the page that it asks for, "" for the first."""
        found = re.search(r"[?&]continue=([^& ]+)", self.head)
        return found[1] if found else ""


@dataclass
class Hostile:
    """`asked` is the heads of the requests that were answered with hostility."""

    url: str
    _upstream: str
    asked: list[str] = field(default_factory=list)
    _at: re.Pattern[str] | None = None
    _act: Act | None = None
    _over: threading.Event = field(default_factory=threading.Event)
    _expired: set[str] = field(default_factory=set)

    def behave(self, at: str, act: Act) -> None:
        """From now on requests whose first line has `at`, a pattern, are answered so. Whoever
        watches is sent away, and lists anew unless it is at watches."""
        self.asked.clear()
        self._at, self._act = re.compile(at), act
        self._expired = set() if "watch" in at else set(_LISTED)
        self._send_away()

    def heal(self) -> None:
        self._at = self._act = None
        self._expired = set()
        self._send_away()

    def _send_away(self) -> None:
        over, self._over = self._over, threading.Event()
        over.set()

    def serve(self, connection: ssl.SSLSocket) -> None:
        request = _request(connection)
        if request is None:
            return
        head = request.partition(b"\r\n\r\n")[0].decode()
        first, at, act, over = head.partition("\r\n")[0], self._at, self._act, self._over
        line = Line(head, connection, over)
        if at is not None and act is not None and at.search(first):
            self.asked.append(head)
            act(line)
        elif (watched := _WATCHES.match(first)) and watched[1] in self._expired:
            self._expired.discard(watched[1])
            line.say(GONE)
        else:
            self._forward(request, line)

    def _forward(self, request: bytes, line: Line) -> None:
        head, _, body = request.partition(b"\r\n\r\n")
        place = urlsplit(self._upstream)
        with socket.create_connection((place.hostname, place.port)) as upstream:
            upstream.sendall(head + b"\r\nConnection: close\r\n\r\n" + body)
            upstream.settimeout(0.05)
            while True:
                try:
                    data = upstream.recv(65536)
                except TimeoutError:
                    line.pause(0)
                    continue
                if not data:
                    return
                line.say(data)


def _request(connection: ssl.SSLSocket) -> bytes | None:
    """Head and body; None where whoever connected says no more."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    found = _LENGTH.search(head)
    while found and len(body) < int(found[1]):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def hostile(upstream: str, authority: Authority, folder: Path) -> Iterator[Hostile]:
    """On loopback, in threads; its certificate is of that authority."""
    own = authority.issue("server")
    (folder / "server.pem").write_text(own.certificate_pem + own.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        server = Hostile(f"https://127.0.0.1:{listener.getsockname()[1]}", upstream)

        def serve(plain: socket.socket) -> None:
            with suppress(OSError), context.wrap_socket(plain, server_side=True) as connection:
                server.serve(connection)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    plain, _ = listener.accept()
                    threading.Thread(target=serve, args=(plain,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield server
        finally:
            server.heal()
            listener.shutdown(socket.SHUT_RDWR)
