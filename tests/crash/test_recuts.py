"""A node is cut anew all the same when whoever does it dies, at each step of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from clusters.models import Node
from clusters.port import NodeReport
from controlplane.audit.models import AuditEvent
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.loop.recutting import recuts as loop
from scheduler.models import Operation, OperationKind, Placement, Recut, RecutMode
from scheduler.services import recuts, workloads
from scheduler.services.specs import WorkloadSpec
from tests.crash.conftest import Scene
from tests.crash.rounds import LONG, SHORT, Rounds, over_and_over
from tests.flows.world import spec
from tests.waiting import eventually

SUCCEEDING = ("R1", "R2", "R3", "R8", "R9", "R4", "R5", "R7")
"""R8 and R9 where something runs there that is preempted."""
FAILING = ("R6",)
POINTS = (*SUCCEEDING, *FAILING)
NODE, OTHER = "a100-mig-0", "a100-mig-1"
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

    def plan(self, cuts: recuts.Cuts = CUTS, mode: RecutMode = RecutMode.WAIT) -> None:
        node = Node.objects.get(name=NODE)
        asked = recuts.Asked(node, cuts, mode, now(), now() + timedelta(hours=1), "user:1", "oz")
        recuts.plan(asked=asked, at=now())

    def runs_there(self, command: tuple[str, ...], name: str = "there") -> WorkloadSpec:
        """Work that can only run on the node: the other one with slices takes nothing."""
        self.scene.world.simulator.fault(kind="cordon-node", node=OTHER)
        self.scene.world.sync()
        return spec("a100.3g", command=command, name=name)

    def emptied(self) -> None:
        """What was asked to end there has, and that is seen."""
        held = Placement.objects.filter(node__name=NODE, released_at=None)
        self.scene.world.until(lambda: not held.exists())

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


@pytest.mark.parametrize("point", sorted({*POINTS} - {"R8", "R9"}))
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


@pytest.mark.parametrize("point", ["R8", "R9"])
def test_dying_while_what_runs_there_is_preempted(point: str, scene: Scene) -> None:
    """Before that is settled, it runs on; after, it is asked to end all the same."""
    of = Recutting(scene)
    [victim] = scene.world.submit(of.runs_there(LONG))
    scene.world.until_state(victim, State.RUNNING)
    of.plan(mode=RecutMode.PREEMPT)
    of.die_at(point)
    assert (of.row.state, of.node.cordoned) == ("emptying", True)
    victim.refresh_from_db()
    assert victim.state == (State.RUNNING if point == "R8" else State.PREEMPTING)
    assert Operation.objects.filter(kind=OperationKind.STOP).count() == (point == "R9")
    of.ahead_s = 130
    assert of.go_on() == "emptying"
    of.emptied()
    of.until("done", "failed")
    assert of.row.state == "done"
    of.all_is_as_it_says()
    scene.world.until_state(victim, State.RUNNING)
    assert victim.attempts.get(number=1).outcome == "preempted"
    workloads.cancel(actor=scene.world.ada, workload=victim, at=now())
    scene.end_well()


def test_dying_over_and_over(scene: Scene) -> None:
    """Each round cuts it differently than the one before, and stops what runs there for it."""
    cuts = (CUTS, (*CUTS[:3], {}, *CUTS[4:]), (*CUTS[:4], *CUTS[5:], {}))

    def recutting(of: Rounds) -> None:
        recut = Recutting(scene)
        [victim] = of.submit(recut.runs_there(LONG, f"victim-{of.nth}"))
        scene.world.until_state(victim, State.RUNNING)
        recut.plan(cuts[of.nth % len(cuts)], RecutMode.PREEMPT)
        for point in ("R1", "R2", "R3", "R8", "R9"):
            of.die("recut", point, ahead_s=0)
        recut.ahead_s = of.chance.randint(130, 600)
        assert recut.go_on() == "emptying"
        recut.emptied()
        for point in ("R4", "R5"):
            of.die("recut", point, ahead_s=recut.ahead_s)
        eventually("it is cut", recut.is_cut)
        of.die("recut", "R7", ahead_s=recut.ahead_s)
        recut.until("done", "failed")
        assert recut.row.state == "done"
        recut.all_is_as_it_says()
        assert victim.attempts.get().outcome == "preempted"
        of.cancel(victim)

    over_and_over(scene, recutting, points=SUCCEEDING)


def test_dying_over_and_over_while_it_is_cut_back(scene: Scene) -> None:
    """What runs there now and then is waited for before."""

    def failing(of: Rounds) -> None:
        scene.world.simulator.fault(kind="trouble-cut", node=NODE, how="failed")
        recut = Recutting(scene)
        held = of.nth % 5 == 0
        if held:
            of.submit(recut.runs_there(SHORT, f"there-{of.nth}"))
            scene.world.cycle()
            scene.world.dispatch()
        recut.plan()
        recut.until("emptying")
        recut.ahead_s = of.chance.randint(130, 600)
        if held:
            assert recut.go_on() == "emptying"
            assert recut.node.mig_config == recut.row.config_before
            recut.emptied()
        recut.until("cutting")
        eventually("it has failed", lambda: recut.node.mig_state == "failed")
        of.die("recut", "R6", ahead_s=recut.ahead_s)
        recut.until("done", "failed")
        assert recut.row.state == "failed"
        recut.all_is_as_it_says()

    over_and_over(scene, failing, points=FAILING)
