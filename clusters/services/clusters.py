"""Clusters themselves: registering, draining, hearing from, falling silent."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, connection, transaction

from clusters.models import Cluster, ClusterState
from clusters.port import ClusterVersion
from controlplane.audit import services as audit
from controlplane.kernel import hints, text
from controlplane.kernel.errors import Conflict, Invalid

DEGRADED_S = 60
LOST_S = 600
MAX_REGION = 60
# It names the credential's file too, so it is nothing that a path could read another way.
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


def register(*, name: str, region: str, actor: str, actor_name: str, at: datetime) -> Cluster:
    """A cluster to be watched from now on; its credential lies in BERTH_CREDENTIALS_DIR.

    Raises Invalid for a name or region that is none, Conflict when the name is taken.
    """
    if not NAME.fullmatch(name):
        raise Invalid("1 to 40 of a-z, 0-9 and - are wanted.", pointer="/name")
    fault = text.fault(region)
    if fault or len(region) > MAX_REGION:
        message = fault or f"A region has at most {MAX_REGION} characters."
        code = "bad-character" if fault else "invalid"
        raise Invalid(message, pointer="/region", code=code)
    try:
        with transaction.atomic():
            cluster = Cluster.objects.create(name=name, region=region, created_at=at)
            after = {"name": name, "region": region}
            _record(cluster, "cluster.register", {}, after, by=(actor, actor_name), at=at)
    except IntegrityError as error:
        raise Conflict(f"There is a cluster {name!r} already.", pointer="/name") from error
    return cluster


def drain(*, cluster: Cluster, actor: str, actor_name: str, at: datetime) -> None:
    """Nothing new starts there; what runs goes on. Raises Conflict when it is draining already."""
    _move(
        "UPDATE clusters_cluster c SET state = 'draining' FROM"
        " (SELECT id, state FROM clusters_cluster WHERE id = %s FOR NO KEY UPDATE) was"
        " WHERE c.id = was.id AND was.state <> 'draining' RETURNING was.state, c.state",
        [cluster.id],
        cluster=cluster,
        action="cluster.drain",
        refusal=f"{cluster.name} is draining already.",
        by=(actor, actor_name),
        at=at,
    )


def resume(*, cluster: Cluster, actor: str, actor_name: str, at: datetime) -> None:
    """It may take work again, in the state that its silence makes of it.

    Raises Conflict when it is not draining.
    """
    _move(
        "UPDATE clusters_cluster SET state = CASE WHEN seen_at IS NULL THEN 'new'"
        " WHEN seen_at < clock_timestamp() - %s * interval '1 second' THEN 'lost'"
        " WHEN seen_at < clock_timestamp() - %s * interval '1 second' THEN 'degraded'"
        " ELSE 'active' END WHERE id = %s AND state = 'draining' RETURNING 'draining', state",
        [LOST_S, DEGRADED_S, cluster.id],
        cluster=cluster,
        action="cluster.resume",
        refusal=f"{cluster.name} is not draining.",
        by=(actor, actor_name),
        at=at,
    )


def _move(
    compare_and_set: str,
    arguments: Sequence[UUID | int],
    *,
    cluster: Cluster,
    action: str,
    refusal: str,
    by: tuple[str, str],
    at: datetime,
) -> None:
    """One statement that answers (before, after), or no row: then it is refused. `by` is the
    actor's label and name."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(compare_and_set, arguments)
            moved = cursor.fetchone()
        if moved is None:
            raise Conflict(refusal)
        before, after = moved
        _record(cluster, action, {"state": before}, {"state": after}, by=by, at=at)
        hints.hint(hints.CYCLE)


def _record(
    cluster: Cluster,
    action: str,
    before: Mapping[str, str],
    after: Mapping[str, str],
    *,
    by: tuple[str, str],
    at: datetime,
) -> None:
    entry = audit.Entry(action, "cluster", cluster.id, before=before, after=after)
    audit.record(actor=by[0], actor_name=by[1], entries=[entry], at=at)


def heard(*, cluster: Cluster) -> None:
    """Its nodes and pods are known as of now: not silent. A draining cluster stays draining."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE clusters_cluster SET seen_at = clock_timestamp(), last_error = '',"
            " state = CASE WHEN state = 'draining' THEN state ELSE 'active' END WHERE id = %s",
            [cluster.id],
        )


def answered(*, cluster: Cluster, version: ClusterVersion) -> None:
    """Its API says what it is, which tells nothing of its nodes and pods: see `heard`."""
    Cluster.objects.filter(id=cluster.id).update(
        version=version.version, simulated=version.simulated
    )


def failed(*, cluster: Cluster, why: str) -> None:
    """A list, a watch or its version failed. Its state follows from how long that lasts."""
    Cluster.objects.filter(id=cluster.id).update(last_error=why[:500])


def use_failed(*, cluster: Cluster, why: str) -> None:
    """Nobody said how much its devices are used."""
    Cluster.objects.filter(id=cluster.id).update(use_error=why[:500])


def use_not_asked(*, cluster: Cluster) -> None:
    """Nobody is to say it, so nothing is wrong with that."""
    Cluster.objects.filter(id=cluster.id).update(use_error="")


def mark_silent() -> None:
    """ACTIVE → DEGRADED after a minute, → LOST after ten, by the database's clock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE clusters_cluster SET state = CASE"
            " WHEN seen_at < clock_timestamp() - %s * interval '1 second' THEN %s ELSE %s END"
            " WHERE state = ANY(%s) AND seen_at < clock_timestamp() - %s * interval '1 second'",
            [
                LOST_S,
                ClusterState.LOST.value,
                ClusterState.DEGRADED.value,
                [ClusterState.ACTIVE.value, ClusterState.DEGRADED.value],
                DEGRADED_S,
            ],
        )
