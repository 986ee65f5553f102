"""How often one may ask for what costs much of this process.

Each process counts for itself, as it is its own time that it protects: with several of them one
may ask as many times more. What has to hold over all processes is counted in PostgreSQL.
"""

from collections import deque
from datetime import datetime, timedelta
from threading import Lock

from controlplane.kernel.errors import AppError

_MOST_KNOWN = 1000
"""Askers that are remembered, before those who have not asked for a window are forgotten."""


class TooOften(AppError):
    """`wait` is in seconds, for the answer's Retry-After."""

    default_code = "too-often"

    def __init__(self, *, most: int, window: timedelta, wait: timedelta) -> None:
        seconds = max(1, -(-int(wait / timedelta(milliseconds=1)) // 1000))
        super().__init__(
            f"At most {most} of these in {window.total_seconds():.0f} s; the next one may be asked"
            f" for in {seconds} s."
        )
        self.wait = seconds


class Throttle:
    """`most` in each `window`, for each who asks."""

    def __init__(self, *, most: int, window: timedelta) -> None:
        self._most = most
        self._window = window
        self._asked: dict[str, deque[datetime]] = {}
        self._lock = Lock()

    def take(self, *, who: str, at: datetime) -> None:
        """Count one. Raises TooOften, and counts none, where there were as many already."""
        with self._lock:
            if len(self._asked) > _MOST_KNOWN:
                recent = at - self._window
                self._asked = {key: old for key, old in self._asked.items() if old[-1] > recent}
            asked = self._asked.setdefault(who, deque(maxlen=self._most))
            if len(asked) == self._most and (left := asked[0] + self._window - at) > timedelta():
                raise TooOften(most=self._most, window=self._window, wait=left)
            asked.append(at)
