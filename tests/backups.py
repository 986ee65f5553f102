"""Backups of a test's database that are put back: whole ones by PostgreSQL's own programs, or the
rows of all tables under a living installation."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from django.db import OperationalError, connection, transaction

from controlplane.embedded.postgres import wheel

type Rows = Mapping[str, bytes]
"""What COPY gives of each table."""


def dump(to: Path) -> None:
    """As README.md has it."""
    _run("pg_dump", "--format=custom", f"--file={to}")


def put_back(of: Path) -> None:
    """Into the same database, whose tables are made anew. Nobody else may be connected."""
    connection.close()
    _run("pg_restore", "--clean", "--if-exists", "--single-transaction", "--dbname", _name(), of)


def _name() -> str:
    return str(connection.settings_dict["NAME"])


def _run(program: str, *arguments: str | Path) -> None:
    told = connection.settings_dict
    environment = {
        "PGHOST": str(told["HOST"]),
        "PGPORT": str(told["PORT"] or 5432),
        "PGUSER": str(told["USER"]),
        "PGPASSWORD": str(told["PASSWORD"]),
        "PGDATABASE": _name(),
    }
    subprocess.run(
        [wheel() / "pginstall" / "bin" / program, *arguments], env=environment, check=True
    )


def rows() -> Rows:
    """All of them, of one moment."""
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        kept = {}
        for table in sorted(connection.introspection.table_names(cursor)):
            with cursor.copy(f'COPY "{table}" TO STDOUT') as copy:
                kept[table] = b"".join(bytes(part) for part in copy)
    return kept


def put_rows_back(kept: Rows) -> None:
    """In place of those that are there, in one transaction, whoever is connected; triggers and
    foreign keys are not asked, as `pg_restore` has it."""
    while True:
        try:
            return _put(kept)
        except OperationalError as error:  # somebody writes: one of the two has to wait
            if "deadlock" not in str(error):
                raise


def _put(kept: Rows) -> None:
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(f"TRUNCATE {', '.join(f'"{table}"' for table in kept)}")
        for table, data in kept.items():
            with cursor.copy(f'COPY "{table}" FROM STDIN') as copy:
                copy.write(data)
