"""Gangs of several pod sets: all or nothing, and together where they have to be."""

from collections.abc import Hashable, Iterable, Sequence

from scheduler.core.plan import Place, Plan
from scheduler.core.snapshot import HeldView, PendingView, PodSetView
from tests.core.reference.tried import Case
from tests.core.reference.world import World, begun


def check(world: World, made: Plan) -> None:
    for admit in made.admits:
        _check_whole(world, world.asks[admit.workload], admit.places)
    for workload, places in (*begun(made), *((e.workload, e.places) for e in made.landings)):
        held = world.holding.get(workload)
        grows = held is not None and any(g.workload == workload for g in made.grows)
        beside = held.placements if held is not None and grows else ()
        _check_together(world, world.asks[workload], [*beside, *places])
    for keep in made.keeps:
        _check_together(world, world.asks[keep.workload], keep.places)


def of_set(pods: Iterable[HeldView | Place], pod_set: PodSetView) -> list[HeldView | Place]:
    """In order of their ranks."""
    return sorted((p for p in pods if p.pod_set == pod_set.id), key=lambda pod: pod.rank)


def domain(world: World, node: str, level: str) -> Hashable:
    """In which the node is, by its labels and those of the levels around; None for in none."""
    depth = world.levels.index(level) + 1
    labels = world.nodes[node][1].topology[:depth]
    return (world.nodes[node][0], *labels) if len(labels) == depth and labels[-1] else None


def _check_whole(world: World, asked: PendingView, places: Sequence[Place]) -> None:
    """As many of each set as it starts with at least, and in their order."""
    assert [place.rank for place in places] == list(range(len(places)))
    in_turn = [p for pod_set in asked.pod_sets for p in of_set(places, pod_set)]
    assert in_turn == [*places], "pods of a set that it does not ask for, or out of turn"
    for pod_set in asked.pod_sets:
        pods = len(of_set(places, pod_set))
        assert pod_set.min_count <= pods <= pod_set.count, "a gang in part"
        world.tried[Case.PART] += pods < pod_set.count
    world.tried[Case.SEVERAL] += len(asked.pod_sets) > 1


def _check_together(world: World, asked: PendingView, pods: Sequence[HeldView | Place]) -> None:
    topology = asked.topology
    if topology is not None and topology.required:
        _check_one_domain(world, pods, topology.level)
        world.tried[Case.DOMAIN] += len(pods) > 1
    for pod_set in asked.pod_sets:
        within, own = pod_set.topology, of_set(pods, pod_set)
        if within is None or not within.required:
            continue
        size = within.group_size or max(1, len(own))
        for begin in range(0, len(own), size):
            _check_one_domain(world, own[begin : begin + size], within.level)
        world.tried[Case.GROUPS] += len(own) > size


def _check_one_domain(world: World, pods: Sequence[HeldView | Place], level: str) -> None:
    on = {pod.node for pod in pods if pod.node in world.nodes}
    domains = {domain(world, node, level) for node in on}
    assert None not in domains, f"on a node that is in no {level}"
    assert len(domains) < 2, f"in more than one {level}"
