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
from tests.crash.rounds import Rounds, over_and_over
from tests.kube.waiting import eventually

SUCCEEDING = ("R1", "R2", "R3", "R4", "R5", "R7")
FAILING = ("R6",)
POINTS = (*SUCCEEDING, *FAILING)
NODE = "a100-mig-0"
CUTS: tuple[Mapping[str, int], ...] = ({"3g.40gb": 2},) * 4 + ({"1g.10gb": 7},) + ({},) * 3


@dataclass
class Recutting:
    """`ahead_s` is how much later it is than the clock says."""

    scene: Scene
    ahead_s: int = field(default=0)

    @property
    def row(self) -> Recut:
        return Recut.objects.latest("planned_at")

    @property
    def node(self) -> NodeReport:
        found = self.scene.world.port.read_node(name=NODE)
        assert found is not None
        return found

    def plan(self, cuts: recuts.Cuts = CUTS) -> None:
        node = Node.objects.get(name=NODE)
        asked = recuts.Asked(
            node, cuts, RecutMode.WAIT, now(), now() + timedelta(hours=1), "user:1", "oz"
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

    def is_cut(self) -> bool:
        """As asked: what the manager says alone may be of the cut before."""
        node, (wanted, *_) = self.node, recuts.counted(self.row.wanted)
        return node.mig_state == "success" and dict(node.mig_counts) == dict(wanted)

    def all_is_as_it_says(self) -> None:
        """The last one has ended: the node, the rows and the audit trail agree with it."""
        node, row = self.node, self.row
        wanted = recuts.counted(row.before if row.state == "failed" else row.wanted)
        assert dict(node.mig_counts) == dict(wanted[0])
        assert recuts.counted(recuts.cut_now(node=row.node)) == wanted
        assert (node.cordoned, node.recut, node.schedulable) == (False, "", True)
        events = AuditEvent.objects.filter(action__startswith="recut.", after__recut=str(row.id))
        told = [event.action for event in events]
        assert told
        assert len(told) == len(set(told)), "a step was told twice"


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
    of.all_is_as_it_says()
    scene.end_well()


def test_dying_over_and_over(scene: Scene) -> None:
    """Each round cuts it differently than the one before."""
    cuts = (CUTS, (*CUTS[:3], {}, *CUTS[4:]), (*CUTS[:4], *CUTS[5:], {}))

    def recutting(of: Rounds) -> None:
        recut = Recutting(scene)
        recut.plan(cuts[of.nth % len(cuts)])
        for point in ("R1", "R2", "R3"):
            of.die("recut", point, ahead_s=0)
        recut.until("emptying")
        recut.ahead_s = of.chance.randint(130, 600)
        for point in ("R4", "R5"):
            of.die("recut", point, ahead_s=recut.ahead_s)
        eventually("it is cut", recut.is_cut)
        of.die("recut", "R7", ahead_s=recut.ahead_s)
        recut.until("done", "failed")
        assert recut.row.state == "done"
        recut.all_is_as_it_says()

    over_and_over(scene, recutting, points=SUCCEEDING)


def test_dying_over_and_over_while_it_is_cut_back(scene: Scene) -> None:
    def failing(of: Rounds) -> None:
        scene.world.simulator.fault(kind="trouble-cut", node=NODE, how="failed")
        recut = Recutting(scene)
        recut.plan()
        recut.until("emptying")
        recut.ahead_s = of.chance.randint(130, 600)
        recut.until("cutting")
        eventually("it has failed", lambda: recut.node.mig_state == "failed")
        of.die("recut", "R6", ahead_s=recut.ahead_s)
        recut.until("done", "failed")
        assert recut.row.state == "failed"
        recut.all_is_as_it_says()

    over_and_over(scene, failing, points=FAILING)
