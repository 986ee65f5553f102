"""What of each flavor is free: the figures that the submit form and the cluster pages show."""

import pytest

from clusters.models import Cluster, ClusterState, DeviceMode, Flavor, FlavorKind, Node
from scheduler.core.lifecycle import State
from scheduler.models import Workload
from scheduler.selectors import capacity
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import release

A100 = "NVIDIA-A100-SXM4-40GB"


@pytest.fixture
def north(cast: Cast) -> Cluster:
    return factories.cluster()


def amounts(flavor: Flavor) -> tuple[int, int]:
    """(total, free) over usable clusters, in thousandths; zeros when there is none."""
    usable = [one for one in capacity.by_flavor_and_cluster(flavors=[flavor]) if one.usable]
    return sum(one.total_milli for one in usable), sum(one.free_milli for one in usable)


def hold(
    cast: Cast, node: Node, flavor: Flavor, ordinal: int | None, start: int = 0, end: int = 1000
) -> Workload:
    made = factories.workload(cast.detection, cast.ben, [flavor], state=State.RUNNING)
    placed = factories.place(made, node, flavor)
    if ordinal is not None:
        factories.span(placed, node.devices.get(ordinal=ordinal), start, end)
    return made


def test_a_whole_device_is_free_without_any_live_span(cast: Cast, north: Cluster) -> None:
    flavor, node = factories.flavor(), factories.node(north, gpus=4)
    held = hold(cast, node, flavor, 0)
    hold(cast, node, flavor, 1, 0, 250)
    assert amounts(flavor) == (4000, 2000)
    release(held.placements.get())
    assert amounts(flavor) == (4000, 3000)


def test_static_slices_are_free_one_by_one(cast: Cast, north: Cluster) -> None:
    flavor = factories.mig_flavor()
    node = factories.node(north, gpus=2, mode=DeviceMode.MIG_STATIC)
    for ordinal in (0, 1):
        device = node.devices.get(ordinal=ordinal)
        factories.device_slice(device, "1g.10gb", 0, 1)
        factories.device_slice(device, "1g.10gb", 1, 2)
        factories.device_slice(device, "3g.40gb", 4, 8)
    hold(cast, node, flavor, 0, 1, 2)
    assert amounts(flavor) == (4000, 3000)
    assert amounts(factories.flavor()) == (0, 0)


def test_devices_cut_on_demand_offer_what_still_fits(cast: Cast, north: Cluster) -> None:
    one = factories.flavor("a100-1g.5gb", FlavorKind.MIG, model=A100, profile="1g.5gb")
    half = factories.flavor("a100-3g.20gb", FlavorKind.MIG, model=A100, profile="3g.20gb")
    node = factories.node(north, gpus=2, model=A100, mode=DeviceMode.MIG_DYNAMIC)
    assert amounts(one) == (14_000, 14_000)
    assert amounts(half) == (4000, 4000)
    # One slice in the middle of the lower half: that half is lost to 3g.20gb.
    hold(cast, node, one, 0, 2, 3)
    assert amounts(one) == (14_000, 13_000)
    assert amounts(half) == (4000, 3000)


def test_shares_sum_up_free_thousandths_of_their_isolation(cast: Cast, north: Cluster) -> None:
    sliced = factories.flavor("a10-shared", FlavorKind.SHARE, model="NVIDIA-A10")
    limited = factories.flavor(
        "a10-limited", FlavorKind.SHARE, model="NVIDIA-A10", isolation="memory"
    )
    node = factories.node(
        north, gpus=2, model="NVIDIA-A10", share_isolation="none", share_replicas=10
    )
    hold(cast, node, sliced, 0, 0, 250)
    hold(cast, node, sliced, 0, 250, 300)
    assert amounts(sliced) == (2000, 1700)
    assert amounts(limited) == (0, 0)


def test_of_a_shared_device_that_is_free_which_its_replicas_still_give(
    cast: Cast, north: Cluster
) -> None:
    shared = factories.flavor("a10-shared", FlavorKind.SHARE, model="NVIDIA-A10")
    node = factories.node(
        north, gpus=2, model="NVIDIA-A10", share_isolation="none", share_replicas=3
    )
    hold(cast, node, shared, 0, 0, 333)
    assert amounts(shared) == (2000, 1666)
    hold(cast, node, shared, 0, 333, 999)
    assert amounts(shared) == (2000, 1000)


def test_what_foreign_pods_hold_is_not_free(cast: Cast, north: Cluster) -> None:
    whole, node = factories.flavor(), factories.node(north, gpus=4)
    slice, cut = factories.mig_flavor(), factories.node(north, "cut", mode=DeviceMode.MIG_STATIC)
    device = cut.devices.get(ordinal=0)
    for start in (0, 1):
        factories.device_slice(device, "1g.10gb", start, start + 1)
    factories.foreign_span(device, 0, 1)
    hold(cast, node, whole, 0)
    for ordinal in (0, 3):  # one is held twice, as until one of the two has left
        factories.foreign_span(node.devices.get(ordinal=ordinal))
    assert amounts(whole) == (4000, 2000)
    assert amounts(slice) == (2000, 1000)


def test_cores_are_what_nobody_holds(cast: Cast, north: Cluster) -> None:
    cpu = factories.cpu_flavor()
    node = factories.node(north, gpus=0, cpu_milli=96_000, foreign_cpu_milli=6000)
    hold(cast, node, cpu, None)
    assert amounts(cpu) == (90_000, 86_000)


@pytest.mark.parametrize("state", [ClusterState.NEW, ClusterState.DEGRADED, ClusterState.LOST])
def test_clusters_that_take_nothing_new_count_for_nothing(
    cast: Cast, north: Cluster, state: ClusterState
) -> None:
    flavor = factories.flavor()
    factories.node(north, gpus=4)
    Cluster.objects.update(state=state)
    assert amounts(flavor) == (0, 0)
    [known] = capacity.by_flavor_and_cluster(flavors=[flavor])
    assert (known.total_milli, known.usable) == (4000, False)


@pytest.mark.parametrize("model", ["", "NVIDIA-H100-80GB-HBM3"])
def test_held_clusters_and_pools_count_for_nothing(cast: Cast, north: Cluster, model: str) -> None:
    flavor = factories.flavor()
    factories.node(north, gpus=4)
    factories.close(north, model)
    assert amounts(flavor) == (0, 0)


@pytest.mark.parametrize(
    "fault", [{"ready": False}, {"schedulable": False}, {"gone_at": factories.AT}]
)
def test_unusable_nodes_count_for_nothing(
    cast: Cast, north: Cluster, fault: dict[str, object]
) -> None:
    flavor = factories.flavor()
    factories.node(north, "good", gpus=1)
    bad = factories.node(north, "bad", gpus=4)
    Node.objects.filter(id=bad.id).update(**fault)
    assert amounts(flavor) == (1000, 1000)


def test_sick_and_gone_devices_count_for_nothing(cast: Cast, north: Cluster) -> None:
    flavor, node = factories.flavor(), factories.node(north, gpus=4)
    node.devices.filter(ordinal=0).update(usable=False)
    node.devices.filter(ordinal=1).update(gone_at=factories.AT)
    assert amounts(flavor) == (2000, 2000)


def test_a_flavor_is_in_the_clusters_that_have_its_hardware(cast: Cast, north: Cluster) -> None:
    west = factories.cluster("west")
    whole, cut, cpu = factories.flavor(), factories.mig_flavor(), factories.cpu_flavor()
    twentieth = factories.flavor("a100-1g.5gb", FlavorKind.MIG, model=A100, profile="1g.5gb")
    factories.node(north, gpus=1)
    node = factories.node(west, "cut", gpus=1, mode=DeviceMode.MIG_STATIC)
    factories.device_slice(node.devices.get(), "1g.10gb", 0, 1)
    ready = factories.node(west, "w1", gpus=1)
    Node.objects.filter(id=ready.id).update(ready=False)  # it is there all the same
    found = capacity.places(flavors=[whole, cut, cpu, twentieth])
    assert found == {whole.id: ("north", "west"), cut.id: ("west",), cpu.id: ("north", "west")}
    Node.objects.filter(id=ready.id).update(gone_at=factories.AT)
    assert capacity.places(flavors=[whole]) == {whole.id: ("north",)}
