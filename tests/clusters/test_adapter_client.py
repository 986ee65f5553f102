"""Every answer, however odd, is an object or a ClusterError in time; and the token stays home."""

import socket
import threading
import time
from itertools import repeat

import orjson
import pytest

from clusters.adapters.kubernetes import client as client_module
from clusters.adapters.kubernetes.client import Client
from clusters.port import ClusterError, Fault
from controlplane.kernel import deadlines
from tests.clusters.scripted import Act, Scripted, answer, raw, scripted
from tests.networks import LOOPBACK
from tests.waiting import eventually

pytestmark = pytest.mark.part_simulator

TOKEN = "canary-token-0123456789"


def call(act: Act, *, method: str = "GET", read_timeout_s: float = 5.0) -> object:
    with scripted(lambda _: act) as server:
        client = Client(
            server=server.url, identity=TOKEN, allowed=LOOPBACK, read_timeout_s=read_timeout_s
        )
        try:
            return client.call(method, "/api/v1/pods")
        finally:
            client.close()


def error(act: Act, **how: object) -> ClusterError:
    with pytest.raises(ClusterError) as raised:
        call(act, **how)  # type: ignore[arg-type]  # by case
    assert TOKEN not in str(raised.value)
    return raised.value


def status(**fields: object) -> bytes:
    return orjson.dumps({"kind": "Status", **fields})


def test_an_object_is_returned_as_it_is() -> None:
    assert call(answer("200 OK", b'{"a": [1]}')) == {"a": [1]}


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("400 Bad Request", Fault.INVALID),
        ("401 Unauthorized", Fault.UNAUTHORIZED),
        ("403 Forbidden", Fault.FORBIDDEN),
        ("404 Not Found", Fault.NOT_FOUND),
        ("409 Conflict", Fault.CONFLICT),
        ("410 Gone", Fault.EXPIRED),
        ("412 Precondition Failed", Fault.CONFLICT),
        ("422 Unprocessable Entity", Fault.INVALID),
        ("429 Too Many Requests", Fault.THROTTLED),
        ("500 Internal Server Error", Fault.SERVER),
        ("503 Service Unavailable", Fault.SERVER),
        ("418 I'm a teapot", Fault.MALFORMED),
    ],
)
def test_each_status_is_its_own_fault(code: str, fault: Fault) -> None:
    refused = error(answer(code, status(message="because so")))
    assert refused.fault is fault
    assert "because so" in str(refused)


@pytest.mark.parametrize("body", [b"root:x:0:0", b'{"message": "root:x:0:0"}', b'"root:x:0:0"'])
def test_what_is_no_status_of_kubernetes_is_not_quoted(body: bytes) -> None:
    assert "root" not in str(error(answer("500 Internal Server Error", body)))


def test_a_wrong_uid_in_a_patch_is_a_conflict() -> None:
    causes = [{"field": "metadata.uid", "message": "field is immutable"}]
    body = status(message="it is another", details={"causes": causes})
    assert error(answer("422 Unprocessable Entity", body)).fault is Fault.CONFLICT


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("0", None), ("-1", None), ("99999999999", 3600.0), ("Fri, 31 Dec 1999", None)],
)
def test_the_servers_wish_to_wait_is_repeated_within_reason(
    header: str, seconds: float | None
) -> None:
    refused = error(answer("429 Too Many Requests", Retry_After=header))
    assert refused.retry_after_s == seconds


def test_the_wish_may_be_in_the_status_object() -> None:
    body = status(details={"retryAfterSeconds": 3})
    assert error(answer("503 Service Unavailable", body)).retry_after_s == 3.0


def test_a_redirect_is_refused_and_not_followed() -> None:
    with scripted(lambda _: answer("200 OK", b"{}")) as other:
        refused = error(answer("302 Found", Location=f"{other.url}/api"))
        assert refused.fault is Fault.MALFORMED
        assert other.requests == []


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b'{"a":', b"\xff"])
def test_an_answer_that_is_no_object_is_malformed(body: bytes) -> None:
    assert error(answer("200 OK", body)).fault is Fault.MALFORMED


def test_an_answer_that_breaks_off_may_or_may_not_have_been_done() -> None:
    cut = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
    assert error(cut).fault is Fault.UNREACHABLE


@pytest.mark.parametrize("text", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 abc\r\n\r\n"])
def test_what_does_not_speak_http_is_unreachable(text: bytes) -> None:
    assert error(raw(text)).fault is Fault.UNREACHABLE


def test_a_closed_port_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    client = Client(server=f"http://127.0.0.1:{port}", identity=TOKEN, allowed=LOOPBACK)
    with pytest.raises(ClusterError) as raised:
        client.call("GET", "/version")
    assert raised.value.fault is Fault.UNREACHABLE


def test_a_server_that_never_answers_is_given_up_in_time_and_asked_once() -> None:
    with scripted(lambda server: server.silence) as server:
        client = Client(server=server.url, identity=TOKEN, allowed=LOOPBACK, read_timeout_s=0.3)
        started = time.monotonic()
        with pytest.raises(ClusterError) as raised:
            client.call("GET", "/version")
        assert raised.value.fault is Fault.UNREACHABLE
        assert time.monotonic() - started < 2.5
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("scheme", "beginning"),
    [
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"),
        ("http", b"HTTP/1.1 200 OK\r\nX-Long: "),
        ("http", b""),
        ("https", b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03"),
    ],
)
def test_an_answer_that_drips_is_given_up_in_time(scheme: str, beginning: bytes) -> None:
    def drip(server: Scripted) -> Act:
        def act(connection: socket.socket) -> None:
            connection.sendall(beginning)
            for _ in repeat(None):
                if server.ended.wait(0.02):
                    return
                connection.sendall(b" ")

        return act

    with scripted(drip, tls=scheme == "https") as server:
        client = Client(
            server=server.url,
            identity=TOKEN,
            allowed=LOOPBACK,
            connect_timeout_s=0.2,
            read_timeout_s=0.3,
        )
        started = time.monotonic()
        with pytest.raises(ClusterError) as raised:
            client.call("GET", "/version")
        assert raised.value.fault is Fault.UNREACHABLE
        assert time.monotonic() - started < 3


def test_an_endless_answer_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "LARGEST_ANSWER", 10_000)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n"
    refused = error(raw(head, *repeat(b"x" * 100_000, 50)))
    assert refused.fault is Fault.MALFORMED
    assert "larger" in str(refused)


def test_what_the_server_says_is_one_printable_bounded_line() -> None:
    message = "no\r\nSet-Cookie: x\x1b[31m\u202e" + "z" * 5000
    said = str(error(answer("403 Forbidden", status(message=message))))
    assert said.isprintable()
    assert len(said) < 600


def test_an_error_never_repeats_the_token_even_when_the_server_does() -> None:
    error(answer("401 Unauthorized", status(message=f"unknown token {TOKEN}")))
    error(raw(f"HTTP/1.1 {TOKEN}\r\n\r\n".encode()))


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted(lambda _: answer("500 Proxy", b"{}")) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert call(answer("200 OK", b'{"direct": 1}')) == {"direct": 1}
        assert proxy.requests == []


def test_the_path_of_a_server_behind_a_gateway_is_kept() -> None:
    with scripted(lambda _: answer("200 OK", b"{}")) as server:
        client = Client(server=f"{server.url}/k8s/c-1", identity=TOKEN, allowed=LOOPBACK)
        client.call("GET", "/api/v1/pods", query={"limit": 5})
        assert server.requests[0].startswith("GET /k8s/c-1/api/v1/pods?limit=5 HTTP/1.1")
        assert f"authorization: bearer {TOKEN}" in server.requests[0].lower()


def test_a_certificate_of_another_authority_is_refused() -> None:
    client = Client(
        server="https://127.0.0.1:1", identity=TOKEN, allowed=LOOPBACK, ca_pem="nonsense"
    )
    with pytest.raises(ClusterError) as raised:
        client.call("GET", "/version")
    assert raised.value.fault is Fault.UNREACHABLE


def test_a_client_that_is_not_closed_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "_IDLE_S", 0.05)
    with scripted(lambda _: answer("200 OK")) as server:
        before = set(threading.enumerate())
        client = Client(
            server=server.url,
            identity=TOKEN,
            allowed=LOOPBACK,
            connect_timeout_s=0.2,
            read_timeout_s=0.2,
        )
        for _ in range(3):
            client.call("GET", "/version")
        assert len({one for one in threading.enumerate() if one.name == "deadlines"} - before) == 1
        eventually("its thread has ended", lambda: set(threading.enumerate()) <= before)
        client.call("GET", "/version")
