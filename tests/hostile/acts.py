"""What a hostile API server says: answers and streams, whole or without end."""

from collections.abc import Iterable
from itertools import repeat
from typing import Any

import orjson

from tests.hostile.server import Act, Line

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
MIB = b" " * 2**20

type Json = dict[str, Any]  # Any: JSON


def sized(body: bytes, *headers: bytes) -> bytes:
    lines = [HEAD.rstrip(), b"Connection: close", *headers, b"Content-Length: %d" % len(body)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def says(*pieces: bytes) -> Act:
    return lambda line: line.say(*pieces)


def body(text: bytes, *headers: bytes) -> Act:
    return says(sized(text, *headers))


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def lines(*each: bytes) -> Act:
    """A stream that ends with them."""
    return says(CHUNKED, *(chunk(line + b"\n") for line in each), b"0\r\n\r\n")


def flood(piece: bytes, *, first: bytes = CHUNKED) -> Act:
    """The same for ever."""

    def act(line: Line) -> None:
        line.say(first)
        for each in repeat(piece):
            line.say(each)

    return act


def drip(first: bytes, then: bytes, *, every_s: float = 0.2) -> Act:
    """The same, slowly, for ever."""

    def act(line: Line) -> None:
        line.say(first)
        for each in repeat(then):
            line.pause(every_s)
            line.say(each)

    return act


def listing(items: Iterable[object], *, rest: str = "", version: str = "1") -> bytes:
    metadata = {"resourceVersion": version, "continue": rest}
    return orjson.dumps({"kind": "List", "metadata": metadata, "items": list(items)})


def event(kind: str, of: object) -> bytes:
    return orjson.dumps({"type": kind, "object": of})


def pod(uid: str = "u-1", *, version: str = "7", name: str = "stranger", **labels: str) -> Json:
    """One that runs, somebody else's unless its labels say otherwise."""
    named = {"namespace": "elsewhere", "name": name, "uid": uid, "resourceVersion": version}
    container = {"name": "main", "resources": {"requests": {"cpu": "1m"}}}
    return {
        "kind": "Pod",
        "metadata": {**named, "labels": labels},
        "spec": {"nodeName": "h100-0", "containers": [container]},
        "status": {"phase": "Running"},
    }
