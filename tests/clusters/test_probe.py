"""The probe against servers that a test makes up: why none answers, and odd answers."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from tempfile import NamedTemporaryFile
from typing import Any

import orjson
import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.client import Client
from clusters.adapters.kubernetes.names import Names
from clusters.credential import ClientCertificate
from clusters.models import Cluster
from clusters.port import ProbeStep, Verdict
from tests import factories
from tests.clusters.authority import Authority
from tests.clusters.scripted import raw, scripted
from tests.networks import LOOPBACK
from tests.simulation import Simulator, simulator

__all__ = ["simulator"]

pytestmark = pytest.mark.part_simulator

AUTHORITY, STRANGER = Authority(), Authority()
GOOD = AUTHORITY.issue("good")  # for 127.0.0.1
EXPIRED = AUTHORITY.issue("expired", ends_at=datetime.now(UTC) - timedelta(hours=1))
IDENTITY = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
POD = "/api/v1/namespaces/berth-system/pods"


@dataclass
class Answers:
    """What is said by path; `{}` to what is not known."""

    said: dict[str, tuple[int, object]] = field(default_factory=dict)
    url: str = ""

    def __getitem__(self, path: str) -> tuple[int, object]:
        return self.said.get(path, (200, {}))


@contextmanager
def serving(
    answers: Answers, *, certificate: ClientCertificate | None = None
) -> Iterator[Answers]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, said = answers[self.path.partition("?")[0]]
            body = orjson.dumps(said)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = answer  # as the library calls them

        def log_message(self, *_: Any) -> None: ...  # Any: the library's

    server = ThreadingHTTPServer(("", 0), Handler)  # 127.0.0.2 leads to it too
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # who hangs up is expected
    if certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with NamedTemporaryFile() as file:  # OpenSSL takes names of files alone
            file.write((certificate.certificate_pem + certificate.key_pem).encode())
            file.flush()
            tls.load_cert_chain(file.name)
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    answers.url = f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}"
    try:
        yield answers
    finally:
        server.shutdown()
        server.server_close()


def probe(server: str, *, ca: str | None = None) -> tuple[ProbeStep, ...]:
    client = Client(
        server=server,
        identity="a-token-for-tests",
        allowed=LOOPBACK,
        ca_pem=ca,
        connect_timeout_s=0.5,
        read_timeout_s=0.5,
    )
    port = KubernetesCluster(client, names=Names(prefix="berth.dev", installation="berth"))
    steps = tuple(port.probe())
    port.close()
    return steps


def step(server: str, name: str) -> ProbeStep:
    return next(step for step in probe(server) if step.name == name)


def unreached(server: str, *, ca: str | None = None) -> str:
    """Why the first step failed; it is the only one."""
    [only] = probe(server, ca=ca)
    assert (only.name, only.verdict) == ("reach", Verdict.FAILS)
    return only.said


def test_a_certificate_of_the_ca_that_was_given_is_trusted() -> None:
    with serving(Answers(), certificate=GOOD) as server:
        assert probe(server.url, ca=AUTHORITY.pem)[0].verdict is Verdict.WORKS


@pytest.mark.parametrize(
    ("certificate", "host", "ca", "why"),
    [
        (EXPIRED, "127.0.0.1", AUTHORITY.pem, "its certificate has expired"),
        (GOOD, "127.0.0.2", AUTHORITY.pem, "its certificate is for another address"),
        (GOOD, "localhost", AUTHORITY.pem, "its certificate is for another name"),
        (GOOD, "127.0.0.1", None, "its certificate is not trusted"),
        (GOOD, "127.0.0.1", STRANGER.pem, "its certificate is not trusted"),
    ],
    ids=["expired", "another address", "another name", "nobody's", "a stranger's"],
)
def test_what_is_wrong_with_a_certificate_is_named(
    certificate: ClientCertificate, host: str, ca: str | None, why: str
) -> None:
    with serving(Answers(), certificate=certificate) as server:
        assert why in unreached(server.url.replace("127.0.0.1", host), ca=ca)


def test_why_no_connection_comes_about_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "it takes too long" in unreached(f"http://127.0.0.1:{port}")
    assert "it refuses the connection" in unreached(f"http://127.0.0.1:{port}")
    assert "its name is not found" in unreached("https://nowhere.invalid")
    assert "is not allowed" in unreached("https://169.254.169.254")
    with scripted(lambda _: raw(b"SSH-2.0-OpenSSH\r\n"), tls=True) as server:
        assert "it does not speak TLS as it should" in unreached(server.url)


@pytest.mark.parametrize(
    ("version", "ok", "said"),
    [
        ("v1.30.0", True, "v1.30.0"),
        ("v1.36.3-gke.100", True, "v1.36.3"),
        ("v2.0.0", True, "v2.0.0"),
        ("v1.29.9", False, "v1.29.9 is too old: it has to be v1.30 at least"),
        ("1.36", False, "1.36 is no version of Kubernetes"),
        ("v1.360000", False, "is no version of Kubernetes"),
        ("", False, " is no version of Kubernetes"),
        (None, False, "does not say which version"),
    ],
)
def test_a_version_that_is_too_old_is_told(version: object, ok: bool, said: str) -> None:
    with serving(Answers({"/version": (200, {"gitVersion": version})})) as server:
        found = step(server.url, "version")
    assert found.verdict is (Verdict.WORKS if ok else Verdict.FAILS)
    assert said in found.said


def test_a_token_that_an_answer_quotes_is_not_told() -> None:
    quoted = f"{'x' * 490} a-token-for-tests"  # and none of it is left by what is cut off
    identity = {"status": {"userInfo": {"username": quoted}}}
    version = {"gitVersion": "v1.36.0-a-token-for-tests"}
    with serving(Answers({IDENTITY: (201, identity), "/version": (200, version)})) as server:
        said = {step.name: step.said for step in probe(server.url)}
    assert "v1.36.0-[token]" in said["version"]
    assert "a-token" not in str(said)


def test_answers_that_make_no_sense_are_failed_steps_and_the_rest_goes_on() -> None:
    with serving(Answers()) as server:
        steps = probe(server.url)
    works = [step.name for step in steps if step.verdict is Verdict.WORKS]
    assert works == ["reach", "make a namespace"]
    said = {step.name: step.said for step in steps}
    assert "it names nobody" in said["identity"]
    assert "it says neither yes nor no" in said["patch pods"]
    assert "the gate berth.dev/placed off" in said["make a pod"]


def test_whose_name_is_odd_is_told_which_role_lacks_a_verb() -> None:
    told = {IDENTITY: (200, {"status": {"userInfo": {"username": "ada\x1b[31m"}}})}
    refused = {ACCESS: (200, {"status": {"allowed": False}})}
    with serving(Answers({**told, **refused})) as server:
        steps = {step.name: step.said for step in probe(server.url)}
    assert steps["identity"] == "it knows Berth as ada?[31m"
    assert "add the verb to the ClusterRole berth;" in steps["patch pods"]


def test_a_webhook_that_can_only_do_is_a_warning() -> None:
    message = 'admission webhook "quota.example.test" does not support dry run'
    refusal = (400, {"kind": "Status", "message": message})
    with serving(Answers({POD: refusal})) as server:
        found = step(server.url, "make a pod")
    assert found.verdict is Verdict.WARNING


def test_that_the_manifest_was_not_applied_is_told() -> None:
    missing = (404, {"kind": "Status", "message": 'namespaces "berth-system" not found'})
    with serving(Answers({POD: missing})) as server:
        found = step(server.url, "make a pod")
    assert found.verdict is Verdict.FAILS
    assert "there is no namespace berth-system: apply what `manage.py cluster_" in found.said


def test_a_webhook_that_refuses_is_quoted() -> None:
    message = 'admission webhook "images.example.test" denied the request: sign it'
    with serving(Answers({POD: (403, {"kind": "Status", "message": message})})) as server:
        found = step(server.url, "make a pod")
    assert found.verdict is Verdict.FAILS
    assert message in found.said


def test_a_cluster_that_falls_silent_ends_the_probe() -> None:
    class Silent(Answers):
        def __getitem__(self, path: str) -> tuple[int, object]:
            if path == ACCESS:
                raise ConnectionAbortedError  # the connection is closed
            return super().__getitem__(path)

    with serving(Silent()) as server:
        steps = probe(server.url)
    assert [step.name for step in steps] == ["reach", "identity", "version", "list nodes"]


@pytest.fixture
def north(db: None) -> Cluster:
    return factories.cluster("north")


def run() -> str:
    output = StringIO()
    call_command("probe_cluster", "north", stdout=output)
    return output.getvalue()


def test_the_command_prints_a_line_a_step(simulator: Simulator, north: Cluster) -> None:
    simulator.store_credential(north)
    lines = run().splitlines()
    assert lines[0] == "ok       reach              it answers"
    assert "ok       patch pods         may patch pods" in lines


def test_the_command_fails_with_a_step(simulator: Simulator, north: Cluster) -> None:
    simulator.store_credential(north)
    simulator.fault(kind="forbid", verb="patch", resource="pods", count=0)
    with pytest.raises(CommandError, match=r"^1 of 40 steps failed\.$"):
        run()


def test_the_command_says_that_there_is_no_credential(north: Cluster) -> None:
    with pytest.raises(CommandError, match="'north' has no credential yet: store one on"):
        run()


def test_the_command_says_that_the_credential_cant_be_opened_where_it_runs(
    simulator: Simulator, north: Cluster, settings: Settings
) -> None:
    simulator.store_credential(north)
    settings.BERTH_OPEN_KEYS = []
    with pytest.raises(CommandError, match="credential of cluster north can't be opened"):
        run()
