"""Storing the credentials of clusters. What is in one is seen by nobody but who connects."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from clusters import credential as plain
from clusters import kubeconfig, registry
from clusters.credential import BadCredential, Credential
from clusters.models import Cluster, ClusterCredential
from clusters.sealing import PublicKey, seal
from clusters.services import probes
from controlplane.audit import services as audit
from controlplane.kernel.errors import Conflict, Invalid, Unavailable


def read(fields: Mapping[str, Any]) -> Credential:  # Any: JSON values
    """Of a "kubeconfig", beside which only "metrics" may stand, or of the fields of
    `clusters.credential.read`. Raises Invalid."""
    try:
        return _read(fields)
    except BadCredential as error:
        where = error.where.replace(".", "/")
        raise Invalid(f"{error}.", pointer=f"/{where}" if where else "") from None


def _check_unmeasured(before: ClusterCredential) -> None:
    """A new credential takes the place of all of the old one, which nobody here can open. Raises
    Invalid."""
    if before.metrics_server == "":
        return
    said = "What measures the cluster by now is not known here"
    if before.metrics_server:
        said = f"{before.metrics_server} measures the cluster by now"
    raise Invalid(
        f"{said}: name it again with its token, or say that nothing measures it any longer.",
        pointer="/metrics",
        code="required",
    )


def _read(fields: Mapping[str, Any]) -> Credential:  # Any: as above
    if "kubeconfig" not in fields:
        return plain.read(fields)
    if set(fields) - {"kubeconfig", "metrics"}:
        raise BadCredential(
            "kubeconfig", "a kubeconfig or the fields of a credential are wanted, not both"
        )
    measured = plain.metrics(fields.get("metrics"))
    try:
        found = replace(kubeconfig.parse(fields["kubeconfig"]), metrics=measured)
    except BadCredential as error:
        raise BadCredential("kubeconfig", str(error)) from None
    plain.check_size(found)
    return found


def store(
    *,
    cluster: Cluster,
    credential: Credential,
    says_metrics: bool = True,
    actor: str,
    actor_name: str,
    at: datetime,
) -> ClusterCredential:
    """Seal it here, have whoever is connected to the cluster take it up within seconds, and ask
    for a probe. Where something measures the cluster by now, or nobody knows, it has to say of
    metrics (`says_metrics`), if only that nothing does any longer.

    Raises Invalid for one that does not, and for one that has ended by its own word, Unavailable
    without BERTH_SEAL_KEY.
    """
    ends = credential.expires_at
    if ends is not None and ends <= at:
        raise Invalid(f"The credential ended at {ends:%Y-%m-%d %H:%M} UTC.", code="expired")
    key = _seal_key()
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(id=cluster.id)  # one at a time
        before = ClusterCredential.objects.filter(cluster=cluster).first()
        if before is not None and not says_metrics:
            _check_unmeasured(before)
        row = ClusterCredential(
            cluster=cluster,
            host=credential.host,
            expires_at=ends,
            metrics_server=credential.metrics.server if credential.metrics else "",
            version=before.version + 1 if before else 1,
            set_at=at,
            set_by=actor_name,
        )
        row.sealed = seal(key, credential.written(), context=row.context)
        row.save()
        Cluster.objects.filter(id=cluster.id).update(server=credential.server)
        probes.ask(cluster=cluster, actor_name=actor_name, at=at)
        entry = audit.Entry(
            "cluster.credential",
            "cluster",
            cluster.id,
            before=_shown(before) if before else {},
            after=_shown(row),
        )
        audit.record(actor=actor, actor_name=actor_name, entries=[entry], at=at)
    return row


def reseal() -> int:
    """Seal under BERTH_SEAL_KEY what is sealed under another key; how many were.

    The credentials stay the same, so nobody has to take up anything and the audit is told of
    nothing. One that is replaced meanwhile is left to who replaced it. Raises Unavailable without
    BERTH_SEAL_KEY, Conflict where nothing could open them then, BadCredential for one that can't
    be opened now.
    """
    key = _seal_key()
    if key not in {own.public for own in registry.open_keys()}:
        raise Conflict("BERTH_SEAL_KEY is of none of the keys in BERTH_OPEN_KEYS.")
    resealed = 0
    for row in ClusterCredential.objects.select_related("cluster").order_by("cluster"):
        if row.key_id != key.id.hex():
            box = seal(key, registry.opened(row), context=row.context)
            as_it_was = ClusterCredential.objects.filter(cluster=row.cluster, sealed=row.sealed)
            resealed += as_it_was.update(sealed=box)
    return resealed


def _seal_key() -> PublicKey:
    if not settings.BERTH_SEAL_KEY:
        raise Unavailable("Nothing can be sealed here: BERTH_SEAL_KEY is not set.")
    return PublicKey(settings.BERTH_SEAL_KEY)


def _shown(row: ClusterCredential) -> dict[str, str | int | None]:
    """What every reader of the audit may see."""
    ends = row.expires_at
    return {
        "host": row.host,
        "key_id": row.key_id,
        "version": row.version,
        "metrics_server": row.metrics_server,
        "expires_at": ends.isoformat() if ends else None,
    }
