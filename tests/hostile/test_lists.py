"""A list of pods or nodes that is too large, without end, too slow, or no list at all."""

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import pytest

from clusters.models import ClusterState
from tests.hostile.acts import (
    CHUNKED,
    HEAD,
    MIB,
    body,
    chunk,
    drip,
    flood,
    listing,
    pod,
    says,
    sized,
)
from tests.hostile.lab import MOST_PODS, Lab
from tests.hostile.server import Act, Line

PODS, NODES = r"GET /api/v1/pods\?limit", r"GET /api/v1/nodes\?limit"


def pages(items: Callable[[int], Iterator[object]]) -> Act:
    """Another page after each."""
    numbers = count(1)

    def act(line: Line) -> None:
        nth = next(numbers)
        line.say(sized(listing(items(nth), rest=f"page-{nth}")))

    return act


def cut_short() -> Act:
    """The answer ends one byte later each time."""
    whole, ends = sized(listing([pod()])), count(0)

    def act(line: Line) -> None:
        line.say(whole[: next(ends) % (len(whole) - 1)])

    return act


def page_of(nth: int, most: int) -> Iterator[object]:
    return (pod(f"u-{nth}-{each}") for each in range(most))


DEEP = b'{"metadata":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
STATUS = b'{"kind":"Status","status":"Failure","code":403,"message":"<script>alert(1)</script>"}'
LARGE = rb"larger than 64 MiB"
SLOW = "takes too long"
NO_JSON = "makes no sense: it is no JSON object"


@dataclass(frozen=True)
class Bad:
    """What the list of `at` is, and what is told of it."""

    name: str
    act: Act
    told: str
    at: str = PODS


BAD = {
    "large": (
        Bad("half a million objects on a page", body(listing([{}] * 500_000)),
            f"more than {MOST_PODS:,} objects"),
        Bad("twenty million empty objects", body(b'{"items":[' + b"{}," * 2 * 10**7 + b"{}]}"),
            "more than 2,000,000 values"),
        Bad("pages without end", pages(lambda nth: page_of(nth, 1)), "has not ended after 3 s"),
        Bad("more pods than can be", pages(lambda nth: page_of(nth, 500)),
            f"more than {MOST_PODS:,} objects|has not ended"),
        Bad("a token of a megabyte", body(listing([pod()], rest="x" * 2**20)), "what comes after"),
        Bad("a version of a megabyte", body(listing([pod()], version="9" * 2**20)), "no version"),
        Bad("a byte in each chunk", flood(chunk(b" ") * 10_000), f"{SLOW}|larger than 64 MiB"),
        Bad("a header without end", flood(b"x" * 2**16, first=HEAD + b"X: "), "does not end"),
        Bad("headers without end", flood(b"X: y\r\n" * 10_000, first=HEAD),
            f"{SLOW}|larger than 64"),
        Bad("answers still to come", flood(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, first=b""),
            f"{SLOW}|larger than 64|a line of the answer does not end"),
        Bad("a gibibyte by its length",
            flood(MIB, first=HEAD + b"Content-Length: %d\r\n\r\n" % 2**30), "larger than 64 MiB"),
        Bad("a gibibyte in chunks", flood(chunk(MIB)), "larger than 64 MiB"),
        Bad("a gibibyte, compressed",
            body(gzip.compress(bytes(2**26)) * 16, b"Content-Encoding: gzip"), NO_JSON),
        Bad("nodes without end", pages(lambda nth: page_of(nth, 1)), "has not ended", at=NODES),
        Bad("nodes of a gibibyte", flood(chunk(MIB)), "larger than 64 MiB", at=NODES),
        Bad("a version of a gibibyte", flood(chunk(MIB)), "larger than 64 MiB", at="GET /version"),
    ),
    "slow": (
        Bad("a head that drips", drip(HEAD + b"X: ", b"x"), SLOW),
        Bad("a body that drips", drip(HEAD + b"Content-Length: 1000000\r\n\r\n", b" "), SLOW),
        Bad("chunks that drip", drip(CHUNKED, chunk(b" ")), SLOW),
        Bad("a version that drips", drip(HEAD + b"X: ", b"x"), SLOW, at="GET /version"),
    ),
    "odd": (
        Bad("a token that comes again", body(listing([pod()], rest="again")), "same one again"),
        Bad("pages that shrink to nothing", pages(lambda nth: page_of(nth, max(0, 3 - nth))),
            "11 empty pages in a row"),
        Bad("no JSON", body(b"<script>alert(1)</script>"), NO_JSON),
        Bad("a list and no object", body(b"[]"), NO_JSON),
        Bad("not a number", body(b'{"metadata":{"resourceVersion":NaN},"items":[]}'), NO_JSON),
        Bad("a number beyond all", body(b'{"metadata":{"resourceVersion":1e400},"items":[]}'),
            "has no version|no JSON"),
        Bad("a hundred thousand deep", body(DEEP), NO_JSON),
        Bad("half a character", body(b'{"metadata":{"resourceVersion":"\\ud800"}}'), NO_JSON),
        Bad("one key twice", body(b'{"metadata":{"resourceVersion":"1"},"items":[],"items":{}}'),
            "it is no list"),
        Bad("an object of another kind", body(b'{"kind":"Table","rows":[]}'), "is no list"),
        Bad("a failure under 200", body(STATUS), "answered 403: <script>"),
        Bad("a redirect", says(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n"
                               b"Content-Length: 0\r\n\r\n"), "answered 302"),
        Bad("two answers", says(sized(listing([])) * 2), "more than one|[Dd]ata after"),
        Bad("an end at every byte", cut_short(), "does not answer"),
        Bad("another protocol", says(b"SSH-2.0-OpenSSH_9.9\r\n"), "does not answer"),
        Bad("nodes that are no list", body(b'{"items":{}}'), "is no list", at=NODES),
    ),
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_list_is_told_and_harms_nobody_else(
    bad: tuple[Bad, ...], lab: Lab, subtests: pytest.Subtests
) -> None:
    known = lab.inventory()
    for each in bad:
        with subtests.test(each.name), lab.followed():
            lab.server.behave(each.at, each.act)
            lab.told(each.told)
            lab.works()
            assert lab.inventory() == known


def test_a_cluster_that_only_talks_nonsense_falls_silent_and_keeps_its_inventory(lab: Lab) -> None:
    known = lab.inventory()
    with lab.followed():
        lab.server.behave(PODS, body(b"[]"))
        lab.told(NO_JSON)
        lab.not_heard_for_long()
        assert lab.state() == ClusterState.DEGRADED
        lab.works()
        assert lab.inventory() == known
        lab.server.heal()
        lab.heard("south")
        assert lab.state() == ClusterState.ACTIVE
