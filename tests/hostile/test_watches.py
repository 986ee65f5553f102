"""A watch that never ends, says nonsense, or tells of what is not its own."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import pytest

from scheduler.models import Placement
from tests.hostile.acts import CHUNKED, chunk, drip, event, flood, lines, pod
from tests.hostile.lab import MOST_NODES, MOST_PODS, Lab
from tests.hostile.server import GONE, Act, Line
from tests.waiting import eventually

WATCH = r"GET /api/v1/pods\?watch=1"
NODE_WATCH = r"GET /api/v1/nodes\?watch=1"


def endless(of: Callable[[int], bytes]) -> Act:
    """Another line each time, for ever."""
    numbers = count()

    def act(line: Line) -> None:
        line.say(CHUNKED)
        while True:
            line.say(chunk(b"".join(of(next(numbers)) + b"\n" for _ in range(500))))

    return act


def stranger(nth: int) -> bytes:
    return event("ADDED", pod(f"u-{nth}", version=str(nth), name=f"s-{nth}"))


def new_node(nth: int) -> bytes:
    """Another machine each time."""
    held = {"cpu": "64", "memory": "256Gi"}
    metadata = {"name": f"n-{nth}", "uid": f"u-{nth}", "resourceVersion": str(nth)}
    status = {"allocatable": held, "capacity": held}
    return event("ADDED", {"metadata": metadata, "spec": {}, "status": status})


@dataclass(frozen=True)
class Bad:
    """What a watch is, and what is told of it."""

    name: str
    act: Act
    told: str
    at: str = WATCH


BOOKMARK = event("BOOKMARK", {"metadata": {"resourceVersion": "9"}})
TOLD = (
    Bad("a line without end", flood(chunk(b"x" * 2**20)), "a line of more than 16 MiB"),
    Bad("a line of many objects",
        flood(chunk(b'{"object":[' + b"{}," * 5_000_000 + b"{}]}\n")), "2,000,000 values"),
    Bad("no JSON", lines(b"<script>alert(1)</script>"), "no event: it is no JSON object"),
    Bad("a list", lines(b"[]"), "no event: it is no JSON object"),
    Bad("no object", lines(b'{"type":"ADDED","object":[]}'), "no event"),
    Bad("no version", lines(b'{"type":"ADDED","object":{}}'), "an object without a version"),
    Bad("an error of no code", lines(event("ERROR", {"code": [], "message": "<script>"})),
        "answered 500: <script>"),
    Bad("more pods than can be", endless(stranger), f"more than {MOST_PODS:,} pods"),
    Bad("more nodes than can be", endless(new_node), f"more than {MOST_NODES} nodes",
        at=NODE_WATCH),
)  # fmt: skip


def test_nonsense_in_a_watch_is_told_and_harms_nobody_else(
    lab: Lab, subtests: pytest.Subtests
) -> None:
    for bad in TOLD:
        with subtests.test(bad.name), lab.followed():
            lab.server.behave(bad.at, bad.act)
            lab.told(bad.told)
            lab.works()


IN_VAIN = {
    "a byte at a time": drip(CHUNKED, chunk(b" ")),
    "nothing but ends of lines": flood(chunk(b"\n" * 2**16)),
    "bookmarks": flood(chunk((BOOKMARK + b"\n") * 500)),
    "kinds of events that nobody knows": flood(
        chunk((event("EXPLODED", pod()) + b"\n") * 500)
    ),
    "objects of other kinds": flood(
        chunk((event("ADDED", {"metadata": {"resourceVersion": "1"}}) + b"\n") * 500)
    ),
    "one pod, over and over": flood(chunk((stranger(7) + b"\n") * 500)),
    "versions that go backward": endless(lambda nth: stranger(10**6 - nth % 1000)),
}  # fmt: skip


def test_a_watch_that_never_ends_is_ended_and_begun_anew(
    lab: Lab, subtests: pytest.Subtests
) -> None:
    """And whoever follows it soundly meanwhile is not kept from it."""
    for name, act in IN_VAIN.items():
        with subtests.test(name), lab.followed():
            lab.server.behave(WATCH, act)
            lab.works()
            eventually("it was begun anew", lambda: len(lab.server.asked) > 1)
            lab.works()


def test_a_server_that_forgets_every_version_is_not_asked_without_a_pause(lab: Lab) -> None:
    with lab.followed():
        listed = lab.behind.stats()["requests"]["list pods"]
        lab.server.behave(WATCH, lambda line: line.say(GONE))
        eventually("it was begun anew", lambda: len(lab.server.asked) > 2)
        lab.works()
        assert lab.behind.stats()["requests"]["list pods"] - listed < 20


def test_what_it_tells_of_others_pods_changes_nothing(lab: Lab, subtests: pytest.Subtests) -> None:
    """South knows everything of north's witness, and of its own under others' names. Each lie has
    a watch of its own: of two about one uid the last is what is stored."""
    north, south = (Placement.objects.get(workload=each) for each in lab.witnesses)

    def told(of: Placement, uid: str, *, attempt: int = 1, rank: int = 0) -> dict[str, str]:
        return {
            "uid": uid,
            "name": of.pod_name,
            "berth.dev/installation": "berth",
            "berth.dev/workload": str(of.workload_id),
            "berth.dev/attempt": str(attempt),
            "berth.dev/rank": str(rank),
        }

    lies = {
        "another cluster's pod, as it is": told(north, north.pod_uid),
        "another workload under the uid of its own": told(north, south.pod_uid),
        "its own workload under another's uid": told(south, north.pod_uid),
        "a uid that changes": told(south, "u-other"),
        "another attempt": told(south, south.pod_uid, attempt=2),
        "another rank": told(south, south.pod_uid, rank=1),
    }
    for name, lie in lies.items():
        ended = pod(**lie)
        ended["status"] = {"phase": "Failed", "reason": "Evicted"}
        told_of = lines(event("MODIFIED", ended), event("DELETED", ended))
        with subtests.test(name), lab.followed():
            lab.server.behave(WATCH, told_of)
            eventually("it was told twice", lambda: len(lab.server.asked) > 2)
            lab.works()
