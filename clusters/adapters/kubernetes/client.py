"""One API server: a request in, parsed JSON out, or a ClusterError. Errors of HTTP end here.

The official client supplies the connections, their pool and TLS; its typed models and its loader
of kubeconfigs are not used (a kubeconfig from a stranger can run commands), nor its way to ask
(`exchange`). Retries are the caller's.
"""

import http.client
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlencode

import orjson
import urllib3
from kubernetes.client.configuration import Configuration
from kubernetes.client.rest import RESTClientObject
from urllib3.connection import HTTPConnection
from urllib3.util import parse_url

from clusters.adapters.kubernetes.certificates import presenting
from clusters.adapters.kubernetes.checks import Json, Malformed, document
from clusters.adapters.kubernetes.exchange import Answer, TooLarge, exchange, follow
from clusters.adapters.kubernetes.failures import failure, printable, refuse_told_failure
from clusters.adapters.kubernetes.transport import named
from clusters.credential import ClientCertificate
from clusters.port import ClusterError, Fault
from controlplane.kernel.addresses import AddressNotAllowed, Allowed
from controlplane.kernel.deadlines import (
    GuardedConnection,
    GuardedTlsConnection,
    Watchdog,
)

type Query = Mapping[str, str | int]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
LARGEST_ANSWER = 64 * 1024 * 1024
TRANSPORT = (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError)


class Client:
    """Requests to one server under one identity, a bearer token or a client certificate, at an
    address that is `allowed`.

    Threads may share it; make it after a fork.
    """

    def __init__(
        self,
        *,
        server: str,
        identity: str | ClientCertificate,
        allowed: Allowed,
        ca_pem: str | None = None,
        connect_timeout_s: float = 3.0,
        read_timeout_s: float = 30.0,
    ) -> None:
        configuration = Configuration(host=server, ca_cert_data=ca_pem)
        configuration.proxy = None  # it was taken from the environment
        configuration.retries = False  # the default tries three times, each with the whole limit
        configuration.verify_ssl = True
        configuration.connection_pool_maxsize = 32
        self._manager = RESTClientObject(configuration).pool_manager
        self._pool = self._manager.connection_from_url(server)
        self._pool.conn_kw["watchdog"] = Watchdog(connect_timeout_s + read_timeout_s)
        self._pool.conn_kw["allowed"] = allowed
        token = identity if isinstance(identity, str) else ""
        if isinstance(identity, ClientCertificate):
            self._pool.conn_kw["ssl_context"] = presenting(identity, ca_pem=ca_pem)
        self._pool.ConnectionCls = (
            GuardedTlsConnection if self._pool.scheme == "https" else GuardedConnection
        )
        url = parse_url(server)  # in ASCII, whatever letters it is written in
        self._base = (url.path or "").rstrip("/")
        self._token = token
        self._headers = {
            **({"Authorization": f"Bearer {token}"} if token else {}),
            "Accept": JSON,
            "User-Agent": "berth",
        }
        self._head = "".join(
            f"{name}: {value}\r\n"
            for name, value in {
                "Host": url.netloc,
                "Accept-Encoding": "identity",
                **self._headers,
            }.items()
        )
        self._connect_timeout_s = connect_timeout_s
        self._read_timeout_s = read_timeout_s

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        content_type: str = JSON,
    ) -> Json:
        """The object that the server answers with, without our token, should it have quoted that.
        Raises ClusterError for anything else."""
        target = f"{self._base}{path}?{urlencode(query)}" if query else self._base + path
        answer = self._ask(method, target, body, content_type, largest=LARGEST_ANSWER)
        data = answer.body  # which is put together anew each time
        self._refuse_failure(answer.status, retry_after=answer.retry_after, data=data)
        try:
            found = document(self.redacted(data))
        except Malformed as error:
            message = f"The cluster's answer to {method} {path} makes no sense: {error}."
            raise ClusterError(Fault.MALFORMED, message) from None
        refuse_told_failure(found)
        return found

    def text(self, path: str, *, query: Query, largest: int) -> bytes:
        """What is no JSON, at most `largest` bytes of it, without our token. Raises
        ClusterError."""
        target = f"{self._base}{path}?{urlencode(query)}"
        answer = self._ask("GET", target, None, JSON, largest=largest)
        self._refuse_failure(answer.status, retry_after=answer.retry_after, data=answer.body)
        return self.redacted(answer.body)

    @contextmanager
    def stream(
        self, path: str, *, query: Query, lasts_s: float, silence_s: float
    ) -> Iterator[Iterator[bytes]]:
        """An answer that goes on, as it comes, for `lasts_s` at most. Raises ClusterError for any
        other; how it ends, and a silence of more than `silence_s`, raise TRANSPORT as they go on.
        """
        until = time.monotonic() + lasts_s
        head = self._request("GET", f"{self._base}{path}?{urlencode(query)}", b"")
        with self._connection() as connection:
            try:
                answer = self._exchange(connection, head, largest=LARGEST_ANSWER, stream=True)
                self._refuse_failure(
                    answer.status, retry_after=answer.retry_after, data=answer.body
                )
                yield follow(connection, answer, until=until, silence_s=silence_s)
            finally:
                connection.close()

    def close(self) -> None:
        self._manager.clear()

    def unreachable(self, error: Exception) -> ClusterError:
        """A transport error as ours. Its text may quote what a stranger sent, never the token."""
        if isinstance(error, AddressNotAllowed):
            return ClusterError(Fault.UNREACHABLE, printable(str(error)))
        said = printable(self.redacted(str(error).encode()).decode())
        why = f": {found}" if (found := named(error)) else ""
        message = f"The cluster does not answer{why} ({type(error).__name__}: {said})"
        return ClusterError(Fault.UNREACHABLE, message)

    def redacted(self, data: bytes) -> bytes:
        """What a server said, without our token, should it have quoted that."""
        return data.replace(self._token.encode(), b"[token]") if self._token else data

    def _ask(
        self,
        method: str,
        target: str,
        body: object,
        content_type: str,
        *,
        largest: int,
    ) -> Answer:
        data = b"" if body is None else orjson.dumps(body)
        request = self._request(method, target, data, content_type) + data
        with self._connection() as connection:
            answer = self._exchange(connection, request, largest=largest)
            if not answer.goes_on:
                connection.close()
            return answer

    def _request(self, method: str, target: str, data: bytes, content_type: str = "") -> bytes:
        """The head of a request."""
        head = f"{method} {target} HTTP/1.1\r\n{self._head}"
        if data:
            head += f"Content-Type: {content_type}\r\nContent-Length: {len(data)}\r\n"
        return head.encode("ascii") + b"\r\n"

    def _exchange(
        self,
        connection: HTTPConnection,
        request: bytes,
        *,
        largest: int,
        stream: bool = False,
    ) -> Answer:
        try:
            return exchange(
                connection,
                request,
                within_s=self._connect_timeout_s + self._read_timeout_s,
                silence_s=self._read_timeout_s,
                largest=largest,
                stream=stream,
            )
        except TooLarge:
            raise ClusterError(
                Fault.MALFORMED, f"The cluster's answer is larger than {largest // 2**20} MiB."
            ) from None
        except TRANSPORT as error:
            raise self.unreachable(error) from None

    @contextmanager
    def _connection(self) -> Iterator[HTTPConnection]:
        """One of the pool's, closed when anything went wrong on it: half an answer may be left."""
        connection = self._pool._get_conn()
        connection.timeout = self._connect_timeout_s
        try:
            yield connection  # type: ignore[misc]  # of ConnectionCls
        except BaseException:
            connection.close()
            raise
        finally:
            self._pool._put_conn(connection)

    def _refuse_failure(self, status: int, *, retry_after: str | None, data: bytes) -> None:
        if not 200 <= status < 300:
            raise failure(status, retry_after=retry_after, data=self.redacted(data))
