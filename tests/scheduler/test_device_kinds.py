"""Nodes that go from counted devices to published ones, and back; and devices that change nodes:
nothing new starts beside what may be the same device."""

from dataclasses import replace

import pytest

from clusters.adapters.kubernetes.resource_slices import resource_slice
from clusters.models import Cluster, Device, ForeignSpan, Node
from clusters.port import DeviceReport, Listing, NodeReport
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.loop.watching.foreign import ForeignPods
from scheduler.loop.watching.hardware import Hardware
from scheduler.loop.watching.readers import SliceList
from scheduler.models import Operation, Placement, PlacementSpan
from tests import factories
from tests.kube import resource_slices as made
from tests.scheduler.stage import Stage
from tests.scheduler.test_foreign import at_once, on

__all__ = ["at_once"]

pytestmark = pytest.mark.django_db
BARE = NodeReport("n1", "n1", "u1", True, True, 1000, 1000)
COUNTED = replace(BARE, devices=tuple(DeviceReport(n, "H100-80GB-HBM3", 1) for n in (0, 1)))


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.cluster()


@pytest.fixture
def hardware(cluster: Cluster) -> Hardware:
    return Hardware(cluster, now)


def publish(hardware: Hardware, *nodes: str, gpus: tuple[int, ...] = (0, 1)) -> None:
    """Those of machine n1, told of each of those nodes."""
    bodies = [made.published(node, [made.whole("n1", n) for n in gpus]) for node in nodes]
    slices = tuple(resource_slice(body) for body in bodies)
    hardware.slices_listed(SliceList(Listing(slices, "1")))


def occupied(device: Device) -> Placement:
    """By work that runs there."""
    project = factories.project(factories.tenant())
    flavor = factories.flavor()
    work = factories.workload(project, factories.user("ada"), [flavor], state=State.RUNNING)
    placement = factories.place(work, device.node, flavor)
    factories.span(placement, device)
    return placement


def ended(placement: Placement) -> None:
    at = now()
    PlacementSpan.objects.filter(placement=placement).update(released_at=at)
    Placement.objects.filter(pk=placement.pk).update(released_at=at, ended_at=at)


def there(node: str = "n1") -> dict[str, tuple[int, bool]]:
    """Ordinal and whether it is usable, by uuid."""
    rows = Device.objects.filter(node__name=node, gone_at=None)
    return {row.uuid: (row.ordinal, row.usable) for row in rows}


def test_work_on_a_counted_device_keeps_it_and_nothing_new_starts_beside(
    hardware: Hardware,
) -> None:
    publish(hardware)
    hardware.nodes_listed([COUNTED])
    counted = Device.objects.get(ordinal=0)
    work = occupied(counted)
    hardware.nodes_listed([BARE])  # the device plugin is taken away
    publish(hardware, "n1")
    assert there() == {"GPU-n1-0": (1, False), "GPU-n1-1": (2, False)}
    counted.refresh_from_db()
    assert (counted.uuid, counted.usable) == ("", False)
    ended(work)
    publish(hardware, "n1")
    assert there() == {"GPU-n1-0": (1, True), "GPU-n1-1": (2, True)}


def test_work_on_a_certain_device_keeps_it_when_devices_are_counted_again(
    hardware: Hardware,
) -> None:
    hardware.nodes_listed([BARE])
    publish(hardware, "n1")
    certain = Device.objects.get(ordinal=0)
    work = occupied(certain)
    hardware.nodes_listed([COUNTED])
    publish(hardware)
    rows = Device.objects.filter(gone_at=None).order_by("ordinal")
    assert [(row.ordinal, row.uuid, row.usable) for row in rows] == [
        (1, "", False),
        (2, "", False),
    ]
    certain.refresh_from_db()
    assert certain.uuid == "GPU-n1-0"
    publish(hardware, "n1", gpus=(0,))
    hardware.nodes_listed([BARE])
    assert there() == {"GPU-n1-0": (0, True)}
    ended(work)


def test_a_machine_that_comes_back_under_another_name_brings_its_devices(
    hardware: Hardware,
) -> None:
    hardware.nodes_listed([BARE])
    publish(hardware, "n1")
    work = occupied(Device.objects.get(ordinal=0))
    hardware.nodes_listed([replace(BARE, name="n2")])
    publish(hardware, "n2")
    # Who held one may still run: that one is not given away twice.
    assert set(there("n2")) == {"GPU-n1-1"}
    told = Cluster.objects.get().left_out["devices"]
    assert told["first"] == ["n2: GPU-n1-0 is a device of another node"]
    ended(work)
    hardware.nodes_listed([replace(BARE, name="n2")])
    assert set(there("n2")) == {"GPU-n1-0", "GPU-n1-1"}
    assert there("n1") == {}
    assert Cluster.objects.get().left_out["devices"]["count"] == 0


@pytest.mark.usefixtures("at_once")
def test_who_was_given_a_device_by_count_may_have_any_that_a_driver_publishes(
    cluster: Cluster, hardware: Hardware
) -> None:
    hardware.nodes_listed([BARE])
    publish(hardware, "n1")
    device = Device.objects.get(ordinal=1)
    pods = ForeignPods(cluster, lambda: {(str(device.pk), 0, 500)})
    pods.clear()
    pods.note(on(Node.objects.get(), {"nvidia.com/gpu": 1}), gone=False)
    pods.store_when_due()
    rows = ForeignSpan.objects.all()
    assert {(row.device.uuid, row.span.lower, row.span.upper) for row in rows} == {
        ("GPU-n1-0", 0, 1000),
        ("GPU-n1-1", 0, 1000),
    }


def test_a_pod_is_made_as_it_was_placed_or_not_yet(stage: Stage) -> None:
    """It is pinned if it was placed on certain devices, whatever its node tells by now."""
    workload = stage.submit()
    stage.cycle()
    device = Device.objects.filter(spans__placement__workload=workload)
    node = Node.objects.filter(devices__in=list(device))
    for driver, uuid, gone_at in (
        ("gpu.nvidia.com", "", None),
        ("", "GPU-1", None),
        ("gpu.nvidia.com", "GPU-1", now()),
    ):
        Node.objects.filter(pk=node.get().pk).update(device_driver=driver)
        Device.objects.filter(pk=device.get().pk).update(uuid=uuid, gone_at=gone_at)
        stage.dispatch()
        stage.release_claims()
        assert stage.port.pods == {}
        said = Operation.objects.get().last_error
        assert said.startswith("The devices of n1 are not told as when")
    Device.objects.filter(pk=device.get().pk).update(gone_at=None)
    stage.dispatch()
    [request] = stage.port.requests.values()
    assert [(pin.driver, pin.uuid) for pin in request.pins] == [("gpu.nvidia.com", "GPU-1")]
