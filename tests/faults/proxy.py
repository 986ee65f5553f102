"""Between Berth and a real API server: passes requests on, and spoils those that a rule strikes.

    with Proxy(server, ca_pem) as proxy:
        rule = proxy.strike(spoil.answer(503), where=lambda asked: asked.method == "POST")
        ...                                    # Berth talks to proxy.url
        assert rule.met

What must not live here: what a strike does (spoil.py), and what it is for (table.py).
"""

import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

_LEFT_OUT = frozenset({"host", "connection", "transfer-encoding", "content-length"})


@dataclass(frozen=True, slots=True)
class Asked:
    """A request; `path` has its query with it."""

    method: str
    path: str
    body: bytes

    @property
    def watches(self) -> bool:
        return "watch=1" in self.path


@dataclass(frozen=True, slots=True)
class Told:
    """A whole answer of the server's."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass
class Rule:
    """Strikes the first request for which `where` holds, or, of a watch, the first of its lines
    that holds `line`. `met` is how often it did."""

    spoil: "Spoil"
    where: Callable[[Asked], bool]
    line: bytes = b""
    met: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def strikes(self, asked: Asked, line: bytes = b"") -> bool:
        """Whether it does now, which it does once."""
        if self.met or bool(self.line) != bool(line) or self.line not in line:
            return False
        if not self.where(asked):
            return False
        with self._lock:
            self.met += 1
            return self.met == 1


type Spoil = Callable[["Exchange", bytes], None]
"""What happens to a request that is struck, in place of passing it on; of a watch, to its line."""


class Proxy:
    """Listens on loopback, between `with` and its end, at `url`. While `down`, it hangs up on
    everybody."""

    def __init__(self, server: str, ca_pem: str) -> None:
        self._server = urlsplit(server)
        self._tls = ssl.create_default_context(cadata=ca_pem)
        self._rules: list[Rule] = []
        self._listening = _Listening(("127.0.0.1", 0), Exchange)
        self._listening.proxy = self
        self.url = f"http://127.0.0.1:{self._listening.server_address[1]}"
        self.down = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._listening.serve_forever, args=[0.05], daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listening.shutdown()
        self._listening.server_close()

    def strike(self, spoil: Spoil, *, where: Callable[[Asked], bool], line: bytes = b"") -> Rule:
        rule = Rule(spoil, where, line)
        self._rules.append(rule)
        return rule

    def heal(self) -> None:
        """No more rules, and it answers."""
        self._rules.clear()
        self.down = False

    def struck(self, asked: Asked, line: bytes = b"") -> Rule | None:
        return next((rule for rule in list(self._rules) if rule.strikes(asked, line)), None)

    def upstream(self) -> http.client.HTTPSConnection:
        host, port = self._server.hostname, self._server.port
        assert host
        return http.client.HTTPSConnection(host, port, context=self._tls, timeout=70)


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    proxy: Proxy

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are what this is for."""


class Exchange(BaseHTTPRequestHandler):
    """One connection of a client's, request by request."""

    protocol_version = "HTTP/1.1"
    server: _Listening
    asked: Asked

    def do_GET(self) -> None:
        if self.server.proxy.down:
            self.close_connection = True
            return
        size = int(self.headers.get("Content-Length") or 0)
        self.asked = Asked(self.command, self.path, self.rfile.read(size))
        rule = self.server.proxy.struck(self.asked)
        if rule is not None:
            rule.spoil(self, b"")
        else:
            self.pass_on()

    do_POST = do_PATCH = do_DELETE = do_GET

    def pass_on(self) -> None:
        if self.server.proxy.down:  # since it was struck
            self.hang_up()
        elif self.asked.watches:
            self._pass_stream_on()
        else:
            self.tell(self.ask())

    def ask(self) -> Told:
        """Have the server do it."""
        answer = self._send()
        told = Told(answer.status, _kept(answer), answer.read())
        self._upstream.close()
        del self._upstream
        return told

    def tell(self, told: Told) -> None:
        self.send_response(told.status)
        for name, value in told.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(told.body)))
        self.end_headers()
        self.wfile.write(told.body)

    def say_nothing(self) -> None:
        """Until the client hangs up."""
        self.close_connection = True
        with suppress(OSError):
            self.connection.settimeout(70)
            self.connection.recv(1)

    def write_piece(self, data: bytes) -> None:
        """Of a stream."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test tells what went wrong."""

    @cached_property
    def _upstream(self) -> http.client.HTTPSConnection:
        return self.server.proxy.upstream()

    def _send(self) -> http.client.HTTPResponse:
        headers = {
            name: value for name, value in self.headers.items() if name.lower() not in _LEFT_OUT
        }
        asked = self.asked
        self._upstream.request(asked.method, asked.path, asked.body or None, headers)
        return self._upstream.getresponse()

    def _pass_stream_on(self) -> None:
        answer = self._send()
        try:
            if answer.status != 200:
                return self.tell(Told(answer.status, _kept(answer), answer.read()))
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for line in _lines(answer):
                if self.server.proxy.down:
                    return self.hang_up()
                rule = self.server.proxy.struck(self.asked, line)
                if rule is not None:
                    rule.spoil(self, line)
                    if self.close_connection:
                        return None
                else:
                    self.write_piece(line)
            self.wfile.write(b"0\r\n\r\n")
        finally:
            self._upstream.close()
            del self._upstream


def _kept(answer: http.client.HTTPResponse) -> tuple[tuple[str, str], ...]:
    return tuple(each for each in answer.getheaders() if each[0].lower() not in _LEFT_OUT)


def _lines(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """Whole ones, each with its end, as they come."""
    rest = b""
    while piece := answer.read1(65536):
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line + b"\n" for line in lines)
