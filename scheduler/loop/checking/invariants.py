"""Looks for what breaks the rules about rows, which hold at every moment, in the base rows alone.

A guard of admission (checks.py), operators, the trace replay and the crash tests ask for it. It
shares no code with the loop that keeps the promises (reliability 3), and trusts no sum that the
loop wrote down.
"""

from collections.abc import Container, Iterator
from datetime import timedelta
from itertools import islice

from django.db import connection

from controlplane.kernel.moment import frozen
from scheduler.loop.checking import lent
from scheduler.loop.checking.promises import RULES
from scheduler.loop.checking.rules import MOST, Rule, Violation
from scheduler.selectors import fleet

AT_ONCE = Rule("P1", "at-once", 3, "{} and {} ran at once on one span of device {}.")
SUBJECTS = frozenset(rule.about for rule in [*RULES, lent.OVER, AT_ONCE])
CLOCKS = timedelta(seconds=1)
"""By how much the clocks of a cluster and of a worker may disagree about who came first."""
CHUNK = 2000
"""Rows that are in memory at once, however long the history."""


def violations(
    *, about: Container[str] = SUBJECTS, query_s: float | None = None
) -> list[Violation]:
    """What breaks the rules about these subjects as of one moment of the database, those of one
    rule side by side; [] when all hold. More than MOST of one rule are MOST + 1.

    `query_s` is the time that one query may take, None any. Raises OperationalError when one
    takes longer.
    """
    with frozen():
        if query_s is not None:
            _set("statement_timeout", f"{round(query_s * 1000)}ms")
        return violations_here(about=about)


def violations_here(*, about: Container[str] = SUBJECTS) -> list[Violation]:
    """As `violations`, inside a transaction that the caller has made consistent."""
    found = [
        Violation(rule, row)
        for rule, sql in RULES.items()
        if rule.about in about
        for row in fleet.rows(_FIRST.format(sql=sql), [MOST + 1])
    ]
    if lent.OVER.about in about:
        found += [Violation(lent.OVER, row) for row in islice(lent.over(), MOST + 1)]
    if AT_ONCE.about in about:
        found += [Violation(AT_ONCE, row) for row in islice(_at_once(), MOST + 1)]
    return found


# Planned for all of it: as a rule none is found, and a plan for the first few would read for long.
_FIRST = "WITH broken AS MATERIALIZED ({sql}) SELECT * FROM broken LIMIT %s"


def _set(name: str, value: str) -> None:
    """A setting of PostgreSQL, until the transaction ends."""
    fleet.rows("SELECT set_config(%s, %s, true)", [name, value])


_RUNS = """
SELECT s.device_id::text, lower(s.span), upper(s.span), p.started_at,
       coalesce(p.ended_at, '9999-01-01'), p.pod_name
FROM scheduler_placementspan s JOIN scheduler_placement p ON p.id = s.placement_id
WHERE p.started_at IS NOT NULL AND p.ended_at IS DISTINCT FROM p.started_at
ORDER BY s.device_id, p.started_at, p.id
"""


def _at_once() -> Iterator[fleet.Row]:
    """Pods that ran at one time on one span of a device, however long ago, and the device."""
    device, running = "", list[fleet.Row]()
    for row in _runs():
        if row[0] != device:
            device, running = row[0], []
        _, start, end, started_at, _, name = row
        running = [other for other in running if other[4] - CLOCKS > started_at]
        for other in running:
            if start < other[2] and other[1] < end:
                yield other[5], name, device
        running.append(row)


def _runs() -> Iterator[fleet.Row]:
    _set("cursor_tuple_fraction", "1")  # all rows will be read: plan for that
    with connection.chunked_cursor() as cursor:
        cursor.execute(_RUNS)
        while rows := cursor.fetchmany(CHUNK):
            yield from rows
