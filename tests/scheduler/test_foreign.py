"""Pods that are not Berth's on nodes of the fleet: what they hold is not given away."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from clusters.models import Cluster, ForeignSpan, Node
from clusters.port import PodPhase, PodReport
from controlplane.kernel import clock
from scheduler.core.lifecycle import State
from scheduler.loop.observing import observe
from scheduler.loop.watching import foreign, strays
from scheduler.loop.watching.foreign import ForeignPods
from scheduler.models import Placement, PlacementSpan
from tests import factories
from tests.flows.world import World, spec
from tests.scheduler.watching import LONG, all_in, start, watching, world
from tests.waiting import eventually

__all__ = ["world"]

NVIDIA = "nvidia.com/gpu"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "STORE_S", 0)
    monkeypatch.setattr(foreign, "AGAIN_S", 0)


def manifest(name: str, node: str, **requests: str) -> dict[str, Any]:  # Any: JSON
    resources = {"requests": requests, "limits": requests}
    container = {"name": "main", "image": "other", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"nodeName": node, "containers": [container]},
    }


def on(node: Node, resources: dict[str, int], uid: str = "u1") -> PodReport:
    return PodReport(
        "default", f"other-{uid}", uid, "1", PodPhase.RUNNING, node=node.name,
        resources=tuple(resources.items()),
    )  # fmt: skip


def listed(cluster: Cluster) -> ForeignPods:
    """Of a cluster whose pods have been listed: there were none."""
    pods = ForeignPods(cluster)
    pods.clear()
    return pods


def stored(node: Node) -> list[tuple[int, int, int]]:
    """Ordinal, start and end of what they are taken to hold there."""
    rows = ForeignSpan.objects.filter(device__node=node).order_by("device__ordinal", "span")
    return [(row.device.ordinal, row.span.lower, row.span.upper) for row in rows]


def test_cores_memory_and_gpus_are_counted_and_given_back(world: World) -> None:
    asked = {"cpu": "3", "memory": "5Gi", NVIDIA: "2"}
    node = Node.objects.get(name="h100-0")
    with watching(world) as raised:
        world.simulator.call("POST", PODS, manifest("other", node.name, **asked))
        counted = {"foreign_cpu_milli": 3000, "foreign_memory_mib": 5120}
        eventually("it is counted", lambda: Node.objects.filter(pk=node.pk, **counted).exists())
        assert stored(node) == [(6, 0, 1000), (7, 0, 1000)]
        [there] = world.submit(spec("h100", name="w", gpus=6, command=LONG))
        Node.objects.exclude(pk=node.pk).update(schedulable=False)
        Cluster.objects.update(inventory_rev=F("inventory_rev") + 1)
        [too_many] = world.submit(spec("h100", name="v", gpus=3, command=LONG))
        world.cycle()
        world.dispatch()
        all_in(State.RUNNING, there)
        taken = PlacementSpan.objects.filter(released_at=None).values_list(
            "device__ordinal", flat=True
        )
        assert sorted(taken) == [0, 1, 2, 3, 4, 5]
        all_in(State.PENDING, too_many)
        world.simulator.call("DELETE", f"{PODS}/other")
        eventually("it is given back", lambda: not ForeignSpan.objects.exists())
    assert raised == []


def test_they_make_way_where_our_own_pod_was_put_meanwhile(world: World) -> None:
    node = Node.objects.get(name="h100-0")
    pods = listed(world.cluster)
    pods.note(on(node, {NVIDIA: 1}), gone=False)
    pods.store_when_due()
    assert stored(node) == [(7, 0, 1000)]
    [work] = start(world, command=LONG)
    placement = Placement.objects.get(workload=work)
    factories.span(placement, node.devices.get(ordinal=7), 0, 1000)
    pods.store_when_due()
    assert stored(node) == [(6, 0, 1000)]


def test_who_found_no_room_takes_what_our_own_pod_leaves(world: World) -> None:
    node = Node.objects.get(name="h100-0")
    [work] = start(world, command=LONG)
    placement = Placement.objects.get(workload=work)
    held = PlacementSpan.objects.values_list("device", flat=True)
    for device in node.devices.exclude(pk__in=held):
        factories.span(placement, device)
    pods = listed(world.cluster)
    pods.note(on(node, {NVIDIA: 1}), gone=False)
    pods.store_when_due()
    assert stored(node) == []
    at = clock.now()
    ended = observe.Fact(placement.id, ended_at=at, succeeded=True, exit_code=0, released=True)
    observe.record(facts=[ended], at=at)
    pods.store_when_due()
    assert stored(node) == [(7, 0, 1000)]


def test_only_nodes_where_something_changed_are_looked_at_until_the_next_list(
    world: World,
) -> None:
    one, other = Node.objects.filter(name__in=("h100-0", "h100-1")).order_by("name")
    pods = listed(world.cluster)
    for node in (one, other):
        pods.note(on(node, {NVIDIA: 1}, node.name), gone=False)
    pods.store_when_due()
    ForeignSpan.objects.all().delete()
    pods.note(on(one, {NVIDIA: 2}, one.name), gone=False)
    pods.store_when_due()
    assert (len(stored(one)), stored(other)) == (2, [])
    pods.clear()
    pods.note(on(other, {NVIDIA: 1}, other.name), gone=False)
    pods.store_when_due()
    assert (stored(one), len(stored(other))) == ([], 1)


def test_a_pod_told_again_as_it_was_is_no_change(world: World) -> None:
    node = Node.objects.get(name="h100-0")
    pods = listed(world.cluster)
    pods.note(on(node, {NVIDIA: 1}), gone=False)
    pods.store_when_due()
    ForeignSpan.objects.all().delete()
    pods.note(on(node, {NVIDIA: 1}), gone=False)
    pods.store_when_due()
    assert stored(node) == []


def test_slices_and_shares_are_counted_by_their_own_names(world: World) -> None:
    cut = factories.node(world.cluster, "cut", gpus=1, mode="mig-static")
    for start_, end in ((0, 1), (1, 2)):
        factories.device_slice(
            cut.devices.get(), "1g.10gb+me" if end == 2 else "1g.10gb", start_, end
        )
    shared = factories.node(
        world.cluster, "shared", gpus=1, model="NVIDIA-A10", share_isolation="none",
        share_replicas=4, share_resource="nvidia.com/gpu.shared",
    )  # fmt: skip
    pods = listed(world.cluster)
    pods.note(on(cut, {"nvidia.com/mig-1g.10gb.me": 1, "example.com/nic": 2}), gone=False)
    pods.note(on(shared, {"nvidia.com/gpu.shared": 2}, "u2"), gone=False)
    pods.store_when_due()
    assert stored(cut) == [(0, 1, 2)]
    assert stored(shared) == [(0, 0, 250), (0, 250, 500)]
    pods.note(on(shared, {}, "u2"), gone=True)
    pods.store_when_due()
    assert (stored(shared), stored(cut)) == ([], [(0, 1, 2)])


def test_a_new_list_forgets_whom_it_does_not_name(world: World) -> None:
    node = Node.objects.get(name="h100-0")
    pods = listed(world.cluster)
    pods.note(on(node, {NVIDIA: 1}), gone=False)
    pods.store_when_due()
    rev = Cluster.objects.get().inventory_rev
    pods.store_when_due()
    assert Cluster.objects.get().inventory_rev == rev, "nothing has changed"
    pods.clear()
    pods.store_when_due()
    assert stored(node) == []
    assert Cluster.objects.get().inventory_rev > rev


def test_nothing_is_taken_from_them_before_the_pods_are_listed(world: World) -> None:
    node = Node.objects.get(name="h100-0")
    before = listed(world.cluster)
    before.note(on(node, {NVIDIA: 1}), gone=False)
    before.store_when_due()
    anew = ForeignPods(world.cluster)  # as when a watch broke
    anew.devices_changed()
    anew.store_when_due()
    assert stored(node) == [(7, 0, 1000)]


def test_who_bears_our_labels_and_has_no_placement_holds_what_it_holds(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strays, "AGE", timedelta(0))
    node = Node.objects.get(name="h100-0")
    [ours] = start(world, command=LONG)
    forged = manifest("forged", node.name, **{NVIDIA: "2"})
    names = ("installation", "workload", "attempt", "rank")
    forged["metadata"]["labels"] = dict(
        zip((f"berth.dev/{name}" for name in names), ("berth", "x", "1", "0"), strict=True)
    )
    world.simulator.call("POST", PODS, forged)
    with watching(world) as raised:
        eventually("it is counted", lambda: len(stored(node)) == 2)
        all_in(State.RUNNING, ours)
        world.simulator.call("DELETE", f"{PODS}/forged")
        eventually("it is given back", lambda: not ForeignSpan.objects.exists())
    assert raised == []
