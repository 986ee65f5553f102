"""A server that answers each request with raw bytes, for what a sound server would never send."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

type Act = Callable[[socket.socket], None]


def answer(status: str, body: bytes = b"{}", **headers: str) -> Act:
    """A whole answer, after which the connection is closed, as it says: a client that
    pools connections would otherwise put its next request on one that is about to go."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "Connection: close"]
    head = "\r\n".join([f"HTTP/1.1 {status}", *lines])
    return raw(head.encode() + b"\r\n\r\n" + body)


def raw(*pieces: bytes) -> Act:
    """Bytes as they are, after which the connection is closed."""

    def act(connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)

    return act


def stream(*lines: bytes, then: Act | None = None) -> Act:
    """The beginning of an endless answer, and what comes after it."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = [b"%x\r\n%s\r\n" % (len(line), line) for line in lines]

    def act(connection: socket.socket) -> None:
        raw(head, *chunks)(connection)
        if then is not None:
            then(connection)

    return act


@dataclass
class Scripted:
    """`requests` are the heads of those that came, in order."""

    url: str
    requests: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def silence(self, connection: socket.socket) -> None:
        """Stay connected and say nothing more."""
        self.ended.wait(30)


@contextmanager
def scripted(make: Callable[[Scripted], Act], *, tls: bool = False) -> Iterator[Scripted]:
    """A server on loopback that does the same on each connection.

    With `tls` it begins at once, in place of an answer to the client's greeting.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        scheme = "https" if tls else "http"
        server = Scripted(f"{scheme}://127.0.0.1:{listener.getsockname()[1]}")
        act = make(server)

        def serve(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                head = b""
                while not tls and b"\r\n\r\n" not in head:
                    piece = connection.recv(65536)
                    if not piece:
                        return
                    head += piece
                if not tls:
                    server.requests.append(head.decode())
                act(connection)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield server
        finally:
            server.ended.set()
            listener.shutdown(socket.SHUT_RDWR)
