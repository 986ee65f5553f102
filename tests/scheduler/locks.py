"""Waiting for other connections, and acting in several at once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

from django.db import connection

from tests.waiting import PATIENCE_S, eventually


def somebody_waits() -> bool:
    """For a lock, in this database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])


def until_somebody_waits(*, unless: Event | None = None) -> None:
    """For a lock, or until that is set."""
    eventually(
        "somebody waits for a lock",
        lambda: somebody_waits() or (unless and unless.is_set()),
        every_s=0.01,
    )


def at_once[T](*acts: Callable[[], T]) -> list[T]:
    """What each act returned, all begun at the same moment, each on a connection of its own."""
    start = Barrier(len(acts), timeout=PATIENCE_S)

    def one(act: Callable[[], T]) -> T:
        try:
            connection.ensure_connection()
            start.wait()
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as threads:
        return [done.result(PATIENCE_S) for done in [threads.submit(one, act) for act in acts]]
