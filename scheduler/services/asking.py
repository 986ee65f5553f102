"""Plans that are made because somebody asks, in the process that serves the pages: how often each
may ask, and that they are made one at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Lock

from controlplane.kernel.throttle import Throttle
from tenants.access import Actor

ASKED = Throttle(most=15, window=timedelta(minutes=1))
"""Each answer is worked out anew, which can take seconds."""

_turn = Lock()
"""Plans keep a processor busy: one at a time in a process, so that its pages still answer."""


@contextmanager
def turn(*, actor: Actor, at: datetime) -> Iterator[None]:
    """Count it as asked, and wait for what is planned already. Raises TooOften."""
    ASKED.take(who=str(actor.user.id), at=at)
    with _turn:
        yield
