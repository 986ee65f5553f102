"""Statements that are said often: a session of the database keeps them parsed and planned (ADR
0048)."""

from time import monotonic
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

from django.db import connection
from django.db.backends.utils import CursorDebugWrapper, CursorWrapper
from psycopg import Connection, Cursor
from psycopg.abc import DumperKey
from psycopg.adapt import PyFormat
from psycopg.types.array import BaseListDumper, ListDumper

PLANNED_S = 10.0
"""Real seconds for which a session keeps its plans: one that suits a small table reads all of it
when it has grown."""

_planned: WeakKeyDictionary[Connection[Any], float] = WeakKeyDictionary()  # Any: of its rows


def cursor() -> CursorWrapper:
    """As `connection.cursor()`, for statements whose text is always the same and that name their
    columns. What they are given goes beside the text, so a text or None has no type but for a
    cast, or where only one fits."""
    # As `connection.cursor()` does, which would make another cursor beside this one.
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    session = connection.connection
    at = monotonic()
    begun_at = _planned.get(session)
    if begun_at is None:
        session.adapters.register_dumper(list, _Lists)
        _planned[session] = at
    elif at - begun_at > PLANNED_S:
        with connection.wrap_database_errors:
            session.execute("DISCARD PLANS")
        _planned[session] = at
    wrapper = CursorDebugWrapper if connection.queries_logged else CursorWrapper
    return wrapper(Cursor(session), connection)


class _Ids(BaseListDumper):
    """Many ids: the adapter's own way looks into each three times, which costs more than what is
    asked of them."""

    oid = 2951  # uuid[]

    def dump(self, obj: list[UUID]) -> bytes:
        return ("{" + ",".join([id.hex for id in obj]) + "}").encode()


class _Lists(ListDumper):
    """As the adapter's own, but for ids."""

    def get_key(self, obj: list[Any], format: PyFormat) -> DumperKey:  # Any: what psycopg adapts
        return _Ids if set(map(type, obj)) == {UUID} else super().get_key(obj, format)

    def upgrade(self, obj: list[Any], format: PyFormat) -> BaseListDumper:  # Any: as above
        if set(map(type, obj)) == {UUID}:
            return _Ids(self.cls, self._tx)
        return super().upgrade(obj, format)
