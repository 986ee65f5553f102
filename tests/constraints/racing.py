"""Runs attacks at the same moment, each in its own thread, connection and transaction.

What must not live here: what is attacked, and what has to be true afterwards.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from django.db import DatabaseError, connection, transaction

from tests.constraints.moves import Statement
from tests.waiting import PATIENCE_S

HELD_OPEN_S = 0.005  # long enough for the others to reach the same row


def race(attacks: Sequence[Callable[[], Statement]], *, isolation: str = "") -> list[str]:
    """For each attack "" when it committed, else the SQLSTATE it was refused with."""
    start = Barrier(len(attacks), timeout=PATIENCE_S)

    def one(attack: Callable[[], Statement]) -> str:
        statement = attack()
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                if isolation:
                    cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
                cursor.execute("SELECT 1 FROM tenants_tenant LIMIT 1")  # takes the snapshot
                start.wait()
                cursor.execute(*statement)
                cursor.execute("SELECT pg_sleep(%s)", [HELD_OPEN_S])
        except DatabaseError as error:
            return getattr(error.__cause__, "sqlstate", None) or str(error)
        finally:
            connection.close()
        return ""

    with ThreadPoolExecutor(len(attacks)) as threads:
        return [future.result(PATIENCE_S) for future in [threads.submit(one, a) for a in attacks]]
