"""A node is cut anew all the same when whoever does it dies, at each step of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from clusters.models import Node
from clusters.port import NodeReport
from controlplane.audit.models import AuditEvent
from controlplane.kernel.clock import now
from scheduler.loop import recuts as loop
from scheduler.models import Recut, RecutMode
from scheduler.services import recuts
from tests.crash.conftest import Scene
from tests.kube.waiting import eventually

POINTS = ("R1", "R2", "R3", "R4", "R5", "R6", "R7")
NODE = "a100-mig-0"
CUTS: tuple[Mapping[str, int], ...] = ({"3g.40gb": 2},) * 4 + ({"1g.10gb": 7},) + ({},) * 3


@dataclass
class Recutting:
    """`ahead_s` is how much later it is than the clock says."""

    scene: Scene
    ahead_s: int = field(default=0)

    @property
    def row(self) -> Recut:
        return Recut.objects.get()

    @property
    def node(self) -> NodeReport:
        found = self.scene.world.port.read_node(name=NODE)
        assert found is not None
        return found

    def plan(self) -> None:
        node = Node.objects.get(name=NODE)
        asked = recuts.Asked(
            node, CUTS, RecutMode.WAIT, now(), now() + timedelta(hours=1), "user:1", "oz"
        )
        recuts.plan(asked=asked, at=now())

    def go_on(self) -> str:
        at = now() + timedelta(seconds=self.ahead_s)
        world = self.scene.world
        loop.carry_on(port=world.port, cluster=world.cluster, at=lambda: at)
        world.sync()
        return self.row.state

    def until(self, *states: str) -> None:
        eventually(f"it is {' or '.join(states)}", lambda: self.go_on() in states)

    def die_at(self, point: str) -> None:
        self.scene.children.run("recut", crash=point, ahead_s=self.ahead_s)


@pytest.mark.parametrize("point", POINTS)
def test_dying_at(point: str, scene: Scene) -> None:
    of = Recutting(scene)
    fails = point == "R6"
    if fails:
        scene.world.simulator.fault(kind="trouble-cut", node=NODE, how="failed")
    of.plan()
    if point > "R3":
        of.until("emptying")
        of.ahead_s = 130
    if fails:
        of.until("cutting")
        eventually("it has failed", lambda: of.node.mig_state == "failed")
    if point == "R7":
        of.until("cutting")
        eventually("it is cut", lambda: of.node.mig_state == "success")
    of.die_at(point)
    if point <= "R3":
        of.until("emptying")
        of.ahead_s = 130
    of.until("done", "failed")
    assert of.row.state == ("failed" if fails else "done")
    node, row = of.node, of.row
    wanted = recuts.counted(row.before if fails else row.wanted)
    assert dict(node.mig_counts) == dict(wanted[0])
    assert recuts.counted(recuts.cut_now(node=row.node)) == wanted
    assert (node.cordoned, node.recut, node.schedulable) == (False, "", True)
    told = [event.action for event in AuditEvent.objects.filter(action__startswith="recut.")]
    assert len(told) == len(set(told)), "a step was told twice"
    scene.end_well()
