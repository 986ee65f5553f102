"""kill -9 of Berth's own processes in the middle of a replay. Nothing else is ever killed."""

import os
import random
import signal
from collections.abc import Callable, Iterator, Mapping

WORKERS = ("schedule", "dispatch", "periodic")
VICTIMS = (*WORKERS, "watcher", "web", "beat")
FIRST, LAST = 0.05, 0.95
"""The part of the pods that has been bound at the first and before the last kill."""


class Killer:
    """`kills` times, as binding goes on: each of VICTIMS once, in a drawn order, before one dies
    again. Who and when follow from the seed (which process ids those are does not)."""

    def __init__(
        self, *, kills: int, seed: int, families: Callable[[], Mapping[str, list[int]]]
    ) -> None:
        self.done: list[str] = []
        self._families = families
        self._random = random.Random(seed)  # noqa: S311  # a test's choice, no secret
        moments = (self._random.uniform(FIRST, LAST) for _ in range(kills))
        self._due = sorted(moments, reverse=True)
        self._next = self._victims()
        self._victim = next(self._next)

    def look(self, part_bound: float) -> str:
        """Kill if it is time to; who was killed, or ""."""
        if not self._due or part_bound < self._due[-1]:
            return ""
        pids = self._families().get(self._victim, [])
        if not pids:  # it is just being started again: next time
            return ""
        which = self._random.randrange(len(pids))
        try:
            os.kill(pids[which], signal.SIGKILL)
        except ProcessLookupError:
            return ""
        self._due.pop()
        said = self._victim
        if said in WORKERS:
            said += " worker" if which == 0 else " pool process"
        self.done.append(said)
        self._victim = next(self._next)
        return said

    def _victims(self) -> Iterator[str]:
        while True:
            yield from self._random.sample(VICTIMS, len(VICTIMS))
