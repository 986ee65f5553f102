"""Whether a commit waits for the disk: each does, but for one that need not (ADR 0042)."""

from django.db import connection


def need_not_wait() -> None:
    """The current transaction's commit does not wait for the disk.

    All see it at once, as any other. A crash of the database server, and nothing else, may undo
    it, for as long as no later commit has waited: that one writes all before it.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")
