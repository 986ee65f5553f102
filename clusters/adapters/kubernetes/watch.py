"""One watch as raw lines: bookmarks, expiry, cut lines, half-open connections. No lists.

The caller lists, watches from there, and on the stream's end watches again from the last version
it was given; on EXPIRED it lists again.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from clusters.adapters.kubernetes.checks import Json, Malformed, document
from clusters.adapters.kubernetes.client import TRANSPORT, Client
from clusters.adapters.kubernetes.failures import status_failure
from clusters.adapters.kubernetes.translate import readable
from clusters.port import Change, ClusterError, Fault, WatchEvent

logger = logging.getLogger(__name__)

LONGEST_LINE = 16 * 1024 * 1024
SAID = 5
"""How many of the objects that make no sense are named in the log."""
_CHANGES = {"ADDED": Change.UPSERT, "MODIFIED": Change.UPSERT, "DELETED": Change.DELETE}


@contextmanager
def watch[Report](
    client: Client,
    path: str,
    *,
    resource_version: str,
    translate: Callable[[Json], Report],
    timeout_s: int,
    read_timeout_s: float,
) -> Iterator[Iterator[WatchEvent[Report]]]:
    """The changes after `resource_version`, which the server is asked to end after `timeout_s`.

    `read_timeout_s` has to be longer: so long a silence is a connection that died without a word,
    and so long a stream a server that does not do what it is asked. Either is given up.
    """
    query: dict[str, str | int] = {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": resource_version,
        "timeoutSeconds": timeout_s,
    }
    with client.stream(
        path, query=query, lasts_s=read_timeout_s, silence_s=read_timeout_s
    ) as pieces:
        yield _events(_lines(pieces), translate, client.redacted)


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Whole lines until the stream ends in whatever way; a line that was cut is dropped."""
    rest: list[bytes] = []  # of a line: to join it anew with each piece would cost its square
    size = 0
    while True:
        try:
            piece = next(pieces, None)
        except TRANSPORT as error:
            logger.info("a watch ended early: %s", type(error).__name__)
            return
        if piece is None:
            return
        first, *others = piece.split(b"\n")
        rest.append(first)
        size += len(first)
        if others:
            yield b"".join(rest)
            *lines, last = others
            yield from lines
            rest, size = [last], len(last)
        if size > LONGEST_LINE:
            raise ClusterError(Fault.MALFORMED, "A watch sent a line of more than 16 MiB.")


def _events[Report](
    lines: Iterator[bytes],
    translate: Callable[[Json], Report],
    redacted: Callable[[bytes], bytes],
) -> Iterator[WatchEvent[Report]]:
    amiss = 0
    for line in lines:
        if not line:
            continue
        kind, body = _parsed(line)
        if kind == "ERROR":
            raise _error(_parsed(redacted(line))[1])
        metadata = body.get("metadata")
        version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
        if not isinstance(version, str) or len(version) > 64:
            raise ClusterError(Fault.MALFORMED, "A watch sent an object without a version.")
        change = _CHANGES.get(kind)
        reports, left_out = readable([body] if change is not None else [], translate)
        for told in left_out[: SAID - amiss]:
            logger.warning("a watch told of what makes no sense: %s", told)
        amiss = min(SAID, amiss + len(left_out))
        if change is None or not reports:
            # A bookmark, a kind of event from the future, or an object that makes no sense.
            yield WatchEvent(Change.BOOKMARK, None, version)
        else:
            yield WatchEvent(change, reports[0], version)


def _parsed(line: bytes) -> tuple[str, Json]:
    try:
        event = document(line)
    except Malformed as error:
        raise ClusterError(
            Fault.MALFORMED, f"A watch sent a line that is no event: {error}."
        ) from None
    kind, body = event.get("type"), event.get("object")
    if not isinstance(kind, str) or not isinstance(body, dict):
        raise ClusterError(Fault.MALFORMED, "A watch sent a line that is no event.")
    return kind, body


def _error(status: Json) -> ClusterError:
    code = status.get("code")
    return status_failure(status, code=code if type(code) is int else 500)
