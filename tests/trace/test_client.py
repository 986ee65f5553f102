"""The replay's client when the server dies under it: what was sent is there once."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from controlplane.trace.client import Client, Refused
from controlplane.trace.submission import Json

TOKENS = {"LS": "token"}
ITEMS = [{"name": "pod-1"}, {"name": "pod-2"}]


class Server(ThreadingHTTPServer):
    """Keeps what was submitted. `deaths` are what befalls the next submissions: "before" they are
    stored, "after" it, "busy" for a first request that still runs, "conflict" for a refusal."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.deaths: list[str] = []
        self.stored: list[Json] = []
        self.keys: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        if "projects" in self.path:
            self._answer(200, {"items": [{"id": "p1"}]})
            return
        names = {item["name"] for item in self.server.stored}
        asked = self.path.partition("name=")[2]
        self._answer(200, {"items": [asked] if asked in names else []})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.keys.append(self.headers["Idempotency-Key"])
        death = self.server.deaths.pop(0) if self.server.deaths else ""
        if death in {"busy", "conflict"}:
            code = "in-flight" if death == "busy" else "conflict"
            self._answer(409, {"code": code})
            return
        if death != "before":
            self.server.stored += body["workloads"]
        if death:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            self._answer(201, {"items": body["workloads"]})

    def _answer(self, status: int, content: Json) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("deaths", "sent"),
    [
        ([], 1),
        (["before"], 2),
        (["after"], 1),
        (["before", "after"], 2),
        (["busy"], 2),
        (["before", "busy", "before"], 4),
    ],
)
def test_a_batch_is_there_once_however_the_server_dies(
    server: Server, deaths: list[str], sent: int
) -> None:
    server.deaths = list(deaths)
    Client(server.url, TOKENS).submit("LS", ITEMS)
    assert server.stored == ITEMS
    assert len(server.keys) == sent
    assert len(set(server.keys)) == 1
    assert server.keys[0]


def test_each_batch_has_a_key_of_its_own(server: Server) -> None:
    client = Client(server.url, TOKENS)
    client.submit("LS", ITEMS[:1])
    client.submit("LS", ITEMS[1:])
    assert len(set(server.keys)) == 2


def test_a_server_that_stays_away_ends_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    client = Client(f"http://127.0.0.1:{port}/", TOKENS, away_s=0.0)
    with pytest.raises(Refused, match="the server has gone"):
        client.submit("LS", ITEMS)


def test_another_refusal_is_told_with_its_status(server: Server) -> None:
    server.deaths = ["conflict"]
    with pytest.raises(Refused, match="POST workloads/batch answered 409"):
        Client(server.url, TOKENS).submit("LS", ITEMS)
