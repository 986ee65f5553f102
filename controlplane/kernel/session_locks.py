"""Locks that last as long as a session of the database.

They are free the moment that who held them is gone, however that came about.
"""

from contextlib import suppress
from types import TracebackType
from typing import Self

from django.db import Error, connection

_KEEPALIVES = ("idle = 10", "interval = 5", "count = 3")
"""A machine that is gone without a word is found out after 25 s."""


class SessionLocks:
    """Named locks on a session of its own, beside the pool. Use it in one thread.

    A session that breaks takes all its locks with it, and anybody may hold them then: `lost` says
    so, and `take` goes on in a new one.
    """

    def __init__(self) -> None:
        self._session = connection.copy()
        self._session.settings_dict["OPTIONS"].pop("pool", None)
        self._held: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session.close()

    def take(self, name: str) -> bool:
        """Whether it is held, now or before. Raises OperationalError."""
        if name in self._held:
            return True
        begins = self._session.connection is None
        with self._session.cursor() as cursor:
            if begins:
                for keepalive in _KEEPALIVES:
                    cursor.execute(f"SET tcp_keepalives_{keepalive}")
            cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [name])
            [taken] = cursor.fetchone()
        if taken:
            self._held.add(name)
        return bool(taken)

    def lost(self) -> bool:
        """Whether the session broke since it took any; nothing is held then."""
        if self._session.connection is None:
            return False
        try:
            with self._session.cursor() as cursor:
                cursor.execute("SELECT 1")
        except Error:
            self._held.clear()
            with suppress(Error):
                self._session.close()
            return True
        return False
