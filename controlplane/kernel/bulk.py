"""Many rows by one short statement, for what writes thousands of them: no models are made."""

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection

from controlplane.kernel.models import Row


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
        name = field.column
        if name not in given and field.has_db_default():
            continue
        value = given.pop(name) if name in given else field.get_default()
        kind = field.db_type(connection) or ""
        if kind.startswith("varchar"):
            kind = "text"  # a cast to varchar(n) would cut what is too long
        names.append(f'"{name}"')
        if isinstance(value, list):
            if len(value) != len(id):
                raise ValueError(f"{name} has {len(value)} values for {len(id)} rows")
            sources.append(f'u."{name}"')
            arrays.append((f'"{name}"', f"%s::{kind}[]"))
            lists.append([json.dumps(each) for each in value] if kind == "jsonb" else value)
        else:
            sources.append(f"%s::{kind}")
            scalars.append(json.dumps(value) if kind == "jsonb" else value)
    if given:
        raise TypeError(f"{model.__name__} has no column {', '.join(sorted(given))}")
    of, values = zip(*arrays, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {model._meta.db_table} ({', '.join(names)})"  # noqa: S608  # names of ours
            f" SELECT {', '.join(sources)} FROM unnest({', '.join(values)}) AS u({', '.join(of)})",
            [*scalars, *lists],
        )


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
            kind = field.db_type(connection) or ""
            arrays.append(
                (field.column, f"%s::{'text' if kind.startswith('varchar') else kind}[]")
            )
    if unknown := changed.keys() - {column for column, _ in arrays}:
        raise TypeError(f"{type(row).__name__} has no column {', '.join(sorted(unknown))}")
    if any(len(values) != len(id) for values in changed.values()):
        raise ValueError(f"a column has not {len(id)} values")
    of, values = zip(*((f'"{column}"', array) for column, array in arrays), strict=True)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {row._meta.db_table} ({', '.join(names)})"  # noqa: S608  # names of ours
            f" SELECT {', '.join(sources)} FROM {row._meta.db_table} r,"
            f" unnest({', '.join(values)}) AS u({', '.join(of)}) WHERE r.id = %s",
            [*(changed[column] for column, _ in arrays), row.pk],
        )
