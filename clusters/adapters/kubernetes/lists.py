"""One list, page by page, as reports: within a time, a number of objects and a size.

A list that is larger than anything real would have the process that reads it, and follows other
clusters too, grow without end. What must not live here: what a single answer may be (client.py).
"""

import logging
import time
from collections.abc import Callable

from clusters.adapters.kubernetes.checks import Json
from clusters.adapters.kubernetes.client import Client, Query
from clusters.adapters.kubernetes.translate import readable
from clusters.adapters.kubernetes.watch import SAID
from clusters.port import ClusterError, Fault, Listing

logger = logging.getLogger(__name__)

LONGEST_S = 300.0
"""An API server forgets a list after five minutes or more, whoever is still reading it."""
MOST_EMPTY = 10
"""Pages without an object, one after the other; a server may filter what it has read."""
LONGEST_TOKEN = 16 * 1024


def listing[Report](
    client: Client,
    path: str,
    translate: Callable[[Json], Report],
    *,
    page: int,
    most: int,
    chosen: Query | None = None,
) -> Listing[Report]:
    """All pages of one list, of `most` objects at most, of those that `chosen` selects. One that
    expired half-way is begun once more. Raises ClusterError."""
    query: Query = {"limit": page, **(chosen or {})}
    try:
        return _pages(client, path, translate, query=query, most=most)
    except ClusterError as error:
        if error.fault is not Fault.EXPIRED:
            raise
        return _pages(client, path, translate, query=query, most=most)


def _pages[Report](
    client: Client, path: str, translate: Callable[[Json], Report], *, query: Query, most: int
) -> Listing[Report]:
    reports: list[Report] = []
    left_out: list[str] = []
    until, token, empty = time.monotonic() + LONGEST_S, "", 0
    while True:
        asked = {**query, "continue": token} if token else query
        items, version, rest = _page(client.call("GET", path, query=asked), path)
        empty = 0 if items else empty + 1
        if rest and empty > MOST_EMPTY:
            raise _nonsense(path, f"has {empty} empty pages in a row")
        if len(reports) + len(left_out) + len(items) > most:
            raise _nonsense(path, f"has more than {most:,} objects")
        found, others = readable(items, translate)
        reports += found
        left_out += others
        if not rest:
            break
        if rest == token:
            raise _nonsense(path, "leads from a page to the same one again")
        if time.monotonic() > until:
            told = f"The list of {path} takes too long: it has not ended after {LONGEST_S:.0f} s."
            raise ClusterError(Fault.SERVER, told)
        token = rest
    if left_out:
        first = "; ".join(left_out[:SAID])
        logger.warning("left out %d of %s, first %s", len(left_out), path, first)
    return Listing(tuple(reports), version, tuple(left_out))


def _page(answer: Json, path: str) -> tuple[list[object], str, str]:
    """Its objects, its version, and the token of the page after it, "" where it is the last."""
    metadata, items = answer.get("metadata"), answer.get("items")
    if not isinstance(metadata, dict) or not isinstance(items, list | None):
        raise _nonsense(path, "is no list")
    version, rest = metadata.get("resourceVersion"), metadata.get("continue")
    if not isinstance(version, str) or not 0 < len(version) <= 64:
        raise _nonsense(path, "has no version")
    if not isinstance(rest, str | None) or len(rest or "") > LONGEST_TOKEN:
        raise _nonsense(path, "does not say what comes after a page")
    return items or [], version, rest or ""


def _nonsense(path: str, how: str) -> ClusterError:
    return ClusterError(Fault.MALFORMED, f"The list of {path} makes no sense: it {how}.")
