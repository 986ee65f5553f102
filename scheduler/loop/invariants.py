"""What has to hold of the rows at every moment, derived again from the base rows alone.

A guard of admission (checks.py), operators, the trace replay and the crash tests ask for it. It
shares no code with the loop that keeps these promises (reliability 3), and trusts no sum that the
loop wrote down.
"""

from collections.abc import Container, Iterator
from datetime import timedelta

from django.db import connection

from scheduler.core.lifecycle import State, allowed
from scheduler.loop.load import frozen
from scheduler.loop.promises import CHECKS, ROOM
from scheduler.selectors import fleet

PROMISES = frozenset({"P1", "P2", "P3", "P4", "P5", "P6", ROOM})
MOST = 20
"""Sentences a check tells; of the rest it tells how many they are."""
CLOCKS = timedelta(seconds=1)
"""By how much the clocks of a cluster and of a worker may disagree about who came first."""
CHUNK = 2000
"""Rows that are in memory at once, however long the history."""


def violations(*, of: Container[str] = PROMISES, query_s: float | None = None) -> list[str]:
    """A sentence for each broken promise, as of one moment of the database; [] when all hold.

    `query_s` is the time that one query may take, None any. Raises OperationalError when one
    takes longer.
    """
    with frozen():
        if query_s is not None:
            _set("statement_timeout", f"{round(query_s * 1000)}ms")
        return violations_here(of=of)


def violations_here(*, of: Container[str] = PROMISES) -> list[str]:
    """As `violations`, inside a transaction that the caller has made consistent."""
    found = []
    for check in CHECKS:
        if check.promise in of:
            broken = fleet.rows(_COUNTED.format(sql=check.sql), [MOST])
            sentences = [check.sentence.format(*row[:-1]) for row in broken]
            found += _told(check.promise, sentences, count=broken[0][-1] if broken else 0)
    if "P1" in of:
        found += _shortened("P1", _at_once())
    if "P5" in of:
        found += _shortened("P5", _unlawful())
    return found


_COUNTED = "SELECT broken.*, count(*) OVER () FROM ({sql}) AS broken LIMIT %s"


def _shortened(promise: str, sentences: Iterator[str]) -> list[str]:
    first, count = list[str](), 0
    for count, sentence in enumerate(sentences, start=1):
        if count <= MOST:
            first.append(sentence)
    return _told(promise, first, count=count)


def _told(promise: str, first: list[str], *, count: int) -> list[str]:
    told = [f"{promise}: {sentence}" for sentence in first]
    if count > len(first):
        told.append(f"{promise}: … and {count - len(first)} more like the last.")
    return told


def _set(name: str, value: str) -> None:
    """A setting of PostgreSQL, until the transaction ends."""
    fleet.rows("SELECT set_config(%s, %s, true)", [name, value])


def _unlawful() -> Iterator[str]:
    for before, after, count in fleet.rows(
        "SELECT before, after, count(*) FROM scheduler_workloadevent"
        " WHERE kind = 'state' AND before <> '' GROUP BY 1, 2"
    ):
        if not allowed(State(before), State(after)):
            yield f"{count} workloads went from {before} to {after}, which is no step."


_RUNS = """
SELECT s.device_id::text, lower(s.span), upper(s.span), p.started_at,
       coalesce(p.ended_at, '9999-01-01'), p.pod_name
FROM scheduler_placementspan s JOIN scheduler_placement p ON p.id = s.placement_id
WHERE p.started_at IS NOT NULL AND p.ended_at IS DISTINCT FROM p.started_at
ORDER BY s.device_id, p.started_at
"""


def _at_once() -> Iterator[str]:
    """Pods that ran at one time on one span of a device, however long ago."""
    device, running = "", list[fleet.Row]()
    for row in _runs():
        if row[0] != device:
            device, running = row[0], []
        _, start, end, started_at, _, name = row
        running = [other for other in running if other[4] - CLOCKS > started_at]
        for other in running:
            if start < other[2] and other[1] < end:
                yield f"{other[5]} and {name} ran at once on one span of device {device}."
        running.append(row)


def _runs() -> Iterator[fleet.Row]:
    _set("cursor_tuple_fraction", "1")  # all rows will be read: plan for that
    with connection.chunked_cursor() as cursor:
        cursor.execute(_RUNS)
        while rows := cursor.fetchmany(CHUNK):
            yield from rows
