"""Signing in by a client certificate, whose key never lies on a disk."""

import os
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cryptography import x509

from clusters.adapters.kubernetes.client import Client
from clusters.credential import ClientCertificate
from clusters.port import ClusterError, Fault
from tests.clusters.authority import Authority
from tests.networks import LOOPBACK
from tests.waiting import PATIENCE_S

AUTHORITY = Authority()


class _Tells(BaseHTTPRequestHandler):
    """Who signed in, and with which header."""

    def do_GET(self) -> None:
        assert isinstance(self.connection, ssl.SSLSocket)
        der = self.connection.getpeercert(binary_form=True)
        assert der is not None
        name = x509.load_der_x509_certificate(der).subject.rfc4514_string()
        said = self.headers.get("Authorization", "")
        body = b'{"name": "%s", "authorization": "%s"}' % (name.encode(), said.encode())
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class _Server(HTTPServer):
    def handle_error(self, *_: object) -> None:
        """A refused handshake is the client's to tell."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """It wants a certificate of AUTHORITY."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=AUTHORITY.pem)
    own = AUTHORITY.issue("server")
    (tmp_path / "server.pem").write_text(own.certificate_pem + own.key_pem)
    context.load_cert_chain(tmp_path / "server.pem")
    with _Server(("127.0.0.1", 0), _Tells) as http:
        http.socket = context.wrap_socket(http.socket, server_side=True)
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join(PATIENCE_S)


def client(server: str, identity: str | ClientCertificate, *, ca_pem: str | None) -> Client:
    return Client(
        server=server,
        identity=identity,
        allowed=LOOPBACK,
        ca_pem=ca_pem,
        connect_timeout_s=2,
        read_timeout_s=2,
    )


def test_the_server_sees_the_name_in_the_certificate_and_no_header(server: str) -> None:
    connected = client(server, AUTHORITY.issue("berth"), ca_pem=AUTHORITY.pem)
    assert connected.call("GET", "/version") == {"name": "CN=berth", "authorization": ""}
    connected.close()


@pytest.mark.parametrize(
    ("identity", "ca_pem", "why"),
    [
        (Authority().issue("berth"), AUTHORITY.pem, "does not answer"),
        ("a-token-and-no-certificate", AUTHORITY.pem, "does not answer"),
        (AUTHORITY.issue("berth"), Authority().pem, "CERTIFICATE_VERIFY_FAILED"),
        (AUTHORITY.issue("berth"), None, "CERTIFICATE_VERIFY_FAILED"),
    ],
    ids=["of another authority", "no certificate", "server not trusted", "system's authorities"],
)
def test_whoever_is_not_trusted_gets_nowhere(
    server: str, identity: str | ClientCertificate, ca_pem: str | None, why: str
) -> None:
    connected = client(server, identity, ca_pem=ca_pem)
    with pytest.raises(ClusterError, match=why) as raised:
        connected.call("GET", "/version")
    assert raised.value.fault is Fault.UNREACHABLE
    assert "PRIVATE KEY" not in str(raised.value)
    connected.close()


def test_the_key_is_on_no_disk_and_in_no_open_file(server: str) -> None:
    """OpenSSL read it before; what stays open are sockets."""
    before = set(os.listdir("/proc/self/fd"))
    connected = client(server, AUTHORITY.issue("berth"), ca_pem=AUTHORITY.pem)
    for number in set(os.listdir("/proc/self/fd")) - before:
        link = Path(f"/proc/self/fd/{number}")
        assert not link.exists() or "memfd" not in str(link.readlink())
    connected.close()
