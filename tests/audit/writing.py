"""Audit rows for tests, and what somebody may do to them who is the database's master. No
assertions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from controlplane.audit import services as audit
from controlplane.audit.models import AuditEvent, AuditLink
from controlplane.kernel.ids import uuid7
from tests.factories import AT


def record(count: int = 1, **fields: Any) -> list[UUID]:  # Any: of an Entry
    """So many rows in one statement; their ids, in order."""
    last = AuditEvent.objects.order_by("-id").values_list("id", flat=True).first()
    entries = []
    for number in range(count):
        given: dict[str, Any] = {  # Any: as `fields`
            "action": "quota.set",
            "target_type": "quota",
            "target_id": uuid7(),
            "after": {"nominal_milli": number},
        }
        entries.append(audit.Entry(**given | fields))
    audit.record(actor="user:1", actor_name="ada", entries=entries, at=AT)
    new = AuditEvent.objects.filter(id__gt=last) if last else AuditEvent.objects.all()
    return list(new.order_by("id").values_list("id", flat=True))


def tamper(sql: str, parameters: Sequence[Any] = ()) -> None:  # Any: what psycopg adapts
    """As a superuser who has the triggers be silent."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(sql, parameters)
        assert cursor.rowcount == 1, sql


def places() -> dict[int, list[int | None]]:
    """The positions of each chain's links."""
    found: dict[int, list[int | None]] = {}
    for chain, position in AuditLink.objects.order_by("chain", "position").values_list(
        "chain", "position"
    ):
        found.setdefault(chain, []).append(position)
    return found


@contextmanager
def one_chain() -> Iterator[None]:
    """All sessions write to chain 0, as two of many would by chance."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_functiondef('berth_link_audit'::regproc)")
        [[text]] = cursor.fetchall()
        cursor.execute(text.replace("pg_backend_pid() % 16", "0"))
        try:
            yield
        finally:
            cursor.execute(text)
