"""How soon one cycle follows another. No database in here: who waits holds no session."""

import time
from collections.abc import Callable

PAUSE = 1.5
"""A pause is so many times as long as the cycle before it (ADR 0047): to load, plan and lock costs
nearly the same for one end or submission as for twenty, so what comes meanwhile is decided
together."""
LONGEST_S = 1.0
"""Of a pause: a fleet that takes seconds to plan for gains nothing by more. Well below the time
limits of a task and the five seconds for which a hint that waits stands for others."""


class Pace:
    """Of the cycles of one process. After one that planned, a pause; an idle installation has
    none. Times are in real seconds of `clock`, which never goes back."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._rests_until = clock()

    def wait(self) -> None:
        """Return once the pause is over. Before the hint is taken: another one that comes in the
        pause asks for nothing more."""
        left_s = self._rests_until - self._clock()
        if left_s > 0:
            self._sleep(left_s)

    def ended(self, *, took_s: float) -> None:
        """A cycle that planned, and took so long, has ended just now."""
        self._rests_until = self._clock() + min(PAUSE * took_s, LONGEST_S)
