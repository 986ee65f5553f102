"""The watcher where a driver publishes devices: they are rows, each the same for as long as it is
in its node."""

from dataclasses import replace as replaced
from uuid import uuid4

import pytest
from django.conf import settings

from clusters.models import Cluster, Device, DeviceSlice, Flavor, FlavorKind, ForeignSpan, Node
from clusters.published import DeviceClaimReport
from scheduler.core.lifecycle import State
from scheduler.loop.watching import foreign
from scheduler.loop.watching.claimed import Claimed
from scheduler.loop.watching.published import Place
from scheduler.models import PlacementSpan, Workload
from tests.flows.world import World, spec
from tests.kube import resource_slices as made
from tests.kube.resource_slices import PATH, Json
from tests.scheduler.watching import LONG, all_in, watching, world
from tests.waiting import eventually

__all__ = ["world"]


@pytest.fixture
def bare(world: World) -> str:
    """A node of the simulator without any devices of a device plugin."""
    name = "dra-1"
    add_node(world, name)
    return name


def add_node(world: World, name: str) -> None:
    room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    body = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": room, "allocatable": room},
    }
    world.simulator.call("POST", "/api/v1/nodes", body)


def publish(world: World, *bodies: Json) -> None:
    for body in bodies:
        world.simulator.call("POST", PATH, body)


def replace(world: World, body: Json) -> None:
    path = f"{PATH}/{body['metadata']['name']}"
    found = world.simulator.call("GET", path)
    found["spec"] = body["spec"]
    world.simulator.call("PUT", path, found)


def uuids(node: str) -> dict[str, int]:
    """Of devices that are there: their ordinals."""
    rows = Device.objects.filter(node__name=node, gone_at__isnull=True)
    return dict(rows.values_list("uuid", "ordinal"))


def test_devices_are_followed_and_keep_their_row(world: World, bare: str) -> None:
    gpus = [made.whole(bare, nth) for nth in range(3)]
    publish(world, made.published(bare, gpus[:2]))
    with watching(world) as raised:
        eventually("there are two", lambda: uuids(bare) == {f"GPU-{bare}-{n}": n for n in (0, 1)})
        assert Node.objects.get(name=bare).device_driver == "gpu.nvidia.com"
        first = Device.objects.get(uuid=f"GPU-{bare}-1")
        # Another comes before it, and the first goes: it stays what and where it was.
        replace(world, made.published(bare, [gpus[1], gpus[2]], generation=2))
        eventually(
            "one was exchanged",
            lambda: uuids(bare) == {f"GPU-{bare}-1": 1, f"GPU-{bare}-2": 2},
        )
        assert Device.objects.get(uuid=f"GPU-{bare}-1").id == first.id
        # The one that went comes back as the row that it was.
        replace(world, made.published(bare, gpus, generation=3))
        eventually(
            "all are there", lambda: uuids(bare) == {f"GPU-{bare}-{n}": n for n in range(3)}
        )
        assert Device.objects.filter(node__name=bare).count() == 3
    assert raised == []


def test_slices_lie_where_the_driver_says(world: World, bare: str) -> None:
    cut = [
        made.piece(bare, 0, "3g.40gb", 4, cut=True),
        made.piece(bare, 0, "1g.10gb", 2, cut=True),
    ]

    def spans() -> set[tuple[str, int, int]]:
        rows = DeviceSlice.objects.filter(device__node__name=bare, gone_at__isnull=True)
        return {(row.profile, row.span.lower, row.span.upper) for row in rows}

    publish(world, made.published(bare, cut))
    with watching(world) as raised:
        eventually("both are there", lambda: spans() == {("1g.10gb", 2, 3), ("3g.40gb", 4, 8)})
        kept = DeviceSlice.objects.get(profile="3g.40gb", device__node__name=bare)
        moved = [cut[0], made.piece(bare, 0, "1g.10gb", 0, cut=True)]
        replace(world, made.published(bare, moved, generation=2))
        eventually("one moved", lambda: spans() == {("1g.10gb", 0, 1), ("3g.40gb", 4, 8)})
        kept.refresh_from_db()
        assert kept.gone_at is None
    assert raised == []


def test_what_is_not_used_is_told_on_the_cluster(world: World, bare: str) -> None:
    publish(world, made.published(bare, [made.whole(bare, 0)], parts=2))
    nonsense = made.published(bare, [made.whole(bare, 1)], part=1, parts=2)
    nonsense["spec"]["devices"][0]["attributes"]["uuid"] = {"string": "GPU 1 ' || true"}
    publish(world, nonsense)
    with watching(world) as raised:
        eventually("it is told", lambda: Cluster.objects.get().left_out.get("devices"))
        told = Cluster.objects.get().left_out["devices"]
        assert told["first"] == [f"{bare}: gpu-1: a device has no uuid that makes sense"]
        assert uuids(bare) == {made.uuid(bare, 0): 0}
    assert raised == []


def test_a_device_that_two_nodes_claim_is_one_nodes(world: World, bare: str) -> None:
    other = "dra-2"
    add_node(world, other)
    publish(
        world,
        made.published(bare, [made.whole(bare, 0)]),
        made.published(other, [made.whole(bare, 0), made.whole(other, 1)]),
    )
    with watching(world) as raised:
        eventually("each has one", lambda: len(uuids(bare)) + len(uuids(other)) == 2)
    assert raised == []
    assert Device.objects.filter(uuid=made.uuid(bare, 0), gone_at__isnull=True).count() == 1


def test_berth_does_without_where_it_may_not_look(world: World) -> None:
    world.simulator.fault(kind="forbid", verb="list", resource="resourceslices", count=0)
    Cluster.objects.update(seen_at=None)
    with watching(world) as raised:
        eventually("it is heard", lambda: Cluster.objects.get().seen_at)
        assert Device.objects.filter(gone_at__isnull=True).exists()
    assert raised == []


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("watch", "resourceslices"),
        ("list", "resourceclaims"),
        ("create", "resourceclaims"),
        ("", "deviceclasses"),
    ],
)
def test_devices_that_could_not_be_claimed_or_followed_are_not_used(
    world: World, bare: str, verb: str, resource: str
) -> None:
    publish(world, made.published(bare, [made.whole(bare, 0)]))
    if verb:
        world.simulator.fault(kind="forbid", verb=verb, resource=resource, count=0)
    else:
        [own] = world.simulator.call("GET", CLASSES)["items"]
        world.simulator.call("DELETE", f"{CLASSES}/{own['metadata']['name']}")
    Cluster.objects.update(seen_at=None)
    with watching(world) as raised:
        eventually("it is heard", lambda: Cluster.objects.get().seen_at)
        assert uuids(bare) == {}
        assert not Node.objects.exclude(device_driver="").exists()
    assert raised == []


def test_devices_stay_known_when_berth_may_no_longer_look(world: World, bare: str) -> None:
    publish(world, made.published(bare, [made.whole(bare, 0)]))
    with watching(world):
        eventually("it is there", lambda: uuids(bare))
    world.simulator.fault(kind="forbid", verb="list", resource="resourceslices", count=0)
    with watching(world) as raised:
        eventually("the watch has ended", lambda: raised)
    assert "resourceslices" in str(raised[0])
    assert uuids(bare)


CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"


def foreign_pod(world: World, node: str, expression: str) -> None:
    """Somebody else's, with a claim, on that node."""
    any_device: Json = {"metadata": {"name": "any"}, "spec": {}}
    world.simulator.call("POST", CLASSES, any_device)
    exactly = {"deviceClassName": "any", "selectors": [{"cel": {"expression": expression}}]}
    requests = [{"name": "one", "exactly": exactly}]
    claim: Json = {"metadata": {"name": "theirs"}, "spec": {"devices": {"requests": requests}}}
    world.simulator.call("POST", CLAIMS, claim)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "theirs"},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "resourceClaims": [{"name": "one", "resourceClaimName": "theirs"}],
            "containers": [{"name": "main", "image": "other", "command": ["sleep", "600"]}],
        },
    }
    world.simulator.call("POST", "/api/v1/namespaces/default/pods", pod)


def held(node: str) -> set[tuple[str, int, int]]:
    rows = ForeignSpan.objects.filter(device__node__name=node).select_related("device")
    return {(row.device.uuid, row.span.lower, row.span.upper) for row in rows}


def test_what_others_claimed_is_held_exactly_until_they_let_it_go(
    world: World, bare: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "STORE_S", 0)
    publish(world, made.published(bare, [made.whole(bare, nth) for nth in range(3)]))
    middle = made.uuid(bare, 1)
    foreign_pod(world, bare, f"device.attributes['gpu.nvidia.com'].uuid == '{middle}'")
    with watching(world) as raised:
        eventually("the middle one is held", lambda: held(bare) == {(middle, 0, 1000)})
        path = "/api/v1/namespaces/default/pods/theirs"
        world.simulator.call("DELETE", path, {"gracePeriodSeconds": 0})
        eventually("it is free again", lambda: held(bare) == set())
    assert raised == []


@pytest.fixture
def work(world: World, bare: str) -> Workload:
    """Of a model that only that node has, two of it, and on one of them by now."""
    gpus = [made.whole(bare, nth) for nth in range(2)]
    for gpu in gpus:
        gpu["attributes"]["productName"] = {"string": "NVIDIA H200"}
    publish(world, made.published(bare, gpus))
    world.flavors["h200"] = Flavor.objects.create(name="h200", kind=FlavorKind.WHOLE, model="H200")
    world.quota(world.vision, "h200", 8)
    with watching(world) as raised:
        eventually("they are there", lambda: len(uuids(bare)) == 2)
        [made_of] = world.submit(spec("h200", command=LONG))
        world.cycle()
        world.dispatch()
        all_in(State.RUNNING, made_of)
    assert raised == []
    return made_of


def test_what_berth_claims_itself_is_not_foreign(
    world: World, bare: str, work: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "STORE_S", 0)
    span = PlacementSpan.objects.get(placement__workload=work)
    [claim] = [each for each in world.port.list_device_claims().items if each.workload]
    nth = span.device.uuid.rsplit("-", 1)[1]
    assert claim.devices == (("gpu.nvidia.com", bare, f"gpu-{nth}"),)
    other = made.uuid(bare, 1 - int(nth))
    foreign_pod(world, bare, "device.attributes['gpu.nvidia.com'].type == 'gpu'")
    with watching(world) as raised:
        eventually("the other is held", lambda: held(bare) == {(other, 0, 1000)})
    assert raised == []


def test_what_a_claim_of_berths_was_given_instead_is_held(
    world: World, bare: str, work: Workload
) -> None:
    span = PlacementSpan.objects.get(placement__workload=work)
    here, other = (
        Device.objects.get(id=span.device_id),
        Device.objects.get(node__name=bare, ordinal=1 - span.device.ordinal),
    )
    places = {("d", "p", row.uuid): Place(row.uuid, 0, 0) for row in (here, other)}

    def spans(*rows: Device, workload: str = str(work.id)) -> set[tuple[str, int, int]] | None:
        claimed = Claimed(world.cluster)
        devices = tuple(("d", "p", row.uuid) for row in rows)
        given = DeviceClaimReport("ns", "c", "lab", workload, 1, 0, devices)
        given = replaced(given, installation=settings.BERTH_INSTALLATION)
        claimed.listed([given])
        return claimed.spans(places)

    assert spans(here) == set()
    assert spans(other) == {(str(other.id), 0, 1000)}
    told = Cluster.objects.get().left_out["claims"]
    assert told["first"] == [
        f"the claim c was given {other.uuid} from 0 to 1000, which is not what its pod was placed"
        " on"
    ]
    # Of no live placement: its pod is about to go, or is a stray.
    assert spans(other, workload=str(uuid4())) == {(str(other.id), 0, 1000)}
    assert spans(other, workload="w1") == {(str(other.id), 0, 1000)}
    assert Cluster.objects.get().left_out["claims"]["count"] == 0
    assert Claimed(world.cluster).spans(places) is None
