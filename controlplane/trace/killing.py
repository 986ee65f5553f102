"""kill -9 of Celery processes in the middle of a replay. Nothing else is ever killed."""

import os
import random
import signal
from collections.abc import Callable, Mapping

VICTIMS = ("schedule", "dispatch", "periodic")
FIRST, LAST = 0.05, 0.95
"""The part of the pods that has been bound at the first and before the last kill."""


class Killer:
    """`kills` times, as binding goes on; who and when follow from the seed (which process ids
    those are does not)."""

    def __init__(
        self, *, kills: int, seed: int, families: Callable[[], Mapping[str, list[int]]]
    ) -> None:
        self.done: list[str] = []
        self._families = families
        self._random = random.Random(seed)  # noqa: S311  # a test's choice, no secret
        moments = (self._random.uniform(FIRST, LAST) for _ in range(kills))
        self._due = sorted(moments, reverse=True)

    def look(self, part_bound: float) -> str:
        """Kill if it is time to; who was killed, or ""."""
        if not self._due or part_bound < self._due[-1]:
            return ""
        service = self._random.choice(VICTIMS)
        draw = self._random.random()
        pids = self._families().get(service, [])
        if not pids:  # it is just being started again: next time
            return ""
        self._due.pop()
        which = int(draw * len(pids))
        try:
            os.kill(pids[which], signal.SIGKILL)
        except ProcessLookupError:
            return ""
        said = f"{service} {'worker' if which == 0 else 'pool process'}"
        self.done.append(said)
        return said
