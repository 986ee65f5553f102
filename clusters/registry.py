"""A cluster's name -> its adapter. The only importer of adapters, and the only place where a
credential is opened, in memory alone: that needs BERTH_OPEN_KEYS, which only processes that talk
to clusters have.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

import orjson
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from clusters import credential
from clusters.adapters.kubernetes import access
from clusters.adapters.kubernetes.hook import Hook, NotAReview, answer
from clusters.adapters.kubernetes.names import Names
from clusters.credential import BadCredential, Credential
from clusters.models import ClusterCredential
from clusters.parts import Part
from clusters.port import ClusterPort
from clusters.sealing import PrivateKey, Unopened, open_sealed
from clusters.use import UsePort
from controlplane.kernel.addresses import Allowed
from controlplane.kernel.errors import Invalid, Unavailable

TOKEN_H = 720
"""How many hours a token of Berth's account is good for, unless somebody wants it otherwise."""
MOST_TOKEN_H = 8760
_OBJECT = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_ADDRESS = re.compile(
    r"https://(?P<host>"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9a-fA-F:]{2,39}\])"
    r"(?::(?P<port>[0-9]{1,5}))?)"
)
_USER = re.compile(r"[A-Za-z0-9._:@/+=#,-]{1,253}")  # it stands between quotes in an expression


def connect(
    name: str,
    *,
    connect_timeout_s: float = 3.0,
    read_timeout_s: float = 30.0,
    watch_timeout_s: int = 60,
    watch_read_timeout_s: float = 70.0,
) -> ClusterPort:
    """The port of the cluster of that name, by its sealed credential.

    Raises BadCredential where there is none or it can't be opened here. Nothing is sent yet. Call
    it after a fork, not before.
    """
    found = _credential(_row(name))
    # The client's import costs 0.7 s and 50 MB, which web processes need not pay.
    from clusters.adapters.kubernetes.adapter import KubernetesCluster
    from clusters.adapters.kubernetes.client import Client

    return KubernetesCluster(
        Client(
            server=found.server,
            identity=found.identity,
            allowed=_allowed(),
            ca_pem=found.ca_pem,
            connect_timeout_s=connect_timeout_s,
            read_timeout_s=read_timeout_s,
        ),
        names=_names(),
        watch_timeout_s=watch_timeout_s,
        watch_read_timeout_s=watch_read_timeout_s,
    )


def connect_use(
    name: str, *, connect_timeout_s: float = 3.0, read_timeout_s: float = 30.0
) -> UsePort | None:
    """What measures the devices of that cluster; None where its credential says of nothing that
    does. Raises BadCredential. Nothing is sent yet."""
    asked = _credential(_row(name)).metrics
    if asked is None:
        return None
    from clusters.adapters.kubernetes.client import Client  # as above
    from clusters.adapters.prometheus import QUERY, Prometheus

    client = Client(
        server=asked.server,
        identity=asked.token,
        allowed=_allowed(),
        ca_pem=asked.ca_pem,
        connect_timeout_s=connect_timeout_s,
        read_timeout_s=read_timeout_s,
    )
    return Prometheus(client, query=asked.query or QUERY)


def manifest(
    *,
    user: str | None,
    token_h: int,
    parts: Collection[Part] = (),
    catch_url: str | None = None,
    catch_ca: str | None = None,
) -> str:
    """What to apply in a cluster before it is registered, as YAML whose comments say what to do.

    It is for that user of the cluster, or else for an account that it makes; `token_h` is how many
    hours a token of that is good for. With Part.CATCH what others make in projects' namespaces
    waits for Berth; `catch_url` is where the cluster asks Berth for that where Kubernetes is older
    than 1.36, and `catch_ca` the authority of its certificate (PEM, None for one that the cluster
    trusts by itself).
    Raises Invalid, and Unavailable where BERTH_INSTALLATION names nothing in a cluster.
    """
    if not _OBJECT.fullmatch(settings.BERTH_INSTALLATION):
        raise Unavailable(
            f"BERTH_INSTALLATION is {settings.BERTH_INSTALLATION[:70]!r}, which names nothing in a"
            " cluster: use 1 to 40 of a-z, 0-9 and -."
        )
    if user is not None and not _USER.fullmatch(user):
        raise Invalid(
            f"{user[:70]!r} is no user's name: use 1 to 253 letters, digits and ._:@/+=#,-.",
            pointer="/user",
        )
    if not 1 <= token_h <= MOST_TOKEN_H:
        message = f"A token is good for 1 to {MOST_TOKEN_H} hours, not {token_h}."
        raise Invalid(message, pointer="/token_hours")
    if catch_url is not None and Part.CATCH not in parts:
        raise Invalid("What is asked by a webhook is of the part catch.", pointer="/catch_url")
    return access.text(
        names=_names(),
        user=user,
        token_h=token_h,
        parts=parts,
        hook=None if catch_url is None else _hook(catch_url, catch_ca),
    )


def _hook(url: str, ca: str | None) -> Hook:
    """Raises Invalid."""
    found = _ADDRESS.fullmatch(url)
    if found is None or int(found["port"] or 443) > 65535:
        raise Invalid(
            f"{url[:70]!r} is no address that a cluster may ask: it has to be as"
            " https://berth.example.org, or with a port, and without a path.",
            pointer="/catch_url",
        )
    host, _ = split_domain_port(found["host"])
    if settings.ALLOWED_HOSTS and not validate_host(host, settings.ALLOWED_HOSTS):
        raise Invalid(
            f"{host} is not among BERTH_ALLOWED_HOSTS, so Berth would refuse what a cluster asks"
            " there: add it, for the web server and here.",
            pointer="/catch_url",
        )
    try:
        return Hook(url, credential.ca(ca, "--catch-ca") or "")
    except BadCredential as error:
        raise Invalid(f"{error}.", pointer="/catch_ca") from None


def admitted(review: bytes) -> dict[str, object]:
    """What the webhook of a manifest answers. Raises Invalid."""
    try:
        return answer(review, names=_names())
    except NotAReview as error:
        raise Invalid(str(error)) from error


def account() -> tuple[str, str]:
    """The name and the namespace of the account that `manifest` makes."""
    return _names().own, _names().home


def open_keys() -> list[PrivateKey]:
    """Those of this process, the newest first; [] where it may not open anything."""
    return [PrivateKey(raw) for raw in settings.BERTH_OPEN_KEYS]


def opened(row: ClusterCredential) -> bytes:
    """What was sealed, for who seals it again. Of one that was stored before that was kept, what
    measures the cluster is noted. Raises BadCredential."""
    try:
        plain = open_sealed(open_keys(), bytes(row.sealed), context=row.context)
    except Unopened as error:
        why = f"The credential of cluster {row.cluster.name} can't be opened: {error}."
        raise BadCredential("", why) from None
    if row.metrics_server is None:
        metrics = orjson.loads(plain).get("metrics") or {}
        ClusterCredential.objects.filter(
            pk=row.pk, version=row.version, metrics_server=None
        ).update(metrics_server=metrics.get("server", ""))
    return plain


class Ports:
    """The port of each cluster, kept for as long as its credential is the same; for one thread.
    The limits are those of `connect`."""

    def __init__(self, *, connect_timeout_s: float, read_timeout_s: float) -> None:
        self._connect_timeout_s = connect_timeout_s
        self._read_timeout_s = read_timeout_s
        self._kept: dict[str, _Kept] = {}

    def of(self, name: str) -> ClusterPort:
        """As `connect`. One query, without the box, and another where it connects."""
        rows = ClusterCredential.objects.filter(cluster__name=name)
        by = rows.values_list("cluster_id", "version").first()
        kept = self._kept.get(name)
        if kept is not None and kept.by == by:
            return kept.port
        if kept is not None:
            del self._kept[name]
            kept.port.close()
        port = connect(
            name,
            connect_timeout_s=self._connect_timeout_s,
            read_timeout_s=self._read_timeout_s,
        )
        self._kept[name] = _Kept(by, port)
        return port


@dataclass(frozen=True, slots=True)
class _Kept:
    """A port, and `by` which cluster's credential it is, of which version."""

    by: tuple[UUID, int] | None
    port: ClusterPort


def _row(name: str) -> ClusterCredential:
    row = ClusterCredential.objects.select_related("cluster").filter(cluster__name=name).first()
    if row is None:
        why = f"Cluster {name!r} has no credential yet: store one on its page, or by the API."
        raise BadCredential("", why)
    return row


def _credential(row: ClusterCredential) -> Credential:
    return credential.read(orjson.loads(opened(row)))


def _names() -> Names:
    return Names(
        prefix=settings.BERTH_PREFIX,
        installation=settings.BERTH_INSTALLATION,
        mig_config=settings.BERTH_MIG_CONFIG,
    )


def _allowed() -> Allowed:
    return Allowed(settings.BERTH_CLUSTER_NETWORKS, own_hosts=settings.OWN_HOSTS)
