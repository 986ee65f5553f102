"""Berth's web server as an API server asks it: by TLS, at an address of its own."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import ThreadingMixIn
from tempfile import TemporaryDirectory
from wsgiref.simple_server import WSGIServer
from wsgiref.types import WSGIApplication

from django.core.servers.basehttp import WSGIRequestHandler
from django.core.wsgi import get_wsgi_application

from clusters.adapters.kubernetes.hook import Hook
from tests.clusters.authority import Authority


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


@contextmanager
def serving(app: WSGIApplication | None = None) -> Iterator[Hook]:
    """All of Berth's addresses, or `app` in their place, and the hook by which a cluster reaches
    them."""
    authority = Authority()
    issued = authority.issue("berth")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as folder:
        chain = Path(folder, "chain.pem")
        chain.write_text(issued.certificate_pem + issued.key_pem)
        context.load_cert_chain(chain)
    server = _Server(("127.0.0.1", 0), WSGIRequestHandler)
    server.set_app(app or get_wsgi_application())
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Hook(f"https://127.0.0.1:{server.server_port}", authority.pem)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
