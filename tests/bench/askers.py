"""Clients that ask an API as fast as it answers, each on a connection of its own.

    python -m tests.bench.askers < {"port", "paths", "headers", "clients", "seconds"}

Prints {"elapsed_s", "took": {kind of path: [seconds]}, "not_200": {path: status}}.
"""

import json
import random
import re
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any

_ID = re.compile(r"/[0-9a-f]{8}-[0-9a-f-]{27}")


def kind_of(path: str) -> str:
    """Without what differs from one to the next."""
    plain, _, query = path.partition("?")
    kind = _ID.sub("/one", plain.removeprefix("/api/v1"))
    return f"{kind}/of-project" if "project=" in query else kind


def ask(asked: dict[str, Any], nth: int) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Any: JSON."""
    dice = random.Random(nth)
    took: dict[str, list[float]] = defaultdict(list)
    wrong: dict[str, int] = {}
    link = HTTPConnection("127.0.0.1", asked["port"], timeout=60)
    until = time.monotonic() + asked["seconds"]
    while time.monotonic() < until:
        path = dice.choice(asked["paths"])
        begun = time.perf_counter()
        link.request("GET", path, headers=asked["headers"])
        answer = link.getresponse()
        answer.read()
        took[kind_of(path)].append(time.perf_counter() - begun)
        if answer.status != 200:
            wrong[path] = answer.status
    return took, wrong


def main() -> None:
    asked = json.load(sys.stdin)
    begun = time.monotonic()
    with ThreadPoolExecutor(asked["clients"]) as threads:
        parts = list(threads.map(lambda nth: ask(asked, nth), range(asked["clients"])))
    elapsed_s = time.monotonic() - begun
    took: dict[str, list[float]] = defaultdict(list)
    wrong: dict[str, int] = {}
    for times, refused in parts:
        wrong |= refused
        for kind, each in times.items():
            took[kind] += each
    json.dump({"elapsed_s": elapsed_s, "took": took, "not_200": wrong}, sys.stdout)


if __name__ == "__main__":
    main()
