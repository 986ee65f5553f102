"""What is written down of a recut as it goes on: its next state, its end, and what is noted within
a state. A row that has gone on meanwhile is not written over: Conflict."""

import logging
from datetime import datetime

from controlplane.kernel.errors import Conflict
from scheduler.models import Recut, RecutState
from scheduler.services import recuts

logger = logging.getLogger(__name__)

ACTOR, NAME = "system:scheduler", "scheduler"


def call_off(row: Recut, trouble: str, at: datetime) -> None:
    """Before anything was cut."""
    to(row, RecutState.OPENING, at, outcome=RecutState.CALLED_OFF, trouble=trouble)


def give_back(row: Recut, trouble: str, at: datetime) -> None:
    """The node is left as it is."""
    to(row, RecutState.OPENING, at, outcome=RecutState.FAILED, trouble=trouble)


def back(row: Recut, trouble: str, at: datetime) -> None:
    """It is to be cut as it was."""
    to(row, RecutState.ROLLING_BACK, at, outcome=RecutState.FAILED, trouble=trouble)


def stick(row: Recut, trouble: str, at: datetime) -> None:
    """The node stays cordoned, for a person."""
    logger.error("node %s stays cordoned: %s", row.node.name, trouble)
    row.stuck = True
    end(row, RecutState.FAILED, at, trouble=both(row.trouble, trouble))


def end(row: Recut, state: RecutState, at: datetime, *, trouble: str = "") -> None:
    to(row, state, at, outcome=state, trouble=trouble)


def to(
    row: Recut, state: RecutState, at: datetime, *, outcome: str = "", trouble: str = ""
) -> None:
    row.outcome, row.trouble = outcome or row.outcome, (trouble or row.trouble)[:500]
    if state == RecutState.DONE:
        row.trouble = ""  # what stood in the way for a while
    recuts.move(row, state, actor=ACTOR, actor_name=NAME, at=at)


def both(told: str, trouble: str) -> str:
    """One after the other, each once, as far as there is room."""
    if not told or told in trouble:
        return trouble[:500]
    return told if trouble in told else f"{told[:250]}; {trouble}"[:500]


def note(row: Recut, **fields: datetime | str | None) -> None:
    """Written down within a state. Raises Conflict where it has gone on meanwhile."""
    for name, value in fields.items():
        setattr(row, name, value)
    noted = Recut.objects.filter(pk=row.pk, state=row.state).update(
        trouble=row.trouble,
        told_at=row.told_at,
        cordoned_at=row.cordoned_at,
        said_at=row.said_at,
        busy_at=row.busy_at,
    )
    if not noted:
        raise Conflict(f"This recut is no longer {row.state}.")
