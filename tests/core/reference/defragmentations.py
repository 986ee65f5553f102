"""Planned moves: what they may cost, and that they free what they are told to."""

from scheduler.core.moving.defragment import Proposal
from scheduler.core.plan import Plan, Preempt
from scheduler.core.reasons import PreemptRule
from tests.core.reference import slices
from tests.core.reference.moves import check_mover, lost_milli_s
from tests.core.reference.starts import check_may_go, may_start
from tests.core.reference.tried import Case
from tests.core.reference.world import CLUSTERS, World, parts_of


def as_plan(world: World, made: Proposal) -> Plan:
    """One that does the same: whoever moves is its own."""
    landings = tuple(step.landing for step in made.steps)
    return Plan(
        preempts=tuple(
            Preempt(each.workload, each.workload, PreemptRule.CONSOLIDATE) for each in landings
        ),
        landings=(*world.to_land(), *landings),
    )


def check(world: World, made: Proposal, budget_milli_s: int) -> None:
    """Of the first cluster."""
    lost, now = 0, Plan(landings=world.to_land())
    for step in made.steps:
        held = world.holding[step.landing.workload]
        assert not held.releasing, "moved, and is on its way back"
        assert may_start(world, held.id), "moved, and may not start again"
        assert held.cluster == step.landing.cluster == CLUSTERS[0], "moved to another cluster"
        assert step.frees in {pod.node for pod in held.placements}, "moved off where it is not"
        assert step.lost_milli_s == lost_milli_s(held, world.at), "loses more or less than it says"
        check_may_go(world, held)
        check_mover(world, held, step.landing)
        lost += step.lost_milli_s
    assert lost <= budget_milli_s, "more work is lost than may be"
    assert made.before.free_nodes == _free_nodes(world, now), "counted another room before"
    then = as_plan(world, made)
    slices.check(world, made, then)
    assert made.after.free_nodes == _free_nodes(world, then), "counted another room afterwards"
    more_nodes = made.after.free_nodes > made.before.free_nodes
    more_slices = made.after.slices > made.before.slices
    assert not made.steps or more_nodes or more_slices, "for nothing"
    world.tried[Case.NODES_GAINED] += more_nodes
    world.tried[Case.SLICES_GAINED] += more_slices
    staying = [pod for _, pods in world.after(then).stays() for pod in pods]
    landing = [place for each in then.landings for place in each.places]
    found = world.overbooked([*staying, *landing])
    assert not found, f"once all have landed: {found}"


def _free_nodes(world: World, made: Plan) -> int:
    """Those with devices that take new work, and of which nothing holds any then."""
    nodes, devices = world.takes_new()
    staying = [pod for _, pods in world.after(made).stays() for pod in pods]
    landing = [place for each in made.landings for place in each.places]
    taken = {device for device, _ in parts_of([*staying, *landing])}
    return sum(
        any(device.id in devices for device in node.devices)
        and not any(device.id in taken for device in node.devices)
        for name, node in nodes.items()
        if world.nodes[name][0] == CLUSTERS[0]
    )
