"""The time, for entry points only: everything below takes `at` as an argument.

A replay runs the whole system in accelerated time: BERTH_CLOCK="<unix start>,<unix
origin>,<speed>" makes now() = origin + (real - start) * speed in every process that shares the
variable. Leases and time-outs never use this clock; they use the database's or the monotonic one.
"""

import os
import time
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple


class Acceleration(NamedTuple):
    """Real second `start_s` shows as `origin_s`; from there time runs `speed` times as fast."""

    start_s: float
    origin_s: float
    speed: float

    def encode(self) -> str:
        return f"{self.start_s!r},{self.origin_s!r},{self.speed!r}"


@cache
def acceleration() -> Acceleration | None:
    """The accelerated clock asked for by the environment, None for real time.

    Raises ValueError when BERTH_CLOCK is not three numbers with a positive speed.
    """
    text = os.environ.get("BERTH_CLOCK", "")
    if not text:
        return None
    start_s, origin_s, speed = (float(part) for part in text.split(","))
    if speed <= 0:
        raise ValueError(f"BERTH_CLOCK: the speed has to be above 0, not {speed}")
    return Acceleration(start_s, origin_s, speed)


def now() -> datetime:
    """The present moment, aware, in UTC."""
    clock = acceleration()
    if clock is None:
        return datetime.now(UTC)
    return datetime.fromtimestamp(
        clock.origin_s + (time.time() - clock.start_s) * clock.speed, tz=UTC
    )


def speed() -> float:
    """How many seconds of `now()` pass in one real second."""
    clock = acceleration()
    return 1.0 if clock is None else clock.speed
