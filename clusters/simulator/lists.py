"""Lists: sorted, selected by labels, in pages that all show one revision."""

import base64
import binascii
import re
from collections import OrderedDict
from itertools import count
from typing import NamedTuple

import orjson

from clusters.simulator.answers import Json, Refusal, bad_request
from clusters.simulator.store import RESOURCES, Store

MOST_SNAPSHOTS = 16
_TERM = re.compile(
    r"\s*(!?)\s*([\w./-]+)\s*(?:(==|=|!=)\s*([\w.-]*)|(in|notin)\s*\(([^)]*)\))?\s*"
)
_COMMA = re.compile(r",(?![^(]*\))")


class Snapshot(NamedTuple):
    """A list at one revision, of which pages are still to be fetched."""

    revision: int
    items: list[bytes]


class Selector:
    """A label selector: equality, `in`, `notin`, existence."""

    def __init__(self, text: str) -> None:
        self._terms = []
        for term in _COMMA.split(text) if text.strip() else ():
            match = _TERM.fullmatch(term)
            if match is None:
                bad_request(f"unable to parse requirement: {term[:80]!r}")
            self._terms.append(match.groups())

    def __bool__(self) -> bool:
        return bool(self._terms)

    def matches(self, labels: Json) -> bool:
        return all(_holds(labels, *term) for term in self._terms)


def _holds(
    labels: Json, bang: str, key: str, operator: str, value: str, among: str, values: str
) -> bool:
    found = labels.get(key)
    if operator:
        return (found != value) if operator == "!=" else (found == value)
    if among:
        inside = found in [item.strip() for item in values.split(",")]
        return inside if among == "in" else not inside
    return (found is None) if bang else (found is not None)


class Lists:
    """Serves lists; the later pages of a long one come from a snapshot of its first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._snapshots: OrderedDict[int, Snapshot] = OrderedDict()
        self._tickets = count(1)

    def answer(self, resource: str, namespace: str, query: dict[str, str]) -> bytes:
        if query.get("fieldSelector"):
            bad_request("field selectors are not simulated")
        limit = int(query.get("limit") or 0)
        if "continue" in query:
            ticket, start = _opened(query["continue"])
            snapshot = self._snapshots.get(ticket)
            if snapshot is None:
                raise Refusal(
                    410,
                    "Expired",
                    "The provided continue parameter is too old to display a consistent list "
                    "result. You can start a new list without the continue parameter.",
                )
        else:
            snapshot = self.snapshot(resource, namespace, query.get("labelSelector", ""))
            ticket, start = 0, 0
        return self._page(resource, snapshot, ticket, start, limit)

    def snapshot(self, resource: str, namespace: str = "", selector: str = "") -> Snapshot:
        """Everything that a list would show now, sorted by namespace and name."""
        table = self._store.tables[resource]
        keys = sorted(table)
        if namespace:
            keys = [key for key in keys if key.startswith(f"{namespace}/")]
        if chosen := Selector(selector):
            keys = [
                key
                for key in keys
                if chosen.matches(table[key].body["metadata"].get("labels") or {})
            ]
        return Snapshot(self._store.revision, [table[key].raw for key in keys])

    def whole(self, resource: str, snapshot: Snapshot) -> bytes:
        return self._page(resource, snapshot, 0, 0, 0)

    def _page(
        self, resource: str, snapshot: Snapshot, ticket: int, start: int, limit: int
    ) -> bytes:
        end = start + limit if limit else len(snapshot.items)
        metadata: Json = {"resourceVersion": str(snapshot.revision)}
        if end < len(snapshot.items):
            if not ticket:
                ticket = next(self._tickets)
                self._snapshots[ticket] = snapshot
                if len(self._snapshots) > MOST_SNAPSHOTS:
                    self._snapshots.popitem(last=False)
            metadata["continue"] = _sealed(ticket, end)
            metadata["remainingItemCount"] = len(snapshot.items) - end
        elif ticket:
            self._snapshots.pop(ticket, None)
        head = b'{"kind":"%sList","apiVersion":"v1","metadata":%s,"items":[' % (
            RESOURCES[resource].encode(),
            orjson.dumps(metadata),
        )
        return head + b",".join(snapshot.items[start:end]) + b"]}"


def _sealed(ticket: int, start: int) -> str:
    return base64.urlsafe_b64encode(f"{ticket},{start}".encode()).decode()


def _opened(token: str) -> tuple[int, int]:
    try:
        ticket, start = base64.urlsafe_b64decode(token).decode().split(",")
        return int(ticket), int(start)
    except (ValueError, binascii.Error):
        bad_request("continue key is not valid")
