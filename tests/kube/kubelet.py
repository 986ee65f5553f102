"""A kubelet that does nothing but tell logs, by TLS on loopback, as an API server asks for them:
GET /containerLogs/{namespace}/{pod}/{container}?tailLines=&limitBytes="""

import ssl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.clusters.authority import Authority


class Kubelet(ThreadingHTTPServer):
    """`logs` by namespace/name."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.logs: dict[str, bytes] = {}


class _Handler(BaseHTTPRequestHandler):
    server: Kubelet

    def do_GET(self) -> None:
        """As a kubelet: of the last lines the first bytes, in pieces, without a length."""
        url = urlsplit(self.path)
        asked = {key: int(one[0]) for key, one in parse_qs(url.query).items() if one[0].isdigit()}
        _, _, namespace, pod, _ = url.path.split("/")
        lines = self.server.logs[f"{namespace}/{pod}"].splitlines(keepends=True)
        told = b"".join(lines[-asked["tailLines"] :])[: asked["limitBytes"]]
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""


@contextmanager
def kubelet() -> Iterator[Kubelet]:
    serving = Kubelet()
    issued = Authority().issue("kubelet")
    with tempfile.NamedTemporaryFile("w") as pem:
        pem.write(issued.certificate_pem + issued.key_pem)
        pem.flush()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem.name)
    serving.socket = context.wrap_socket(serving.socket, server_side=True)
    thread = threading.Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    try:
        yield serving
    finally:
        serving.shutdown()
        serving.server_close()
        thread.join(timeout=10)
