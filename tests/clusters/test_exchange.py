"""One request, one whole answer, however it is framed and cut into pieces."""

import http.client
import socket
from dataclasses import dataclass, field

import pytest
from urllib3.connection import HTTPConnection

from clusters.adapters.kubernetes.client import Client
from clusters.adapters.kubernetes.exchange import Answer, TooLarge, exchange
from clusters.port import ClusterError
from tests.clusters.scripted import Act, answer, scripted
from tests.networks import LOOPBACK

pytestmark = pytest.mark.part_simulator

OK = b"HTTP/1.1 200 OK\r\n"
SIZED = OK + b"Content-Length: 4\r\n\r\nbody"


def fed(*pieces: bytes) -> Answer:
    answer = Answer()
    for piece in pieces:
        answer.feed(piece)
    return answer


@pytest.mark.parametrize(
    ("said", "goes_on"),
    [
        (SIZED, True),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n", True),
        (OK + b"Connection: close\r\nContent-Length: 4\r\n\r\nbody", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nbody", False),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + SIZED, True),
    ],
)
def test_an_answer_is_whole_at_its_end_wherever_it_is_cut(said: bytes, goes_on: bool) -> None:
    for cut in range(1, len(said)):
        answer = fed(said[:cut])
        assert not answer.whole
        answer.feed(said[cut:])
        assert (answer.whole, answer.status, answer.body) == (True, 200, b"body")
        assert answer.goes_on == goes_on


def test_a_body_of_no_said_length_ends_with_the_connection() -> None:
    answer = fed(b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 7\r\n\r\n", b"bo", b"dy")
    assert not answer.whole
    answer.feed(b"")
    assert (answer.whole, answer.goes_on) == (True, False)
    assert (answer.status, answer.body, answer.retry_after) == (503, b"body", "7")


def test_an_answer_without_a_body_is_whole_with_its_head() -> None:
    answer = fed(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert (answer.whole, answer.status, answer.body) == (True, 204, b"")


@pytest.mark.parametrize(
    "pieces",
    [
        (b"",),
        (b"HTTP/1.1 200 O", b""),
        (OK + b"Content-Length: 4\r\n\r\nbod", b""),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b""),
        (SIZED + SIZED,),
        (SIZED + b"garbage",),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\nxx",),
        (OK + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nbody",),
        (b"SSH-2.0-OpenSSH\r\n",),
    ],
)
def test_what_is_not_one_whole_answer_is_refused(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(http.client.HTTPException):
        fed(*pieces)


@dataclass
class Line:
    """A socket that has its answer ready, and notes in which pieces it was asked."""

    answer: bytes
    sent: list[bytes] = field(default_factory=list)

    def settimeout(self, _: float) -> None: ...

    def sendall(self, data: bytes) -> None:
        self.sent.append(data)
        if self.answer.startswith(b"HTTP/1.1 413"):
            raise BrokenPipeError

    def recv(self, most: int) -> bytes:
        piece, self.answer = self.answer[:most], self.answer[most:]
        return piece


def asked(line: Line, *, largest: int = 1000) -> Answer:
    connection = HTTPConnection("example.org")
    connection.sock = line  # what is used of one
    request = b"POST / HTTP/1.1\r\n\r\nbody"
    return exchange(connection, request, within_s=5.0, silence_s=5.0, largest=largest)


def test_a_request_goes_out_in_one_piece() -> None:
    line = Line(SIZED)
    assert asked(line).body == b"body"
    assert line.sent == [b"POST / HTTP/1.1\r\n\r\nbody"]


def test_the_answer_of_a_server_that_stopped_listening_is_heard() -> None:
    assert asked(Line(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")).status == 413


def test_an_endless_head_is_not_kept() -> None:
    with pytest.raises(TooLarge):
        asked(Line(OK + b"X-Long: " + b"x" * 100_000))


@pytest.mark.parametrize("before", [OK, OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"])
def test_a_header_that_never_ends_is_not_kept(before: bytes) -> None:
    answer = fed(before + b"X-Long: ", b"x" * 60_000)
    with pytest.raises(http.client.HTTPException, match="does not end"):
        answer.feed(b"x" * 60_000)


def test_a_body_of_many_small_chunks_is_read() -> None:
    answer = fed(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(10):
        answer.feed(b"1\r\nx\r\n" * 3000)
    answer.feed(b"0\r\n\r\n")
    assert (answer.whole, len(answer.body)) == (True, 30_000)


def test_an_early_refusal_is_heard_though_the_connection_is_reset() -> None:
    def refuse(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")

    with scripted(lambda _: refuse) as server:
        client = Client(server=server.url, identity="t" * 20, allowed=LOOPBACK)
        with pytest.raises(ClusterError, match="413"):
            client.call("POST", "/x", body={"much": "x" * (8 << 20)})


def test_a_server_named_in_any_letters_is_asked_in_ascii() -> None:
    client = Client(
        server="https://kübe.example:6443/prefix-ü", identity="t" * 20, allowed=LOOPBACK
    )
    with pytest.raises(ClusterError, match="xn--kbe-hoa"):
        client.call("GET", "/version")


def test_a_connection_is_used_again_unless_the_server_closes_it() -> None:
    def twice(connection: socket.socket) -> None:
        for _ in range(2):
            connection.sendall(OK + b"Content-Length: 2\r\n\r\n{}")
            connection.recv(65536)

    def connections(act: Act) -> int:
        with scripted(lambda _: act) as server:
            client = Client(server=server.url, identity="t" * 20, allowed=LOOPBACK)
            for _ in range(2):
                assert client.call("GET", "/version") == {}
            client.close()
            return len(server.requests)

    assert connections(twice) == 1
    assert connections(answer("200 OK")) == 2
