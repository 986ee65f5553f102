"""Verifies the chains of audit rows: reads all of it as of one moment, a row at a time, and works
the digests out itself, by no function of the database that somebody could have replaced.

What must not live here: how links are made, which is the database's (migration 0004, ADR 0099).
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import connection

from controlplane.kernel.errors import AppError
from controlplane.kernel.moment import frozen

CHAINS = 16
"""They are numbered from 0; a session of the database writes to one (migration 0004)."""
CHUNK = 2000
"""Rows that are in memory at once, however long the history."""


class Unsound(AppError):
    """The audit is not what was written; the message names the first row, or link, that is not."""

    default_code = "audit-unsound"


@dataclass(frozen=True, slots=True)
class Head:
    """The newest link of a chain: how many there are before it and with it, and its digest."""

    position: int
    digest: str


@dataclass(frozen=True, slots=True)
class Chain:
    """One that was read to its end. `rows` are the audit rows in its links."""

    number: int
    head: Head
    rows: int


@dataclass(frozen=True, slots=True)
class Event:
    """What a row's digest is of. `before` and `after` are the texts that PostgreSQL has for the
    column's jsonb: keys by length and then by their bytes, ", " and ": " between."""

    id: UUID
    at: datetime
    actor: str
    actor_name: str
    action: str
    target_type: str
    target_id: UUID
    tenant_id: UUID | None
    project_id: UUID | None
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.id} ({self.action}, {_told(self.at)})"

    def digest(self) -> bytes:
        """SHA-256 of the row's canonical text: one JSON array, of what is no ASCII as it is."""
        ids = [str(id) if id else None for id in (self.target_id, self.tenant_id, self.project_id)]
        plain = [str(self.id), _told(self.at), self.actor, self.actor_name, self.action,
                 self.target_type, *ids]  # fmt: skip
        begun = json.dumps(plain, ensure_ascii=False).removesuffix("]")
        return hashlib.sha256(f"{begun}, {self.before}, {self.after}]".encode()).digest()


def _told(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def verify(*, anchor: Mapping[int, Head] | None = None) -> list[Chain]:
    """The chains, each sound: every audit row is in one link, once, as it was written, and every
    link follows from that before it. With `anchor`, the heads of an earlier time, they also go on
    from those. Raises Unsound.

    Without an anchor nobody can tell that the end of a chain was cut off with its rows, or that
    all of it was made anew. Never nested in another transaction.
    """
    with frozen():
        found = [*_chains(anchor or {})]
        _all_linked()
    for number, head in (anchor or {}).items():
        if not any(chain.number == number for chain in found):
            raise Unsound(f"Chain {number} is gone: it had {head.position} links.")
    return found


_LINKED = """
SELECT l.chain, l.position, l.digest, substring(l.digests FROM u.nth::int * 32 - 31 FOR 32),
       u.event, e.id, e.at, e.actor, e.actor_name, e.action, e.target_type, e.target_id,
       e.tenant_id, e.project_id, e.before::text, e.after::text
FROM audit_auditlink l
CROSS JOIN LATERAL unnest(l.events) WITH ORDINALITY u(event, nth)
LEFT JOIN audit_auditevent e ON e.id = u.event
WHERE l.position IS NOT NULL ORDER BY l.chain, l.position, u.nth
"""
type _Linked = tuple[tuple[int, int, bytes], bytes, UUID, Event | None]
"""Chain, position and digest of the link; the row's digest there, its id, and the row."""


def _linked() -> Iterator[_Linked]:
    with connection.chunked_cursor() as cursor:
        cursor.execute(_LINKED)
        while some := cursor.fetchmany(CHUNK):
            for chain, position, digest, own, id, *columns in some:
                row = Event(*columns) if columns[0] else None
                yield (chain, position, bytes(digest)), bytes(own), id, row


def _chains(anchor: Mapping[int, Head]) -> Iterator[Chain]:
    reading: _Reading | None = None
    for (number, position, digest), own, id, row in _linked():
        if reading is None or reading.number != number:
            if reading:
                yield reading.ended()
            reading = _Reading(number, anchor.get(number))
        reading.take(position, digest, own, id, row)
    if reading:
        yield reading.ended()


class _Reading:
    """A chain as far as it was read."""

    def __init__(self, number: int, anchor: Head | None) -> None:
        self.number = number
        self._anchor = anchor
        self._position, self._digest, self._rows = 0, b"", 0
        self._open: Any = None  # Any: a hash, of the link that is read
        self._first = ""

    def take(self, position: int, digest: bytes, own: bytes, id: UUID, row: Event | None) -> None:
        if self._open is None or position != self._position:
            self._close()
            if position != self._position + 1:
                raise Unsound(f"Chain {self.number} has no link {self._position + 1}.")
            self._open = hashlib.sha256(self._digest)
            self._position, self._digest = position, digest
            self._first = f"row {row or id}"
        where = f"link {position} of chain {self.number}"
        if row is None:
            raise Unsound(f"Row {id} is gone; it is in {where}.")
        if row.digest() != own:
            raise Unsound(f"Row {row} is not as it was written in {where}.")
        self._open.update(own)
        self._rows += 1

    def _close(self) -> None:
        """The link that was read."""
        if self._open is None:
            return
        where = f"Link {self._position} of chain {self.number}, which begins with {self._first},"
        if self._open.digest() != self._digest:
            raise Unsound(f"{where} does not follow from the one before it.")
        anchor = self._anchor
        if anchor and anchor.position == self._position and anchor.digest != self._digest.hex():
            raise Unsound(f"{where} is not the one that the anchor knows.")

    def ended(self) -> Chain:
        self._close()
        if self._anchor and self._anchor.position > self._position:
            raise Unsound(
                f"Chain {self.number} ends with link {self._position}, and the anchor knows link"
                f" {self._anchor.position}: its end is cut off."
            )
        return Chain(self.number, Head(self._position, self._digest.hex()), self._rows)


_ASTRAY = """
SELECT e.id, e.action, e.at, l.times FROM audit_auditevent e LEFT JOIN (
    SELECT event, count(*) AS times FROM audit_auditlink, unnest(events) AS event
    WHERE position IS NOT NULL GROUP BY 1) l ON l.event = e.id
WHERE l.times IS DISTINCT FROM 1 ORDER BY e.id LIMIT 1
"""


def _all_linked() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_ASTRAY)
        found = cursor.fetchone()
    if found:
        id, action, at, times = found
        links = f"{times} links" if times else "no link of any chain"
        raise Unsound(f"Row {id} ({action}, {_told(at)}) is in {links}.")


_LENGTHS = """
SELECT number, (SELECT max(position) FROM audit_auditlink WHERE chain = number)
FROM generate_series(0, %s) AS number
"""


def lengths() -> dict[int, int]:
    """How many links each chain has, as it says; what is told of it elsewhere is an anchor."""
    with connection.cursor() as cursor:
        cursor.execute(_LENGTHS, [CHAINS - 1])
        return {number: position or 0 for number, position in cursor.fetchall()}
