"""One watch as raw lines: bookmarks, expiry, cut lines, half-open connections. No lists.

The caller lists, watches from there, and on the stream's end watches again from the last version
it was given; on EXPIRED it lists again.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import urllib3

from clusters.adapters.kubernetes.client import TRANSPORT, Client
from clusters.adapters.kubernetes.failures import status_failure
from clusters.adapters.kubernetes.translate import readable
from clusters.port import Change, ClusterError, Fault, WatchEvent

logger = logging.getLogger(__name__)

LONGEST_LINE = 16 * 1024 * 1024
_PIECE = 256 * 1024
_CHANGES = {"ADDED": Change.UPSERT, "MODIFIED": Change.UPSERT, "DELETED": Change.DELETE}


@contextmanager
def watch[Report](
    client: Client,
    path: str,
    *,
    resource_version: str,
    translate: Callable[[dict[str, Any]], Report],  # Any: JSON of the API
    timeout_s: int,
    read_timeout_s: float,
) -> Iterator[Iterator[WatchEvent[Report]]]:
    """The changes after `resource_version`, for `timeout_s` at most.

    `read_timeout_s` has to be longer: a connection that died without a word is given up after it.
    """
    query: dict[str, str | int] = {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": resource_version,
        "timeoutSeconds": timeout_s,
    }
    response = client.stream(path, query=query, read_timeout_s=read_timeout_s)
    try:
        yield _events(_lines(response), translate, client.redacted)
    finally:
        response.close()


def _lines(response: urllib3.response.BaseHTTPResponse) -> Iterator[bytes]:
    """Whole lines until the stream ends in whatever way; a line that was cut is dropped."""
    rest = b""
    while True:
        try:
            piece = response.read1(_PIECE)
        except TRANSPORT as error:
            logger.info("a watch ended early: %s", type(error).__name__)
            return
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        if len(rest) > LONGEST_LINE:
            raise ClusterError(Fault.MALFORMED, "A watch sent a line of more than 16 MiB.")


def _events[Report](
    lines: Iterator[bytes],
    translate: Callable[[dict[str, Any]], Report],  # Any: JSON of the API
    redacted: Callable[[bytes], bytes],
) -> Iterator[WatchEvent[Report]]:
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
        for told in left_out:
            logger.warning("a watch told of what makes no sense: %s", told)
        if change is None or not reports:
            # A bookmark, a kind of event from the future, or an object that makes no sense.
            yield WatchEvent(Change.BOOKMARK, None, version)
        else:
            yield WatchEvent(change, reports[0], version)


def _parsed(line: bytes) -> tuple[str, dict[str, Any]]:  # Any: JSON of the API
    try:
        event = orjson.loads(line)
    except ValueError:
        event = None
    kind = event.get("type") if isinstance(event, dict) else None
    body = event.get("object") if isinstance(event, dict) else None
    if not isinstance(kind, str) or not isinstance(body, dict):
        raise ClusterError(Fault.MALFORMED, "A watch sent a line that is no event.")
    return kind, body


def _error(status: dict[str, Any]) -> ClusterError:  # Any: JSON of the API
    code = status.get("code")
    return status_failure(status, code=code if type(code) is int else 500)
