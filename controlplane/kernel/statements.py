"""Statements that are said often: a session of the database keeps them parsed and planned (ADR
0048)."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from time import monotonic
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Model
from psycopg import Connection, Cursor
from psycopg.abc import DumperKey
from psycopg.adapt import PyFormat
from psycopg.pq import Format
from psycopg.types.array import BaseListDumper, ListDumper

PLANNED_S = 10.0
"""Real seconds for which a session keeps its plans: one that suits a small table reads all of it
when it has grown."""

_planned: WeakKeyDictionary[Connection[Any], float] = WeakKeyDictionary()  # Any: of its rows


def cursor() -> CursorWrapper:
    """As `connection.cursor()`, for statements whose text is always the same and that name their
    columns. What they are given goes beside the text, so a text or None has no type but for a
    cast, or where only one fits."""
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
    plain: Any = Cursor(session)  # Any: what is made of it takes no cursor of the adapter's own
    logged = connection.queries_logged
    return connection.make_debug_cursor(plain) if logged else connection.make_cursor(plain)


def read[M: Model](
    model: type[M],
    condition: str,
    parameters: Sequence[Any] = (),  # Any: what psycopg adapts
) -> list[M]:
    """The rows of which the condition, a constant text of all after WHERE, is true. What the ORM
    would read, without putting a statement together for each time."""
    columns, names, told = _columns(model)
    with cursor() as made:
        made.execute(
            f"SELECT {columns} FROM {model._meta.db_table} WHERE {condition}",  # noqa: S608  # ours
            parameters,
        )
        found = made.fetchall()
    if told:
        found = [
            [told[nth](each) if nth in told else each for nth, each in enumerate(row)]
            for row in found
        ]
    return [model.from_db(connection.alias, names, row) for row in found]


@cache
def _columns(model: type[Model]) -> tuple[str, list[str], dict[int, Callable[[Any], Any]]]:
    """The columns, what a row's fields are called, and how those that need it are understood. Any:
    what a column holds."""
    fields = model._meta.concrete_fields
    told: dict[int, Callable[[Any], Any]] = {
        nth: partial(field.from_db_value, expression=None, connection=connection)
        for nth, field in enumerate(fields)
        if hasattr(field, "from_db_value")
    }
    names = [field.attname for field in fields]
    return ", ".join(f'"{field.column}"' for field in fields), names, told


_ID, _IDS = 2950, 2951  # of the types uuid and uuid[]
_ID_BYTES = f"{16:08x}"


class _Ids(BaseListDumper):
    """Many ids, in the form that the server sends arrays in: neither side goes through a text
    character by character, which costs more than what is asked of them."""

    format = Format.BINARY
    oid = _IDS

    def dump(self, obj: list[UUID]) -> bytes:
        # Of one dimension, without NULLs, of ids, so many, counted from 1; each after its length.
        head = f"{1:08x}{0:08x}{_ID:08x}{len(obj):08x}{1:08x}"
        return bytes.fromhex(_ID_BYTES.join([head, *[id.hex for id in obj]]))


class _Lists(ListDumper):
    """As the adapter's own, but for ids, where they need not be text, as in a log."""

    def get_key(self, obj: list[Any], format: PyFormat) -> DumperKey:  # Any: what psycopg adapts
        return _Ids if self._are_ids(obj, format) else super().get_key(obj, format)

    def upgrade(self, obj: list[Any], format: PyFormat) -> BaseListDumper:  # Any: as above
        if self._are_ids(obj, format):
            return _Ids(self.cls, self._tx)
        return super().upgrade(obj, format)

    @staticmethod
    def _are_ids(obj: list[Any], format: PyFormat) -> bool:  # Any: as above
        return format is not PyFormat.TEXT and set(map(type, obj)) == {UUID}
