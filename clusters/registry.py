"""A cluster's name -> its adapter. The only importer of adapters.

The credential is a file of the operator's, never a kubeconfig: those can run commands and read
files. A failure's text never holds the token.
"""

import os
import re
import stat
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import SplitResult, urlsplit

import orjson
from django.conf import settings

from clusters.port import ClusterPort, UsePort

LARGEST_FILE = 64 * 1024
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_TOKEN = re.compile(r"[\x21-\x7e]{16,16384}")
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_FIELDS = {"server", "token", "ca", "metrics"}
_METRICS_FIELDS = {"server", "token", "ca", "query"}
LONGEST_QUERY = 4096


class BadCredential(ValueError):
    """A credential file can't be used; the message says which and why, without its contents."""


def connect(
    name: str,
    *,
    connect_timeout_s: float = 3.0,
    read_timeout_s: float = 30.0,
    watch_timeout_s: int = 60,
    watch_read_timeout_s: float = 70.0,
) -> ClusterPort:
    """The port of the cluster of that name, by BERTH_CREDENTIALS_DIR/<name>.json.

    The file holds {"server": ..., "token": ..., "ca": PEM or left out} and is its owner's alone;
    of its "metrics" see `connect_use`. Raises BadCredential. Nothing is sent yet. Call it after a
    fork, not before.
    """
    fields, refuse = _fields(name)
    server, token, ca_pem = _endpoint(fields, refuse)
    # The client's import costs 0.7 s and 50 MB, which web processes need not pay.
    from clusters.adapters.kubernetes.adapter import KubernetesCluster
    from clusters.adapters.kubernetes.client import Client
    from clusters.adapters.kubernetes.names import Names

    return KubernetesCluster(
        Client(
            server=server,
            token=token,
            ca_pem=ca_pem,
            connect_timeout_s=connect_timeout_s,
            read_timeout_s=read_timeout_s,
        ),
        names=Names(prefix=settings.BERTH_PREFIX, installation=settings.BERTH_INSTALLATION),
        watch_timeout_s=watch_timeout_s,
        watch_read_timeout_s=watch_read_timeout_s,
    )


def connect_use(
    name: str, *, connect_timeout_s: float = 3.0, read_timeout_s: float = 30.0
) -> UsePort | None:
    """What measures the devices of that cluster; None where its file says of nothing that does.

    It is the "metrics" of its credential file: {"server": ..., "token": ..., "ca": ..., "query":
    PromQL or left out}, an API that answers as Prometheus does. Raises BadCredential. Nothing is
    sent yet.
    """
    fields, refuse = _fields(name)
    metrics = fields.get("metrics")
    if metrics is None:
        return None
    if not isinstance(metrics, dict):
        refuse('has "metrics" that are no JSON object')
    within = refuse.within("metrics")
    _check_known(metrics, _METRICS_FIELDS, within)
    server, token, ca_pem = _endpoint(metrics, within)
    from clusters.adapters.kubernetes.client import Client  # as above
    from clusters.adapters.prometheus import QUERY, Prometheus

    query = metrics.get("query", QUERY)
    if not (isinstance(query, str) and query.strip() and len(query) <= LONGEST_QUERY):
        within(f'has a "query" that is no text of 1 to {LONGEST_QUERY} characters')
    client = Client(
        server=server,
        token=token,
        ca_pem=ca_pem,
        connect_timeout_s=connect_timeout_s,
        read_timeout_s=read_timeout_s,
    )
    return Prometheus(client, query=query)


def _fields(name: str) -> tuple[dict[str, Any], "_Refusal"]:  # Any: JSON values
    if not _NAME.fullmatch(name):
        raise BadCredential(f"{name[:70]!r} is no cluster name: use a-z, 0-9 and -.")
    path = Path(settings.BERTH_CREDENTIALS_DIR) / f"{name}.json"
    refuse = _Refusal(path)
    contents = _private_contents(path, refuse)
    try:
        fields = orjson.loads(contents)
    except ValueError:
        refuse("is no JSON")
    if not isinstance(fields, dict):
        refuse("is no JSON object")
    _check_known(fields, _FIELDS, refuse)
    return fields, refuse


def _check_known(fields: dict[str, Any], known: set[str], refuse: "_Refusal") -> None:  # as above
    if unknown := sorted(set(fields) - known):
        refuse(f"has unknown fields: {', '.join(field[:40] for field in unknown[:5])}")


def _endpoint(fields: dict[str, Any], refuse: "_Refusal") -> tuple[str, str, str | None]:
    """The server, the token for it and its CA. Any: JSON values."""
    server, token, ca_pem = (fields.get(field) for field in ("server", "token", "ca"))
    if not isinstance(server, str) or not isinstance(token, str):
        refuse('needs a "server" and a "token", both text')
    if not _TOKEN.fullmatch(token):
        refuse("needs a token of at least 16 characters without blanks")
    if ca_pem is not None and not (isinstance(ca_pem, str) and "BEGIN CERTIFICATE" in ca_pem):
        refuse('has a "ca" that is no PEM certificate')
    _check_server(server, refuse)
    return server.rstrip("/"), token, ca_pem


class _Refusal:
    def __init__(self, path: Path, part: str = "") -> None:
        self._path = path
        self._part = part

    def __call__(self, why: str) -> NoReturn:
        raise BadCredential(f"The credential file {self._path.name} {self._part}{why}.") from None

    def within(self, part: str) -> "_Refusal":
        return _Refusal(self._path, f"in its {part} ")


def _private_contents(path: Path, refuse: _Refusal) -> bytes:
    """The contents of a plain file that only its owner may read.

    The mode is the opened file's: the name may lead elsewhere by now. A link is followed, as a
    mounted Secret's files are links; a pipe is not waited for.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                refuse("is no plain file")
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                refuse(f"may be read by others (mode {stat.S_IMODE(mode):o}): chmod 600 it")
            contents = file.read(LARGEST_FILE + 1)
    except OSError as error:
        refuse(f"can't be read ({error.strerror})")
    if len(contents) > LARGEST_FILE:
        refuse("is larger than 64 KiB")
    return contents


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _check_server(server: str, refuse: _Refusal) -> None:
    try:
        url: SplitResult = urlsplit(server)
        host, _ = url.hostname, url.port
    except ValueError:
        refuse("has a server that is no URL")
    if not host or not server.isprintable() or " " in server:
        refuse("has a server that is no URL")
    if url.username or url.password or url.query or url.fragment:
        refuse("has a server URL with more than a host, a port and a path")
    if url.scheme == "http" and host in _LOOPBACK:
        return
    if url.scheme != "https":
        refuse("has a server that is not https (plain http is for loopback only)")
