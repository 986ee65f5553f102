"""Counts what stands idle because it is kept for who has waited longer (ADR 0020).

A cycle says how many devices are free and kept for a workload at its moment (`Keep.idle_milli`).
That many are counted from this cycle to the next one, whether or not anybody else would have used
them; but for no longer than LONGEST_S, since while nobody plans it is not the keeping that leaves
them idle. What is only to come free for it, and still runs, is not counted. What several are kept
for is counted once: each has places of its own.
"""

from collections.abc import Sequence
from datetime import datetime

from controlplane.kernel import statements
from controlplane.kernel.ids import uuid7s
from scheduler.core.plan import Keep

LONGEST_S = 60
"""Cycles follow each other every few seconds while anything waits."""

# Rows are locked by workload, and only then made: two processes that count wait for each other and
# don't block each other.
_COUNT = """
WITH kept (id, workload_id, idle_milli) AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(workloads)s::uuid[], %(idle_milli)s::bigint[])
), due AS (
    SELECT id FROM scheduler_keptroom
    WHERE idle_milli > 0 OR workload_id IN (SELECT workload_id FROM kept)
    ORDER BY workload_id FOR NO KEY UPDATE
), counted AS (
    UPDATE scheduler_keptroom r SET
        idle_milli_s = r.idle_milli_s + r.idle_milli * least(%(longest_s)s * 1000, greatest(
            0, extract(epoch FROM %(at)s - r.counted_at) * 1000))::bigint / 1000,
        idle_milli = coalesce((SELECT k.idle_milli FROM kept k
                               WHERE k.workload_id = r.workload_id), 0),
        counted_at = %(at)s
    FROM due WHERE r.id = due.id
    RETURNING r.workload_id)
INSERT INTO scheduler_keptroom (id, workload_id, counted_at, idle_milli, idle_milli_s)
SELECT id, workload_id, %(at)s, idle_milli, 0 FROM kept
WHERE workload_id NOT IN (SELECT workload_id FROM counted)
ORDER BY workload_id
ON CONFLICT (workload_id) DO NOTHING  -- another process has counted it this moment
"""


def count(*, keeps: Sequence[Keep], at: datetime, speed: float = 1.0) -> None:
    """Add up to `at` what stood idle since the cycle before, and note what does now. `speed` is
    how many seconds of `at` pass in one. One statement, in the caller's transaction."""
    idle = [keep for keep in keeps if keep.idle_milli]
    with statements.cursor() as cursor:
        cursor.execute(
            _COUNT,
            {
                "ids": uuid7s(len(idle)),
                "workloads": [keep.workload for keep in idle],
                "idle_milli": [keep.idle_milli for keep in idle],
                "at": at,
                "longest_s": LONGEST_S * speed,
            },
        )
