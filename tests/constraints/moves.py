"""The moves an attack is made of: each sets up its rows and returns one raw SQL statement."""

from collections.abc import Callable, Sequence
from typing import Any

from django.db import models

from controlplane.kernel.ids import uuid7
from tests.constraints.rows import Values, make, settled

type Statement = tuple[str, Sequence[Any]]  # Any: what psycopg adapts
type Move = Callable[[], Statement]


class Sql(str):
    """An expression to put into the statement as it stands."""

    __slots__ = ()


def change(model: type[models.Model], given: Values | None = None, /, **columns: Any) -> Move:
    """UPDATE of one row, made as `given` says. Any: a column's value, of whatever type."""

    def prepare() -> Statement:
        row = make(model, **(given or {}))
        return update(row, **columns)

    return prepare


def update(row: models.Model, **columns: Any) -> Statement:  # Any: as change
    """UPDATE of a row that is there."""
    texts, parameters = _expressions(settled(columns))
    sets = ", ".join(f'"{name}" = {text}' for name, text in texts.items())
    sql = f'UPDATE "{row._meta.db_table}" SET {sets} WHERE {_key(row)} = %s'
    return sql, [*parameters, row.pk]


def copy(model: type[models.Model], given: Values | None = None, /, **columns: Any) -> Move:
    """INSERT of a second row like the first, made as `given` says. Any: as change."""

    def prepare() -> Statement:
        row = make(model, **(given or {}))
        return insert_like(row, **columns)

    return prepare


def insert_like(row: models.Model, **columns: Any) -> Statement:  # Any: as change
    """INSERT of a row that differs from `row` in its key and in `columns` only."""
    texts: dict[str, str] = {}
    for field in row._meta.concrete_fields:
        if not isinstance(field, models.AutoField):
            assert field.column
            texts[field.column] = f'"{field.column}"'
    if isinstance(row._meta.pk, models.UUIDField):
        columns = {"id": uuid7(), **columns}
    changed, parameters = _expressions(settled(columns), order=list(texts))
    texts |= changed
    names = ", ".join(f'"{name}"' for name in texts)
    table = row._meta.db_table
    return (
        f'INSERT INTO "{table}" ({names}) SELECT {", ".join(texts.values())} FROM "{table}" '
        f"WHERE {_key(row)} = %s",
        [*parameters, row.pk],
    )


def remove(model: type[models.Model], given: Values | None = None, /) -> Move:
    """DELETE of one row, made as `given` says."""

    def prepare() -> Statement:
        row = make(model, **(given or {}))
        return f'DELETE FROM "{row._meta.db_table}" WHERE {_key(row)} = %s', [row.pk]

    return prepare


def empty(model: type[models.Model], given: Values | None = None, /) -> Move:
    """TRUNCATE of the table, and of all that refer to it, with one row made before."""

    def prepare() -> Statement:
        make(model, **given or {})
        return f'TRUNCATE "{model._meta.db_table}" CASCADE', []

    return prepare


def _key(row: models.Model) -> str:
    assert row._meta.pk
    return f'"{row._meta.pk.column}"'


def _expressions(
    columns: Values, order: Sequence[str] = ()
) -> tuple[dict[str, str], list[object]]:
    """Each column's SQL, and the parameters in the columns' order in the statement."""
    names = sorted(columns, key=order.index) if order else list(columns)
    texts = {name: columns[name] if isinstance(columns[name], Sql) else "%s" for name in names}
    return texts, [columns[name] for name in names if not isinstance(columns[name], Sql)]
