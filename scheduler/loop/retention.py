"""What only tells about the past is kept for a while: a bounded delete of the oldest rows."""

from django.db import models

from controlplane.kernel import statements

MOST = 5000
"""Rows that one call deletes: nobody waits long for it, and a backlog goes away over calls."""

# By id: it is time-ordered and of real time, so that a replay in accelerated time, where weeks
# pass in seconds, keeps what it reports on; and its index finds the oldest rows at once.
_SINCE = """(
    lpad(to_hex((extract(epoch FROM clock_timestamp() - %s * interval '1 {unit}')
                 * 1000)::bigint), 12, '0') || repeat('0', 20)
)::uuid"""
_PRUNE = """
DELETE FROM {table} WHERE {key} IN (
    SELECT {key} FROM {table} WHERE {key} < {since} ORDER BY {key} LIMIT %s
)
"""
_YOUNGER = "SELECT EXISTS (SELECT FROM {table} WHERE {key} >= {since})"


def prune(model: type[models.Model], *, days: int) -> int:
    """Delete rows made more than `days` of real time ago, at most MOST, the oldest first.

    Only for rows that nothing refers to, unless it goes with them. How many were deleted.
    """
    with statements.cursor() as cursor:
        cursor.execute(_of(_PRUNE, model, "day"), [days, MOST])
        return int(cursor.rowcount)


def any_younger(model: type[models.Model], *, than_s: int) -> bool:
    """Whether a row was made less than that many seconds of real time ago."""
    with statements.cursor() as cursor:
        cursor.execute(_of(_YOUNGER, model, "second"), [than_s])
        return bool(cursor.fetchone()[0])


def _of(sql: str, model: type[models.Model], unit: str) -> str:
    key = model._meta.pk.column
    return sql.format(table=model._meta.db_table, key=key, since=_SINCE.format(unit=unit))
