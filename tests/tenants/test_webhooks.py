"""What is sent by a channel, how it is signed, and where it can't be made to go.

Receivers are real servers on loopback, which a setting permits; where a name has to lead
somewhere, `socket.getaddrinfo` is replaced, which is where names are looked up.
"""

import hashlib
import hmac
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from controlplane.kernel.deadlines import Watchdog
from controlplane.kernel.errors import Invalid
from tenants.access import Place, actor_for
from tenants.models import TOLD, Channel, ChannelKind, Delivery, Notice, Role, User
from tenants.services import channels, deliveries, requests, webhooks
from tenants.services.grants import Allotment
from tests import factories
from tests.clusters.authority import Authority
from tests.clusters.scripted import raw, scripted
from tests.conftest import Cast

AT = factories.AT
CANARY = "canary-in-an-address"


@pytest.fixture(autouse=True)
def here(settings: Settings) -> None:
    """Receivers are on this machine, and nobody gets mail."""
    settings.BERTH_WEBHOOK_NETWORKS = (ip_network("127.0.0.1/32"),)
    settings.BERTH_WEBHOOK_HTTP = True
    settings.BERTH_PUBLIC_URL = "https://berth.example"
    settings.MAILERS = {}


class Receiver(ThreadingHTTPServer):
    """`got` are the headers and bodies that came; each is answered with `status`."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        super().__init__((host, port), _Answering)
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.status = 204
        self.location = ""

    @property
    def port(self) -> int:
        return self.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{CANARY}"


class _Answering(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.server.got.append((dict(self.headers), self.rfile.read(length)))
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def receiving(server: Receiver) -> Iterator[Receiver]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving(Receiver()) as server:
        yield server


type Names = Callable[..., None]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """`names(hook=["…", "…"])`: each look-up of that name finds the next address."""
    asked = socket.getaddrinfo

    def name(**answers: list[str]) -> None:
        def look_up(host: str, *how: Any, **further: Any) -> Any:  # Any: as the socket module's
            found = answers.get(host)
            if found is None:
                return asked(host, *how, **further)
            return asked(found.pop(0) if len(found) > 1 else found[0], *how, **further)

        monkeypatch.setattr(socket, "getaddrinfo", look_up)

    return name


def make(user: User, of: Place, url: str, **fields: Any) -> tuple[Channel, str]:
    """Any: of a channel."""
    asked: dict[str, Any] = {"name": "Chat", "kind": ChannelKind.JSON, "events": TOLD, "at": AT}
    return channels.make(actor=actor_for(user=user), of=of, url=url, **asked | fields)


def ask(cast: Cast, at: datetime = AT) -> None:
    requests.open(
        actor=actor_for(user=cast.ben),
        project=cast.detection,
        flavor=factories.flavor(),
        allotment=Allotment(nominal_milli=16_000),
        reason="A private word.",
        at=at,
    )


def send() -> Delivery:
    """All that is due; the only delivery as it is then."""
    deliveries.post_due(at=lambda: AT, goes_on=lambda: True)
    return Delivery.objects.get()


def posted(url: str) -> str:
    """What came of a message there, "" if it was taken."""
    try:
        webhooks.post(webhooks.Target(url, "s"), b"{}", headers={}, at_s=0)
    except webhooks.Unsent as error:
        return str(error)
    return ""


class TestWhatIsSent:
    def test_json_is_signed_over_moment_and_body(self, cast: Cast, receiver: Receiver) -> None:
        _, secret = make(cast.ada, cast.vision, receiver.url)
        ask(cast)
        assert send().sent_at == AT
        [(headers, body)] = receiver.got
        moment, _, found = headers["Berth-Signature"].partition(",v1=")
        assert moment == f"t={int(AT.timestamp())}"
        signed = moment.removeprefix("t=").encode() + b"." + body
        assert hmac.compare_digest(
            found, hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
        )
        told, notice = json.loads(body), Notice.objects.get()
        assert (told["id"], told["event"]) == (headers["Berth-Notice"], "request.opened")
        assert told["id"] == str(notice.id)
        assert told["text"] == "ben asks for 16 h100-80gb in Detection."
        assert told["url"] == "https://berth.example/requests"
        assert told["body"]["nominal_milli"] == 16_000
        assert b"private" not in body

    def test_what_is_sent_again_has_the_same_id(self, cast: Cast, receiver: Receiver) -> None:
        make(cast.ada, cast.vision, receiver.url)
        receiver.status = 500
        ask(cast)
        delivery = send()
        assert (delivery.error, delivery.sent_at) == ("It answered 500.", None)
        receiver.status = 200
        at = AT + timedelta(minutes=1)
        deliveries.post_due(at=lambda: at, goes_on=lambda: True)
        first, second = (json.loads(body)["id"] for _, body in receiver.got)
        assert first == second
        assert Delivery.objects.get().sent_at == at

    def test_slack_gets_one_text_that_nobody_makes_a_link_of(
        self, cast: Cast, receiver: Receiver
    ) -> None:
        type(cast.detection).objects.filter(id=cast.detection.id).update(name="<!channel> & co")
        cast.detection.refresh_from_db()
        _, secret = make(cast.ada, cast.detection, receiver.url, kind=ChannelKind.SLACK)
        assert secret == ""
        ask(cast)
        send()
        [(headers, body)] = receiver.got
        assert json.loads(body) == {
            "text": "ben asks for 16 h100-80gb in &lt;!channel&gt; &amp; co."
            " <https://berth.example/requests|Look>"
        }
        assert webhooks.SIGNATURE not in headers

    def test_each_place_is_told_of_what_is_below_it_and_of_its_events(
        self, cast: Cast, receiver: Receiver
    ) -> None:
        factories.member(cast.ada, Role.OWNER, at=cast.speech)
        make(cast.oz, None, receiver.url)
        make(cast.ada, cast.vision, receiver.url)
        make(cast.ada, cast.detection, receiver.url)
        make(cast.ada, cast.detection, receiver.url, name="Ends", events=["grant.ended"])
        make(cast.ada, cast.segmentation, receiver.url)
        make(cast.ada, cast.speech, receiver.url)
        ask(cast)
        told = Delivery.objects.values_list("channel__tenant__name", "channel__project__name")
        assert set(told) == {(None, None), ("Vision Lab", None), (None, "Detection")}
        assert len(told) == 3

    def test_a_test_says_that_it_is_one(self, cast: Cast, receiver: Receiver) -> None:
        channel, _ = make(cast.oz, None, receiver.url, events=["grant.ended"])
        channels.try_out(actor=actor_for(user=cast.oz), channel=channel, at=AT)
        assert send().sent_at == AT
        told = json.loads(receiver.got[0][1])
        assert (told["event"], told["text"]) == (
            "channel.test",
            "This is a test of the channel Chat.",
        )

    def test_over_tls_the_name_is_checked(
        self, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        authority = Authority()
        chain, trusted = tmp_path / "server.pem", tmp_path / "ca.pem"
        made = authority.issue("server")
        chain.write_text(made.certificate_pem + made.key_pem)
        trusted.write_text(authority.pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        receiver.socket = context.wrap_socket(receiver.socket, server_side=True)
        url = f"https://127.0.0.1:{receiver.port}/"
        assert posted(url) == "TLS with 127.0.0.1 failed (SSLCertVerificationError)."
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        assert posted(url) == ""
        told = posted(f"https://localhost:{receiver.port}/")  # the certificate is for the address
        assert told == "TLS with localhost failed (SSLCertVerificationError)."


class TestWhereItCanNotGo:
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_where_an_answer_points(self, receiver: Receiver, status: int) -> None:
        receiver.status = status
        with receiving(Receiver()) as inside:
            receiver.location = inside.url
            told = posted(receiver.url)
            assert told == f"It answered {status}: where it points is not followed."
            receiver.location = "http://169.254.169.254/latest/meta-data"
            assert posted(receiver.url) == told
            assert inside.got == []

    @pytest.mark.parametrize(
        "host",
        [
            *("127.0.0.1", "127.1", "localhost", "2130706433", "0x7f.1", "0177.0.0.1", "0.0.0.0"),  # noqa: S104
            *("[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[::]"),
            *("10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "[fd00::1]", "[fe80::1]"),
            *("169.254.169.254", "[::ffff:169.254.169.254]", "100.100.100.200", "168.63.129.16"),
            *("[::ffff:10.0.0.1]", "[64:ff9b::a00:1]", "[2002:a00:1::]", "[2001:0:a00:1::]"),
            *("224.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1"),
        ],
    )
    def test_what_is_not_public(self, receiver: Receiver, settings: Settings, host: str) -> None:
        settings.BERTH_WEBHOOK_NETWORKS = ()
        told = posted(f"http://{host}:{receiver.port}/")
        assert "is not allowed. BERTH_WEBHOOK_NETWORKS has to list its network" in told
        assert receiver.got == []

    def test_a_name_that_leads_inside(
        self, receiver: Receiver, settings: Settings, names: Names
    ) -> None:
        settings.BERTH_WEBHOOK_NETWORKS = ()
        names(**{"hook.test": ["127.0.0.1"], "db.test": ["8.8.8.8"]})
        assert "hook.test is not allowed" in posted(f"http://hook.test:{receiver.port}/")
        settings.OWN_HOSTS = ("db.test",)
        assert "db.test is not allowed" in posted("http://db.test:5432/")
        assert receiver.got == []

    def test_a_name_that_leads_elsewhere_at_the_next_look_up(
        self, settings: Settings, names: Names
    ) -> None:
        """Rebinding: what was checked is what is connected to."""
        settings.BERTH_WEBHOOK_NETWORKS = (ip_network("127.0.0.2/32"),)
        with receiving(Receiver("127.0.0.2")) as meant:
            with receiving(Receiver("127.0.0.1", meant.port)) as inside:
                names(**{"hook.test": ["127.0.0.2", "127.0.0.1"]})
                assert posted(f"http://hook.test:{meant.port}/") == ""
                assert "is not allowed" in posted(f"http://hook.test:{meant.port}/")
                assert inside.got == []
            assert len(meant.got) == 1

    def test_a_proxy_of_the_environment(
        self, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with receiving(Receiver()) as proxy:
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
            assert posted(receiver.url) == ""
            assert proxy.got == []

    @pytest.mark.parametrize(
        "url",
        [
            *("http://hooks.example/", "ftp://hooks.example/", "hooks.example", "https://", ""),
            *("https://ada:word@hooks.example/", "https://hooks.example/#x", "https://[::1/"),
            *("https://hooks.example:0/", "https://hooks.example:99999/", "https://hö.example/"),
            *("https://hooks.example/\r\nX: y", "https://hooks.example/ x", "file:///etc/passwd"),
            "https://hooks.example/" + "x" * 1000,
        ],
    )
    def test_what_is_no_address(self, cast: Cast, settings: Settings, url: str) -> None:
        settings.BERTH_WEBHOOK_HTTP = False
        with pytest.raises(Invalid) as refused:
            make(cast.ada, cast.vision, url)
        assert refused.value.problems[0].pointer == "/url"
        assert posted(url) == "The address is not one that is permitted now."
        assert not Channel.objects.exists()


class TestWithinBounds:
    def test_an_answer_that_drips_is_hung_up_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(webhooks, "_watchdog", Watchdog(0.5))

        def drip(line: socket.socket) -> None:
            ended = time.monotonic() + 20
            while time.monotonic() < ended:
                line.sendall(b"H")
                threading.Event().wait(0.05)

        with scripted(lambda _: drip) as server:
            began = time.monotonic()
            assert "no answer in time" in posted(server.url)
            assert time.monotonic() - began < 5

    def test_a_body_without_an_end_is_not_read(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"
        with scripted(lambda _: raw(head, b"x" * 100_000)) as server:
            assert posted(server.url) == ""

    @pytest.mark.parametrize(
        "answer", [b"nonsense\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000]
    )
    def test_what_is_no_answer_is_none(self, answer: bytes) -> None:
        with scripted(lambda _: raw(answer)) as server:
            assert "gave no answer in time, or none at all" in posted(server.url)
