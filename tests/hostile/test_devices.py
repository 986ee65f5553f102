"""What a hostile cluster says that drivers publish of devices, and that claims were given."""

from dataclasses import dataclass
from typing import Any

import pytest

from clusters.models import Device, Node
from tests.hostile.acts import CHUNKED, MIB, Json, body, chunk, drip, flood, lines, listing
from tests.hostile.lab import Lab
from tests.hostile.server import Act
from tests.hostile.test_lists import NO_JSON, SLOW, pages
from tests.kube.resource_slices import PATH, partitionable, piece, published, whole
from tests.kube.resource_slices import uuid as uuid_of
from tests.waiting import eventually

API = r"GET /apis/resource\.k8s\.io/v1/"
SLICES, CLAIMS = rf"{API}resourceslices\?limit", rf"{API}resourceclaims\?limit"
NODE = "h100-3"


@dataclass(frozen=True)
class Bad:
    """What is answered, and what is told of it."""

    name: str
    act: Act
    told: str
    at: str = SLICES


ENDLESS = pages(lambda nth: iter([published(f"n-{nth}")]))
UNREAD = (
    Bad("slices without end", ENDLESS, "has not ended after 3 s"),
    Bad("slices of a gibibyte", flood(chunk(MIB)), "larger than 64 MiB"),
    Bad("slices that drip", drip(CHUNKED, chunk(b" ")), SLOW),
    Bad("slices that are no list", body(b'{"items":{}}'), "is no list"),
    Bad("claims of a gibibyte", flood(chunk(MIB)), "larger than 64 MiB", at=CLAIMS),
    Bad("claims that drip", drip(CHUNKED, chunk(b" ")), SLOW, at=CLAIMS),
    Bad("claims that are no JSON", body(b"<script>alert(1)</script>"), NO_JSON, at=CLAIMS),
    Bad("a line without end", flood(chunk(b"x" * 2**20)), "a line of more than 16 MiB",
        at=rf"{API}resourceslices\?watch=1"),
    Bad("a watch of claims that is no JSON", lines(b"<script>alert(1)</script>"),
        "no event: it is no JSON object", at=rf"{API}resourceclaims\?watch=1"),
)  # fmt: skip


def test_what_can_not_be_read_of_devices_is_told_and_harms_nobody_else(
    lab: Lab, subtests: pytest.Subtests
) -> None:
    known = lab.inventory()
    for bad in UNREAD:
        with subtests.test(bad.name), lab.followed():
            lab.server.behave(bad.at, bad.act)
            lab.told(bad.told)
            lab.works()
            assert lab.inventory() == known


def pool(**fields: Any) -> Json:
    """All that is published of the node, with these fields of its pool."""
    made = published(NODE, [whole(NODE, 0)])
    made["spec"]["pool"] |= fields
    return made


def uuid(told: object) -> Json:
    device = whole(NODE, 0)
    device["attributes"]["uuid"] = told
    return published(NODE, [device])


def counting(name: str) -> list[Json]:
    """Slices that take of a counter of that name, of which there is none."""
    devices, limits = partitionable(NODE, 0)
    for device in devices:
        device["consumesCounters"][0]["counters"][name] = {"value": "9"}
    return [published(NODE, devices, counters=[limits])]


NONSENSE: dict[str, tuple[list[object], str]] = {
    "no object": ([7], "it is no object"),
    "no pool": ([{"metadata": {"name": "bad"}, "spec": {"driver": "x"}}], "bad: "),
    "a negative generation": ([pool(generation=-1)], "generation is no number from 0"),
    "a million parts": ([pool(resourceSliceCount=10**6)], "is no number from 1 to 1000"),
    "a part that never comes": ([pool(resourceSliceCount=9)], "1 of 9 parts are there"),
    "a uuid in markup": ([uuid({"string": "<script>"})], "no uuid that makes sense"),
    "a tree for a uuid": ([uuid({"string": [[{}]]})], "uuid is no text"),
    "more devices than can be": (
        [published(NODE, [whole(NODE, nth) for nth in range(129)])],
        "more than 128 devices",
    ),
    "slices on each other": (
        [published(NODE, [piece(NODE, 0, "3g.40gb", 0, cut=True),
                          piece(NODE, 0, "4g.40gb", 0, cut=True)])],
        "or they lie on each other",
    ),
    "a counter with control characters": (
        [*counting("a\x00\x1b[31m")],
        "the name of a counter is no name",
    ),
    "a counter of a megabyte": ([*counting("x" * 2**20)], "the name of a counter is no name"),
}  # fmt: skip


def test_devices_that_make_no_sense_are_told_and_harm_nobody_else(
    lab: Lab, subtests: pytest.Subtests
) -> None:
    for name, (items, told) in NONSENSE.items():
        with subtests.test(name), lab.followed():
            lab.server.behave(SLICES, body(listing(items)))
            lab.left_out("devices", told)
            lab.works()
            lab.heard("south")


def test_a_device_of_another_cluster_stays_there(lab: Lab) -> None:
    north = Node.objects.get(cluster=lab.world.cluster, name=NODE)
    device = north.devices.get(ordinal=0)
    with lab.followed():
        Device.objects.filter(id=device.id).update(uuid=f"GPU-{NODE}-0")
        lab.server.behave(SLICES, body(listing([pool()])))
        lab.left_out("devices", f"GPU-{NODE}-0 is a device of another node")
        there = Device.objects.filter(uuid=f"GPU-{NODE}-0", gone_at=None)
        assert [each.node_id for each in there] == [north.id]
        lab.works()


def test_nor_does_a_cluster_get_anothers_while_the_driver_there_is_away(lab: Lab) -> None:
    """It comes back, and is the device's again."""
    name = "dra-1"
    mine = published(name, [whole(name, 0)])
    north = lab.world.simulator
    room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    node = {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}
    north.call(
        "POST", "/api/v1/nodes", {**node, "status": {"capacity": room, "allocatable": room}}
    )
    device = Device.objects.filter(node__cluster=lab.world.cluster, uuid=uuid_of(name, 0))
    with lab.followed():
        north.call("POST", PATH, mine)
        eventually("it is there", lambda: device.filter(gone_at=None).exists())
        north.call("DELETE", f"{PATH}/{mine['metadata']['name']}")
        eventually("its driver is away", lambda: device.exclude(gone_at=None).exists())
        stolen = whole(NODE, 0)
        stolen["attributes"]["uuid"]["string"] = uuid_of(name, 0)
        lab.server.behave(SLICES, body(listing([published(NODE, [stolen])])))
        lab.left_out("devices", f"{uuid_of(name, 0)} is a device of another node")
        north.call("POST", PATH, mine)
        eventually("it is back", lambda: device.filter(gone_at=None, usable=True).exists())
        there = Device.objects.filter(node__cluster=lab.south, uuid=uuid_of(name, 0))
        assert not there.filter(gone_at=None).exists()
        lab.works()


def given(*results: object, **metadata: object) -> Json:
    told = {"namespace": "elsewhere", "name": "bad", **metadata}
    return {"metadata": told, "status": {"allocation": {"devices": {"results": list(results)}}}}


GIVEN: dict[str, tuple[object, str]] = {
    "a number": (7, "it is no object"),
    "no name": (given(name=None), "name is no name"),
    "results that are none": (given(7), "results holds something that is no object"),
    "a device without a name": (given({"driver": "d", "pool": "p"}), "device is no name"),
    "markup": (given({"driver": "<script>alert(1) </script>"}), "driver is no name"),
}


def test_claims_that_make_no_sense_are_told_and_harm_nobody_else(
    lab: Lab, subtests: pytest.Subtests
) -> None:
    known = lab.inventory()
    for name, (bad, told) in GIVEN.items():
        with subtests.test(name), lab.followed():
            lab.server.behave(CLAIMS, body(listing([bad])))
            lab.left_out("claims", told)
            lab.works()
            lab.heard("south")
            assert lab.inventory() == known
