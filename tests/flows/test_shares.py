"""Shares of GPUs that their nodes cut into four replicas each, on a simulated cluster."""

from collections import Counter
from collections.abc import Iterator

import pytest

from clusters.models import Flavor, FlavorKind, Isolation
from clusters.port import PodPhase
from scheduler.core.lifecycle import State
from scheduler.models import Placement, Workload
from tenants.models import UsageInterval
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


def _states() -> Counter[str]:
    return Counter(Workload.objects.values_list("state", flat=True))
