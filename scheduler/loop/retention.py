"""What only tells about the past is kept for a while: a bounded delete of the oldest rows."""

from django.db import connection, models

MOST = 5000
"""Rows that one call deletes: nobody waits long for it, and a backlog goes away over calls."""

# By id: it is time-ordered and of real time, so that a replay in accelerated time, where weeks
# pass in seconds, keeps what it reports on; and its index finds the oldest rows at once.
_PRUNE = """
DELETE FROM {table} WHERE id IN (
    SELECT id FROM {table} WHERE id < (
        lpad(to_hex((extract(epoch FROM clock_timestamp() - %s * interval '1 day')
                     * 1000)::bigint), 12, '0') || repeat('0', 20)
    )::uuid ORDER BY id LIMIT %s
)
"""


def prune(model: type[models.Model], *, days: int) -> int:
    """Delete rows made more than `days` of real time ago, at most MOST, the oldest first.

    Only for rows that nothing refers to. How many were deleted.
    """
    with connection.cursor() as cursor:
        cursor.execute(_PRUNE.format(table=model._meta.db_table), [days, MOST])
        return int(cursor.rowcount)
