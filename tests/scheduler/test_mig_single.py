"""Nodes whose MIG slices go by the name of whole devices: the plugin's strategy "single"."""

import pytest

from clusters.models import DeviceSlice, Node
from clusters.port import DeviceReport, NodeReport
from clusters.services import inventory
from scheduler.loop.watching import foreign
from scheduler.loop.watching.hardware import arrange
from scheduler.selectors import hardware
from tenants.access import Actor
from tests import factories
from tests.scheduler.test_foreign import listed, on, stored

pytestmark = pytest.mark.django_db


def sync(model: str, profile: str, slices: int) -> Node:
    """What is stored of such a node that shows so many slices."""
    report = NodeReport(
        "n1", "n1", "u1", ready=True, schedulable=True, cpu_milli=1000, memory_mib=1024,
        devices=(DeviceReport(0, model, 0, "mig-static"),),
        mig_counts={profile: slices}, mig_single=True,
    )  # fmt: skip
    inventory.sync(
        cluster=factories.cluster(), reports=[report], complete=True, arrange=arrange,
        at=factories.AT,
    )  # fmt: skip
    return Node.objects.get()


@pytest.mark.parametrize(
    ("model", "profile", "slices", "devices"),
    [
        ("A100-SXM4-40GB", "1g.5gb", 56, 8),
        ("A100-SXM4-40GB", "1g.10gb", 8, 2),
        ("H200", "3g.71gb", 16, 8),
        ("H100-80GB-HBM3", "7g.80gb", 3, 3),
        ("A100-SXM4-40GB", "1g.5gb", 55, 8),
    ],
)
def test_it_has_the_fewest_devices_that_its_slices_are_cut_from(
    model: str, profile: str, slices: int, devices: int
) -> None:
    node = sync(model, profile, slices)
    assert (node.mig_single, node.devices.count()) == (True, devices)
    assert DeviceSlice.objects.filter(profile=profile).count() == slices


@pytest.mark.parametrize(
    ("model", "profile", "slices"),
    [
        ("B900", "1g.99gb", 7),
        ("A100-SXM4-80GB", "7g.80gb", 2048),
        ("A100-SXM4-80GB", "2g.20gb", 0),
    ],
)
def test_what_makes_no_sense_is_not_guessed_and_told(
    model: str, profile: str, slices: int
) -> None:
    node = sync(model, profile, slices)
    assert node.devices.count() == 1
    assert not DeviceSlice.objects.exists()
    [shown] = hardware.nodes(actor=Actor(factories.user("oz")), cluster_id=node.cluster_id)
    assert shown.untold == "slices"


def test_what_foreign_pods_hold_of_it_are_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "STORE_S", 0)
    node = sync("A100-SXM4-40GB", "1g.5gb", 7)
    pods = listed(node.cluster)
    pods.note(on(node, {"nvidia.com/gpu": 2}), gone=False)
    pods.store_when_due()
    assert len(stored(node)) == 2
    assert all(end - start == 1 for _, start, end in stored(node))
