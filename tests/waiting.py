"""Wait for something to become so: ask again until it is, or until the deadline."""

import time
from collections.abc import Callable

PATIENCE_S = 120.0
"""How long a test waits for what has to come: a slow machine gets there, and only a failure takes
as long."""


def eventually[T](
    what: str,
    probe: Callable[[], T | None],
    *,
    within_s: float = PATIENCE_S,
    every_s: float = 0.05,
) -> T:
    """Return the first truthy answer of `probe`; TimeoutError says `what` was awaited."""
    deadline = time.monotonic() + within_s
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() >= deadline:
            raise TimeoutError(f"not within {within_s:g} s: {what} (last answer: {answer!r})")
        time.sleep(every_s)
