"""Who may apply plans: one lease row a shard, fenced by its epoch, timed by the database alone."""

import os
import socket
from dataclasses import dataclass

from django.conf import settings

from controlplane.kernel import statements
from controlplane.kernel.commits import NOT_WAITING
from controlplane.kernel.crash import crash
from controlplane.kernel.errors import Conflict


class Fenced(Conflict):
    """Another scheduler has taken the lease: drop what was decided."""

    default_code = "fenced"


@dataclass(frozen=True, slots=True)
class Lease:
    shard: str
    epoch: int
    holder: str


_ACQUIRE = """
INSERT INTO scheduler_schedulerlease AS l (shard, epoch, holder, expires_at)
VALUES (%(shard)s, 1, %(holder)s, clock_timestamp() + %(length)s * interval '1 second')
ON CONFLICT (shard) DO UPDATE SET
    epoch = l.epoch + 1, holder = EXCLUDED.holder, expires_at = EXCLUDED.expires_at
WHERE l.expires_at < clock_timestamp()
RETURNING epoch
"""


def acquire(*, shard: str) -> Lease | None:
    """The lease, under a new epoch, or None while somebody else's has not run out."""
    holder = f"{socket.gethostname()}:{os.getpid()}"[:100]
    with statements.cursor() as cursor:
        cursor.execute(
            _ACQUIRE, {"shard": shard, "holder": holder, "length": settings.BERTH_LEASE_S}
        )
        row = cursor.fetchone()
    crash("B1")
    return None if row is None else Lease(shard, row[0], holder)


def fence(lease: Lease) -> None:
    """Hold the lease's row against a takeover until the transaction ends. Raises Fenced.

    The takeover is an UPDATE of the row, so it waits for this share lock; a stale holder finds no
    row of its epoch.
    """
    with statements.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM scheduler_schedulerlease WHERE shard = %s AND epoch = %s FOR SHARE",
            [lease.shard, lease.epoch],
        )
        if cursor.fetchone() is None:
            raise Fenced(f"shard {lease.shard}: epoch {lease.epoch} is over")


# Without waiting for the disk: a server that dies forgets only when the lease would have ended,
# which nothing but the time of the next cycle rests on.
_MOVE_END = f"""
UPDATE scheduler_schedulerlease
SET expires_at = clock_timestamp() + %s * interval '1 second'
FROM {NOT_WAITING}
WHERE shard = %s AND epoch = %s
"""  # noqa: S608  # a constant


def renew(lease: Lease) -> None:
    """Another BERTH_LEASE_S from now, in a transaction of its own. Raises Fenced."""
    with statements.cursor() as cursor:
        cursor.execute(_MOVE_END, [settings.BERTH_LEASE_S, lease.shard, lease.epoch])
        if cursor.rowcount == 0:
            raise Fenced(f"shard {lease.shard}: epoch {lease.epoch} is over")


def release(lease: Lease) -> None:
    """Let the next holder in at once, in a transaction of its own. Nothing to do when the epoch is
    over."""
    with statements.cursor() as cursor:
        cursor.execute(_MOVE_END, [-1e-6, lease.shard, lease.epoch])
