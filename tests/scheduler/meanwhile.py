"""One act that begins while another is done and not committed."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

from django.db import connection, transaction

from tests.scheduler.locks import until_somebody_waits
from tests.waiting import PATIENCE_S


def meanwhile[T](first: Callable[[], object], second: Callable[[], T]) -> Future[T]:
    """What came of `second`, on a connection of its own.

    `first` is committed once `second` waits for it, or has ended without.
    """
    ended = Event()

    def beside() -> T:
        try:
            return second()
        finally:
            connection.close()
            ended.set()

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            first()
            other = threads.submit(beside)
            until_somebody_waits(unless=ended)
        other.exception(PATIENCE_S)
    return other
