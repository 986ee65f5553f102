"""Shares of GPUs that their nodes cut into four replicas each, on a simulated cluster."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from clusters.models import Flavor, FlavorKind, Isolation
from clusters.port import PodPhase
from scheduler.core.lifecycle import State
from scheduler.models import Placement, Workload
from tenants.models import Project, UsageInterval
from tests.flows.world import World, build, spec
from tests.simulation import simulation

L4 = "L4"
DEVICES = 8
"""Two nodes of four."""


@pytest.fixture
def south(transactional_db: None) -> Iterator[World]:
    with simulation(layout="demo-south") as simulator:
        world = build(simulator)
        world.flavors["l4.share"] = Flavor.objects.create(
            name="l4.share", kind=FlavorKind.SHARE, model=L4, isolation=Isolation.NONE
        )
        world.quota(world.vision, "l4.share", 16)
        yield world


def test_shares_ask_a_node_for_no_more_replicas_than_it_has(south: World) -> None:
    """Three of 300 thousandths would fit on a device, if not for its four replicas."""
    south.submit(
        *(
            spec("l4.share", gpu_milli=300, name=f"s{n}", command=("sleep", "60"))
            for n in range(3 * DEVICES)
        )
    )
    south.until(lambda: _states()[State.RUNNING] == 2 * DEVICES)

    south.turn()
    assert _states() == {State.RUNNING: 2 * DEVICES, State.PENDING: DEVICES}
    assert {pod.phase for pod in south.observe()} == {PodPhase.RUNNING}
    asked = Counter[str]()
    for pod in south.observe():
        asked[pod.node] += dict(pod.resources)["nvidia.com/gpu.shared"]
    assert set(asked.values()) == {16}
    held = Workload.objects.filter(state=State.PENDING).values_list("reason__code", flat=True)
    assert set(held) == {"no-free-capacity"}


def test_a_share_is_charged_for_what_it_asks(south: World) -> None:
    [workload] = south.submit(spec("l4.share", gpu_milli=300))
    south.until_state(workload, State.SUCCEEDED)
    assert Placement.objects.get().amount_milli == 300
    assert UsageInterval.objects.get().amount_milli == 300


def test_a_share_by_memory_is_charged_for_the_part_that_has_it(south: World) -> None:
    """5 GiB of 24 are 209 thousandths, which one of four replicas holds."""
    Flavor.objects.filter(name="l4.share").update(memory_mib=24_576)
    asked = spec("l4.share")
    pods = replace(asked.pod_sets[0], gpu_memory_mib=5_120)
    [workload] = south.submit(replace(asked, pod_sets=(pods,)))
    south.until_state(workload, State.SUCCEEDED)
    placed = Placement.objects.get()
    assert placed.amount_milli == UsageInterval.objects.get().amount_milli == 209
    [span] = placed.spans.all()
    assert span.span.upper - span.span.lower == 250


def test_work_whose_project_accepts_less_sharing_since_waits_for_that(south: World) -> None:
    [workload] = south.submit(spec("l4.share", gpu_milli=300))
    Project.objects.update(least_isolation=Isolation.MEMORY)
    south.turn()
    workload.refresh_from_db()
    assert workload.state == State.PENDING
    assert (workload.reason or {})["code"] == "isolation"
    Project.objects.update(least_isolation=Isolation.NONE)
    south.until_state(workload, State.SUCCEEDED)


def _states() -> Counter[str]:
    return Counter(Workload.objects.values_list("state", flat=True))
