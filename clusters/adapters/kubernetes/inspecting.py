"""Reading a pod's events and the end of its log. Both are what others wrote: bounded, checked to
be of that pod, and freed of what no page can show."""

import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from clusters.adapters.kubernetes.checks import Json, Malformed, mapping, moment, objects, word
from clusters.adapters.kubernetes.client import Client
from clusters.adapters.kubernetes.failures import printable
from clusters.inspection import LOG_KIB, MOST_EVENTS, EventReport, LogTail
from clusters.port import ClusterError, Fault

MOST_LISTED = 500
"""Events of one pod that are asked for: a cluster keeps them for an hour, and counts like ones."""
_MOST_COUNTED = 10**9
# The API limits a log's lines from its end, but its bytes from the beginning of those lines: with
# fewer lines what is cut off is later.
_LINES = (1000, 100, 10)
_MOST_BYTES = 1024 * 1024
_LONGEST_PART = 16 * 1024
_LONGEST_AGO = datetime(2000, 1, 1, tzinfo=UTC)
_UNSHOWN = {"Cc", "Cf", "Cs", "Cn"}
"""Categories of characters that no page can show, or that make it show others elsewhere."""
_COLOURS = re.compile(r"\x1b\[[0-9;]{0,20}m")


def read_events(client: Client, *, namespace: str, uid: str) -> Sequence[EventReport]:
    """As `InspectionPort.read_events`."""
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/events"
    query: dict[str, str | int] = {
        "fieldSelector": f"involvedObject.uid={uid}",
        "limit": MOST_LISTED,
    }
    answer = client.call("GET", path, query=query)
    try:
        listed = objects(answer, "items")
    except Malformed as error:
        raise ClusterError(Fault.MALFORMED, f"The pod's events make no sense: {error}") from None
    found = [report for body in listed if (report := _event(body, uid=uid)) is not None]
    found.sort(key=lambda one: (one.at or _LONGEST_AGO, one.reason, one.said), reverse=True)
    return found[:MOST_EVENTS]


def _event(body: Json, *, uid: str) -> EventReport | None:
    """None for one of another object, or that makes no sense: others are shown without it."""
    try:
        if mapping(body, "involvedObject").get("uid") != uid:
            return None
        series = mapping(body, "series")
        at = (
            moment(series, "lastObservedTime")
            or moment(body, "lastTimestamp")
            or moment(body, "eventTime")
            or moment(body, "firstTimestamp")
        )
        component = mapping(body, "source").get("component") or body.get("reportingComponent")
    except Malformed:
        return None
    count = series.get("count", body.get("count"))
    return EventReport(
        at=at,
        reason=_line(body.get("reason"), longest=100),
        said=_line(body.get("message"), longest=500),
        count=count if type(count) is int and 0 < count < _MOST_COUNTED else 1,
        component=_line(component, longest=100),
        is_warning=body.get("type") == "Warning",
    )


def read_log(client: Client, *, namespace: str, name: str, uid: str) -> LogTail:
    """As `InspectionPort.read_log`. A pod is asked for by its name: that it was this one is seen
    afterwards, as another that has the name now came later."""
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"
    container = _container(client.call("GET", path), uid=uid)
    tail = _tail(client, path, container=container)
    _container(client.call("GET", path), uid=uid)
    return tail


def _container(body: Json, *, uid: str) -> str:
    """The name of its first."""
    try:
        if mapping(body, "metadata").get("uid") != uid:
            raise ClusterError(Fault.NOT_FOUND, "The pod is gone; another has its name.")
        [first, *_] = objects(mapping(body, "spec"), "containers")
        return word(first, "name")
    except (Malformed, ValueError):
        raise ClusterError(Fault.MALFORMED, "The cluster's pod makes no sense.") from None


def _tail(client: Client, path: str, *, container: str) -> LogTail:
    data, lines = b"", 0
    for lines in _LINES:
        query: dict[str, str | int] = {
            "container": container,
            "tailLines": lines,
            "limitBytes": _MOST_BYTES,
        }
        data = client.text(f"{path}/log", query=query, largest=2 * _MOST_BYTES)
        if len(data) < _MOST_BYTES:
            break
    # A line of more than 16 KiB is several to the cluster: it may count more than there are.
    parts = data.count(b"\n") + len(data) // _LONGEST_PART
    is_cut = len(data) > LOG_KIB * 1024 or parts >= lines
    text = _COLOURS.sub("", data[-LOG_KIB * 1024 :].decode(errors="replace"))
    text = "".join(_shown(character) for character in text.replace("\r\n", "\n"))
    kept = text.encode()[-LOG_KIB * 1024 :].decode(errors="ignore")  # what is replaced has grown
    if len(data) > LOG_KIB * 1024 or len(kept) < len(text):
        kept = kept.partition("\n")[2] or kept  # no half line, unless there is no whole one
    return LogTail(text=kept, is_cut=is_cut or len(kept) < len(text))


def _shown(character: str) -> str:
    shown = character in "\t\n" or unicodedata.category(character) not in _UNSHOWN
    return character if shown else "\ufffd"


def _line(value: object, *, longest: int) -> str:
    return printable(value, longest=longest) if isinstance(value, str) else ""
