"""What has to hold of the rows at every moment, derived again from the base rows alone.

Operators, the trace replay and the crash tests ask for it. It shares no code with the loop that
keeps these promises (reliability 3), and trusts no sum that the loop wrote down.
"""

from collections.abc import Iterator
from datetime import timedelta

from scheduler.core.lifecycle import State, allowed
from scheduler.loop.load import frozen
from scheduler.loop.promises import CHECKS
from scheduler.selectors import fleet

MOST = 20
"""Sentences a check tells; of the rest it tells how many they are."""
CLOCKS = timedelta(seconds=1)
"""By how much the clocks of a cluster and of a worker may disagree about who came first."""


def violations() -> list[str]:
    """A sentence for each broken promise, as of one moment of the database; [] when all hold."""
    with frozen():
        return violations_here()


def violations_here() -> list[str]:
    """As `violations`, inside a transaction that the caller has made consistent."""
    found = []
    for check in CHECKS:
        sentences = [check.sentence.format(*row) for row in fleet.rows(check.sql)]
        found += _shortened(check.promise, sentences)
    found += _shortened("P1", list(_at_once()))
    found += _shortened("P5", list(_unlawful()))
    return found


def _shortened(promise: str, sentences: list[str]) -> list[str]:
    told = [f"{promise}: {sentence}" for sentence in sentences[:MOST]]
    if len(sentences) > MOST:
        told.append(f"{promise}: … and {len(sentences) - MOST} more like the last.")
    return told


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
    for row in fleet.rows(_RUNS):
        if row[0] != device:
            device, running = row[0], []
        _, start, end, started_at, _, name = row
        running = [other for other in running if other[4] - CLOCKS > started_at]
        for other in running:
            if start < other[2] and other[1] < end:
                yield f"{other[5]} and {name} ran at once on one span of device {device}."
        running.append(row)
