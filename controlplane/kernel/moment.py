"""The database as of one moment, for what has to agree and takes more than one query to read."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def frozen() -> Iterator[None]:
    """One consistent, read-only view of the database; never nested in another transaction."""
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield
