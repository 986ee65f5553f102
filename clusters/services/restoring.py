"""Whether the database is the one into which clusters were last listed, or a copy that was put
back from a backup.

A copy says of each cluster that it was heard, while what runs there is another by now. So with
each cluster goes where its lists were stored: in which server, on which of its timelines, and in
which transaction the row of `Imprint` was written. Each way to put the tables back changes one of
them: `pg_restore`, COPY of all rows, a base backup that is rolled forward. So do an upgrade of the
server and a standby that is promoted; those are heard again in seconds. What routine work rewrites
is none of it. A disk that is copied under the server shows nothing: see `look_again`.
"""

from datetime import datetime
from typing import NamedTuple

from django.db import connection, transaction

from clusters.models import Cluster
from controlplane.audit import services as audit

# The timeline of what is written now: that of the last checkpoint is the one before, for a while
# after a promotion.
HERE = """(
    SELECT s.system_identifier || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
           || '/' || coalesce((SELECT min(i.xmin::text) FROM clusters_imprint i), '')
    FROM pg_control_system() s)"""
RECENT_S = 600
"""What a database may lack of which another cluster was heard so lately: see `notice`."""


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


_NOTICE = f"""
UPDATE clusters_cluster c SET
    restored_at = clock_timestamp(),
    state = CASE WHEN found.stays_lost THEN 'lost' ELSE 'new' END,
    heard_in = CASE WHEN found.stays_lost THEN found.here ELSE c.heard_in END
FROM (SELECT o.id, now.here, o.state = 'lost'
             AND split_part(o.heard_in, '/', 1) = split_part(now.here, '/', 1)
             AND split_part(o.heard_in, '/', 3) = split_part(now.here, '/', 3)
             AND EXISTS (SELECT FROM clusters_cluster k WHERE k.heard_in = o.heard_in
                         AND k.seen_at > clock_timestamp() - {RECENT_S} * interval '1 second')
      FROM clusters_cluster o, {HERE} AS now (here)
      WHERE o.heard_in NOT IN ('', now.here) AND (o.restored_at IS NULL OR o.state <> 'new')
     ) AS found (id, here, stays_lost)
WHERE c.id = found.id
"""  # noqa: S608  # constants


def notice() -> None:
    """Every cluster that was last heard in another database is NEW until it is heard in this one:
    nothing is started there, and nothing anywhere else (see `any_unread`).

    One that was lost stays so where only the timeline is another and the rows are of the last ten
    minutes: a standby took over, at any hour, and nobody shall have to come for a cluster that has
    long been dead.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NOTICE)


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
        with connection.cursor() as cursor:
            # What is put back next is another database than this, of which it is said.
            cursor.execute(
                f"UPDATE clusters_cluster SET state = 'lost', heard_in = {HERE}"  # noqa: S608
                " WHERE id = %s AND restored_at IS NOT NULL AND state = 'new'",
                [cluster.id],
            )
            moved = cursor.rowcount
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
