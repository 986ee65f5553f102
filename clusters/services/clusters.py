"""Clusters themselves: registering, hearing from, falling silent."""

from datetime import datetime

from django.db import IntegrityError, connection, transaction

from clusters.models import Cluster, ClusterState
from clusters.port import ClusterVersion
from controlplane.audit import services as audit
from controlplane.kernel.errors import Conflict

DEGRADED_S = 60
LOST_S = 600


def register(*, name: str, region: str, actor: str, actor_name: str, at: datetime) -> Cluster:
    """A cluster to be watched from now on; its credential lies in BERTH_CREDENTIALS_DIR.

    Raises Conflict when the name is taken.
    """
    try:
        with transaction.atomic():
            cluster = Cluster.objects.create(name=name, region=region, created_at=at)
            audit.record(
                actor=actor,
                actor_name=actor_name,
                at=at,
                entries=[
                    audit.Entry(
                        action="cluster.register",
                        target_type="cluster",
                        target_id=cluster.id,
                        after={"name": name, "region": region},
                    )
                ],
            )
    except IntegrityError as error:
        raise Conflict(f"There is a cluster {name!r} already.", pointer="/name") from error
    return cluster


def heard(*, cluster: Cluster, version: ClusterVersion | None = None) -> None:
    """It answered: not silent any more. A draining cluster stays draining."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE clusters_cluster SET seen_at = clock_timestamp(), last_error = '',"
            " state = CASE WHEN state = 'draining' THEN state ELSE 'active' END WHERE id = %s",
            [cluster.id],
        )
    if version is not None:
        Cluster.objects.filter(id=cluster.id).update(
            version=version.version, simulated=version.simulated
        )


def failed(*, cluster: Cluster, why: str) -> None:
    """It did not answer, or not well. Its state follows from how long that lasts."""
    Cluster.objects.filter(id=cluster.id).update(last_error=why[:500])


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
