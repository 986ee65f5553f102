"""Many rows that a task finds due, each for itself."""

import logging
from collections.abc import Callable, Iterable
from uuid import UUID

logger = logging.getLogger(__name__)


def each(ids: Iterable[UUID], act: Callable[[UUID], bool], *, what: str) -> int:
    """For how many rows `act` did something. Where it fails the log tells of `what`, and the next
    is done all the same; whoever looks for what is due finds it again."""
    count = 0
    for id in ids:
        try:
            count += act(id)
        except Exception:  # whatever it is, the others are due as well
            logger.exception("%s %s failed", what, id)
    return count
