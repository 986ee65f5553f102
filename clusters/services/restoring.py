"""Whether the database is the one into which clusters were last listed, or a copy that was put
back from a backup.

A copy says of each cluster that it was heard, while what runs there is another by now. So with
each cluster goes where its lists were stored: in which server, on which of its timelines, and in
which file of its table. `pg_restore`, `COPY` into an emptied table, a base backup that is rolled
forward: each changes one of them. A standby that is promoted does too, and a table that is
rewritten; those are heard again in seconds.
"""

from datetime import datetime
from typing import NamedTuple

from django.db import connection, transaction

from clusters.models import Cluster, ClusterState
from controlplane.audit import services as audit

HERE = """(
    SELECT s.system_identifier || '/' || c.timeline_id || '/'
           || pg_relation_filepath('clusters_cluster')
    FROM pg_control_system() s, pg_control_checkpoint() c)"""


class Listing(NamedTuple):
    """As what a cluster's lists are taken: into which database, and since when that counts as put
    back under it, None where it does not. Only lists of one that was put back are believed to
    show attempts that it lost: in others whoever can make such pods would tell Berth what ran."""

    database: str
    restored_at: datetime | None


def begin(*, cluster: Cluster) -> Listing:
    """To be called before the first of its lists."""
    notice()
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {HERE}, restored_at FROM clusters_cluster WHERE id = %s",  # noqa: S608
            [cluster.id],
        )
        return Listing(*cursor.fetchone())


def notice() -> None:
    """Every cluster that was last heard in another database is NEW until it is heard in this one:
    nothing is started there, and nothing anywhere else (see `any_unread`)."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE clusters_cluster SET state = 'new', restored_at = clock_timestamp()"  # noqa: S608  # a constant
            f" WHERE heard_in <> '' AND restored_at IS NULL AND heard_in <> {HERE}"
        )


ANY_UNREAD = (
    "EXISTS (SELECT FROM clusters_cluster WHERE restored_at IS NOT NULL AND state = 'new')"
)


def any_unread() -> bool:
    """Whether work that the database has as waiting, or as to be started, may run in a cluster
    that was not listed since it was put back, and that nobody has given up."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {ANY_UNREAD}")
        return bool(cursor.fetchone()[0])


def look_again(*, cluster: Cluster, actor: str, actor_name: str, at: datetime) -> None:
    """Take it for put back, though nothing shows that: nothing starts anywhere before it is listed
    anew."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE clusters_cluster SET state = 'new', restored_at = clock_timestamp()"
            " WHERE id = %s",
            [cluster.id],
        )
        entry = audit.Entry(
            "cluster.look-again",
            "cluster",
            cluster.id,
            before={"state": cluster.state},
            after={"state": "new"},
        )
        audit.record(actor=actor, actor_name=actor_name, entries=[entry], at=at)


def go_on_without(*, cluster: Cluster, actor: str, actor_name: str, at: datetime) -> bool:
    """Let the others go on though this one was not listed since the database was put back: what
    may run there twice is the operator's word. False where nobody waits for it."""
    with transaction.atomic():
        moved = Cluster.objects.filter(
            id=cluster.id, restored_at__isnull=False, state=ClusterState.NEW
        ).update(state=ClusterState.LOST)
        if not moved:
            return False
        entry = audit.Entry(
            "cluster.go-on-without",
            "cluster",
            cluster.id,
            before={"state": "new"},
            after={"state": "lost"},
        )
        audit.record(actor=actor, actor_name=actor_name, entries=[entry], at=at)
    return True
