"""Queues that people have reordered."""

from dataclasses import replace
from random import Random

from scheduler.core.snapshot import PendingView, Snapshot
from scheduler.core.submitted import TurnView


def turn_of(waiting: PendingView) -> TurnView:
    """The submission as which it queues."""
    return waiting.turn or TurnView(waiting.submitted_at, waiting.id)


def reordered(pick: Random, of: Snapshot) -> Snapshot:
    """The same with some that wait in the turns of others of their project."""
    by_project: dict[str, list[PendingView]] = {}
    for waiting in of.pending:
        if pick.random() < 0.5:
            by_project.setdefault(waiting.project, []).append(waiting)
    turns = {
        waiting.id: turn
        for some in by_project.values()
        for waiting, turn in zip(some, map(turn_of, pick.sample(some, len(some))), strict=True)
    }
    pending = (replace(p, turn=turns[p.id]) if p.id in turns else p for p in of.pending)
    return replace(of, pending=tuple(pending))
