"""Statements that are said often: a session of the database keeps them parsed and planned (ADR
0048)."""

from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from django.db import connection
from django.db.backends.utils import CursorWrapper
from psycopg import Connection, Cursor

PLANNED_S = 10.0
"""Real seconds for which a session keeps its plans: one that suits a small table reads all of it
when it has grown."""

_planned: WeakKeyDictionary[Connection[Any], float] = WeakKeyDictionary()  # Any: of its rows


def cursor() -> CursorWrapper:
    """As `connection.cursor()`, for statements whose text is always the same and that name their
    columns. What they are given goes beside the text, so a text or None has no type but for a
    cast, or where only one fits."""
    made = connection.cursor()
    session = connection.connection
    made.cursor = Cursor(session)
    at = monotonic()
    if at - _planned.setdefault(session, at) > PLANNED_S:
        with connection.wrap_database_errors:
            session.execute("DISCARD PLANS")
        _planned[session] = at
    return made
