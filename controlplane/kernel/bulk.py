"""Many rows by one short statement, for what writes thousands of them: no models are made."""

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Field

from controlplane.kernel import statements
from controlplane.kernel.models import Row

type Array = str | list[UUID]
"""What a statement takes for an array, to be cast to its type: ids, or a text of anything else."""


def array(values: Iterable[object]) -> Array:
    """The values, None for NULL. The adapter's own way looks into each value twice, which costs
    more than the statement."""
    given: list[Any] = list(values)  # Any: each as its kind says
    kinds = set(map(type, given))
    if kinds == {UUID}:
        return given
    texts = [str(each) for each in given]
    if kinds <= {int}:
        return "{" + ",".join(texts) + "}"
    joined = "".join(texts)
    if "\\" in joined or '"' in joined:
        texts = [text.replace("\\", "\\\\").replace('"', '\\"') for text in texts]
    quoted = [
        "NULL" if each is None else f'"{text}"' for each, text in zip(given, texts, strict=True)
    ]
    return "{" + ",".join(quoted) + "}"


def save(rows: Sequence[Row], /) -> None:
    """Store these models, which are of one class, as `bulk_create` does, at a part of its cost.
    Raises as `insert`."""
    if not rows:
        return
    model = type(rows[0])
    fields = model._meta.concrete_fields
    columns = {
        str(field.column): [getattr(row, field.attname) for row in rows] for field in fields
    }
    insert(model, id=columns.pop("id"), **columns)
    for row in rows:
        row._state.adding, row._state.db = False, connection.alias


def insert(model: type[Row], /, *, id: Sequence[UUID], **columns: Any) -> None:
    """Store one row for each id. Any: what the columns, named as in the table, hold.

    A list has one value for each row, anything else is every row's; a column that is left out has
    the model's default. Raises IntegrityError or DataError as saving the models would, ValueError
    for a list that is not as long as `id` and TypeError for an unknown column: defects, both.
    """
    if not id:
        return
    given = {"id": list(id), **columns}
    names, sources, arrays = [], [], []
    scalars, lists = [], []
    for field in model._meta.concrete_fields:
        name = str(field.column)
        own = name in given
        if not own and field.has_db_default():
            continue
        value = given.pop(name) if own else field.get_default()
        kind = _kind(field)
        names.append(f'"{name}"')
        if own and isinstance(value, list):
            if len(value) != len(id):
                raise ValueError(f"{name} has {len(value)} values for {len(id)} rows")
            # There is no array of arrays of different lengths, so each goes as its text.
            nested = kind.endswith("[]")
            sources.append(f'u."{name}"::{kind}' if nested else f'u."{name}"')
            arrays.append((f'"{name}"', f"%s::{'text' if nested else kind}[]"))
            asis = not nested and kind != "jsonb"
            lists.append(array(value if asis else [_sent(kind, each) for each in value]))
        else:
            sources.append(f"%s::{kind}")
            scalars.append(_sent(kind, value))
    if given:
        raise TypeError(f"{model.__name__} has no column {', '.join(sorted(given))}")
    of, values = zip(*arrays, strict=True)
    with statements.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {model._meta.db_table} ({', '.join(names)})"  # noqa: S608  # names of ours
            f" SELECT {', '.join(sources)} FROM unnest({', '.join(values)}) AS u({', '.join(of)})",
            [*scalars, *lists],
        )


@cache
def _kind(field: "Field[Any, Any]") -> str:  # Any: whatever it holds
    """The column's type; a cast to varchar(n) would cut what is too long."""
    return re.sub(r"varchar\(\d+\)", "text", field.db_type(connection) or "")


def _sent(kind: str, value: Any) -> Any:  # Any: as columns hold it and statements take it
    """A value of the type as a statement takes it."""
    if kind == "jsonb" and value is not None:
        return json.dumps(value)
    return array(value) if kind.endswith("[]") and isinstance(value, list | tuple) else value


def copy(row: Row, /, *, id: Sequence[UUID], **columns: Sequence[Any]) -> None:
    """Store a row like `row`, which is stored, for each id, but for these columns, which have one
    value for each. Any: what the columns, named as in the table, hold. Raises as `insert`."""
    if not id:
        return
    changed = {"id": list(id)} | {name: list(values) for name, values in columns.items()}
    names, sources, arrays = [], [], []
    for field in row._meta.concrete_fields:
        name = f'"{field.column}"'
        names.append(name)
        sources.append(f"u.{name}" if field.column in changed else f"r.{name}")
        if field.column in changed:
            arrays.append((field.column, f"%s::{_kind(field)}[]"))
    if unknown := changed.keys() - {column for column, _ in arrays}:
        raise TypeError(f"{type(row).__name__} has no column {', '.join(sorted(unknown))}")
    if any(len(values) != len(id) for values in changed.values()):
        raise ValueError(f"a column has not {len(id)} values")
    of, values = zip(*((f'"{column}"', array) for column, array in arrays), strict=True)
    with statements.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {row._meta.db_table} ({', '.join(names)})"  # noqa: S608  # names of ours
            f" SELECT {', '.join(sources)} FROM {row._meta.db_table} r,"
            f" unnest({', '.join(values)}) AS u({', '.join(of)}) WHERE r.id = %s",
            [*(array(changed[column]) for column, _ in arrays), row.pk],
        )
