"""Work that takes a GPU of several makers runs on each by its own resource."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from django.test import Client
from django.urls import reverse

from clusters.models import Device, Flavor, FlavorKind, Node
from scheduler.core.lifecycle import State
from scheduler.models import Placement
from tests.flows.world import World, build, spec
from tests.simulation import simulation

MACHINE = {"count": 1, "cpu_milli": 64_000, "memory_mib": 262_144}
POOLS = [
    {"name": "amd", **MACHINE, "maker": "amd", "gpus": 1,
     "product": "AMD_Instinct_MI300X_OAM", "gpu_memory_mib": 196_608},
    {"name": "intel", **MACHINE, "maker": "intel", "gpus": 1,
     "product": "Max_1550", "gpu_memory_mib": 131_072},
    {"name": "unlabelled", **MACHINE, "maker": "amd", "gpus": 2},
]  # fmt: skip


@pytest.fixture
def mixed(transactional_db: None, tmp_path: Path) -> Iterator[World]:
    """Two makers' nodes, and one of which no label tells what it has."""
    pools = tmp_path / "mixed.json"
    pools.write_bytes(orjson.dumps(POOLS))
    with simulation(layout=str(pools)) as simulator:
        world = build(simulator)
        for name, model in (("mi300x", "AMD_Instinct_MI300X_OAM"), ("max", "Max_1550")):
            world.flavors[name] = Flavor.objects.create(
                name=name, kind=FlavorKind.WHOLE, model=model
            )
            world.quota(world.vision, name, 4)
        yield world


def test_each_runs_by_the_resource_of_its_nodes_maker(mixed: World) -> None:
    told = set(Device.objects.values_list("node__name", "model", "memory_mib"))
    assert told == {
        ("amd-0", "AMD_Instinct_MI300X_OAM", 196_608),
        ("intel-0", "Max_1550", 131_072),
        ("unlabelled-0", "AMD-unknown", 0),
    }
    one = spec("mi300x", command=("sleep", "60"))
    [pods] = one.pod_sets
    either = (replace(pods, flavors=("mi300x", "max")),)
    made = mixed.submit(*(replace(one, name=name, pod_sets=either) for name in ("w1", "w2")))
    for workload in made:
        mixed.until_state(workload, State.RUNNING)
    on = dict(Placement.objects.values_list("node__name", "node__gpu_resource"))
    assert on == {"amd-0": "amd.com/gpu", "intel-0": "gpu.intel.com/xe"}
    held = {report.node: report.resources for report in mixed.observe()}
    assert held == {"amd-0": (("amd.com/gpu", 1),), "intel-0": (("gpu.intel.com/xe", 1),)}


def test_the_inventory_says_what_no_label_tells(mixed: World, client: Client) -> None:
    client.force_login(mixed.ada.user)
    page = client.get(reverse("cluster-detail", args=["north"])).content.decode()
    assert "No label says of 1 node what its GPUs are" in page
    assert "unlabelled-0 (model)" in page
    Node.objects.filter(name="unlabelled-0").update(gone_at=mixed.cluster.created_at)
    page = client.get(reverse("cluster-detail", args=["north"])).content.decode()
    assert "No label says" not in page
