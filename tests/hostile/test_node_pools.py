"""What a hostile cluster tells of nodes that can come: its page says so, and nothing is expected
of it; its work goes on, and everybody else's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from clusters.models import NodeClaim, NodePool
from tests.hostile.acts import CHUNKED, HEAD, MIB, Json, body, chunk, drip, flood, listing
from tests.hostile.lab import Lab
from tests.hostile.server import Act
from tests.hostile.test_lists import NO_JSON, pages
from tests.waiting import eventually

KARPENTER = r"GET /apis/karpenter\.sh/v1"
POOLS, CLAIMS = rf"{KARPENTER}/nodepools\?limit", rf"{KARPENTER}/nodeclaims\?limit"
REQUESTS = r"GET /apis/autoscaling\.x-k8s\.io/v1/provisioningrequests\?limit"


def pool(name: object = "bad", *, labels: object = None, **limits: object) -> Json:
    template = {"metadata": {"labels": labels or {}}, "spec": {}}
    return {"metadata": {"name": name}, "spec": {"limits": limits, "template": template}}


def claim(**metadata: Any) -> Json:
    """Of the pool that is sound."""
    labels = {"karpenter.sh/nodepool": "sound"}
    told = {"name": "bad", "uid": "u", "labels": labels} | metadata
    return {"metadata": told, "status": {}}


def request(*counts: object) -> Json:
    sets = [{"podTemplateRef": {"name": "bad"}, "count": count} for count in counts]
    return {"metadata": {"name": "bad", "uid": "u"}, "spec": {"podSets": sets}}


@dataclass(frozen=True)
class Bad:
    """What is answered, and what is told of it."""

    name: str
    act: Act
    told: str
    at: str = POOLS


@pytest.fixture
def sound(lab: Lab) -> None:
    """South has a pool in which a node is being made."""
    api = "/apis/karpenter.sh/v1"
    lab.behind.call("POST", f"{api}/nodepools", pool("sound"))
    lab.behind.call("POST", f"{api}/nodeclaims", claim(name="sound"))


def known() -> list[list[str]]:
    """The pools and claims of which Berth thinks that they are there."""
    return [
        list(model.objects.filter(gone_at=None).order_by("name").values_list("name", flat=True))
        for model in (NodePool, NodeClaim)
    ]


SOUND = [["sound"], ["sound"]]


def many(of: Callable[[str], Json]) -> Act:
    return pages(lambda nth: (of(f"p-{nth}-{each}") for each in range(500)))


UNREAD = (
    Bad("pools without end", pages(lambda nth: iter([pool(f"p-{nth}")])), "The list of "),
    Bad("more pools than can be", many(pool), "more than 1,000 objects"),
    Bad("more claims than can be", many(lambda name: claim(name=name, uid=name)),
        "more than 10,000 objects", at=CLAIMS),
    Bad("requests of a gibibyte", flood(chunk(MIB)), "larger than 64 MiB", at=REQUESTS),
    Bad("pools that drip", drip(HEAD + b"Content-Length: 1000000\r\n\r\n", b" "), "too long"),
    Bad("claims that drip", drip(CHUNKED, chunk(b" ")), "too long", at=CLAIMS),
    Bad("no JSON", body(b"<script>alert(1)</script>"), NO_JSON),
    Bad("no list", body(b'{"items":{}}'), "is no list", at=REQUESTS),
)  # fmt: skip


@pytest.mark.usefixtures("sound")
def test_what_can_not_be_read_of_nodes_that_can_come_is_told_and_what_was_known_stays(
    lab: Lab, subtests: pytest.Subtests
) -> None:
    for bad in UNREAD:
        with subtests.test(bad.name), lab.followed():
            eventually("the sound ones are known", lambda: known() == SOUND)
            lab.server.behave(bad.at, bad.act)
            lab.left_out("coming", bad.told)
            lab.works()
            lab.heard("south")
            assert known() == SOUND
            lab.server.heal()
            eventually("it is read again", lambda: not lab.left_out_of("coming"))


NONSENSE = {
    "a pool's name in markup": (pool("<script>alert(1) </script>"), POOLS, "name is no name"),
    "a negative limit": (pool(cpu="-8"), POOLS, "bad: '-8' is negative"),
    "a tree for a limit": (pool(nodes=[[{}]]), POOLS, "bad: nodes is no quantity"),
    "a model with control characters": (
        pool(labels={"nvidia.com/gpu.product": "H100\x00\x1b[31m"}),
        POOLS,
        "bad: its label nvidia.com/gpu.product is no word",
    ),
    "a number for a pool": (7, POOLS, "it is no object"),
    "a claim of no time": (claim(), CLAIMS, "bad: it does not say when it was made"),
    "a claim before all times": (
        claim(creationTimestamp="0001-01-01T00:00:00Z"),
        CLAIMS,
        "bad: creationTimestamp is no time of ours",
    ),
    "a claim without a uid": (
        claim(uid=None, creationTimestamp="2026-01-01T00:00:00Z"),
        CLAIMS,
        "bad: uid is no name",
    ),
    "a request for a million nodes": (
        request(10**6),
        REQUESTS,
        "its count of pods makes no sense",
    ),
    "a request for many at a time": (
        request(*[10_000] * 900),
        REQUESTS,
        "bad: it is for more than 10,000 pods",
    ),
}


@pytest.mark.usefixtures("sound")
def test_what_makes_no_sense_is_left_out_and_the_others_are_there(
    lab: Lab, subtests: pytest.Subtests
) -> None:
    made_at = "2026-01-01T00:00:00Z"
    beside = {
        POOLS: [pool("sound")],
        CLAIMS: [claim(name="sound", uid="sound", creationTimestamp=made_at)],
        REQUESTS: [],
    }
    for name, (bad, at, told) in NONSENSE.items():
        with subtests.test(name), lab.followed():
            lab.server.behave(at, body(listing([bad, *beside[at]])))
            lab.left_out("node_pools", told)
            assert known() == SOUND
            lab.works()
            lab.heard("south")
            lab.server.heal()
            eventually("all is read again", lambda: not lab.left_out_of("node_pools"))
