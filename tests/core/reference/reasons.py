"""What those that wait are told: of who holds them back, and of room that there is not."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator

from scheduler.core.plan import Place, Plan
from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import (
    DeviceMode,
    DeviceView,
    FlavorKind,
    HeldView,
    NodeView,
    PendingView,
)
from tests.core.build import BY_NAME
from tests.core.reference.gangs import domain
from tests.core.reference.quotas import waits
from tests.core.reference.tried import Case
from tests.core.reference.world import CLUSTERS, POOLS, World, begun

WANTS_ROOM = {
    ReasonCode.NO_FREE_CAPACITY,
    ReasonCode.NO_FIT,
    ReasonCode.WAITING_FOR_NODE,
    ReasonCode.CLUSTER_UNAVAILABLE,
    ReasonCode.HARDWARE_HELD,
    ReasonCode.EXCEEDS_CAPACITY,
    ReasonCode.NO_MATCHING_FLAVOR,
}

type Fleet = tuple[dict[str, NodeView], dict[str, DeviceView]]


def check(world: World, made: Plan) -> None:
    for id, reason in made.reasons().items():
        asked = world.asks[id]
        held, shut = bool(world.held_above(asked.project)), id in world.shut
        assert (reason.code is ReasonCode.QUEUE_HELD) == held, f"{id}: is its queue held?"
        assert (reason.code is ReasonCode.GATE) == (shut and not held), f"{id}: is its gate shut?"
        if reason.code is ReasonCode.HARDWARE_HELD:
            _check_held(world, made, asked, fits="flavor" in dict(reason.numbers))
        if reason.code in WANTS_ROOM:
            _check_has_none(world, made, asked)


def _check_held(world: World, made: Plan, asked: PendingView, *, fits: bool) -> None:
    """Nowhere that it accepts anything new starts; or, where it is told that it `fits`: were no
    hardware held, nor any node out, there would be room for it."""
    assert world.held & {*CLUSTERS, *POOLS}, "told of hardware that is held, and none is"
    if not fits:
        open_in = {world.nodes[name][0] for name in world.takes_new()[0]}
        assert not open_in & {*(asked.clusters or CLUSTERS)}, "one that it accepts is open"
    elif _is_whole(asked):
        nodes = {name: node for name, (_, node) in world.nodes.items()}
        devices: dict[str, DeviceView] = {
            device.id: device
            for cluster, node in world.nodes.values()
            for device in node.devices
            if device.id not in dict(node.foreign)
            and (device.usable or f"{cluster} {device.model}" in world.held)
        }
        there = nodes, devices
        assert has_room(world, there, asked, holders(world, made)), "nobody holds its room back"


def _check_has_none(world: World, made: Plan, asked: PendingView) -> None:
    """Once all has started that starts; said of whole devices, of which those of a node can be
    counted, and where none are promised to others, or kept."""
    if _is_whole(asked) and not (made.keeps or made.landings or made.grows or waits(made)):
        room = has_room(world, world.takes_new(), asked, holders(world, made))
        world.tried[Case.NO_ROOM] += 1
        assert not room, f"{asked.id} is told of room that is not there, and there is some"


def _is_whole(asked: PendingView) -> bool:
    """And of one flavor: of several it may lack something else of each. Nor of one pod set in
    groups, for which domains would have to be shared out."""
    if any(each.topology and each.topology.group_size for each in asked.pod_sets):
        return False
    kinds = [BY_NAME[flavor].kind for pod_set in asked.pod_sets for flavor in pod_set.flavors]
    return kinds == [FlavorKind.WHOLE]


def holders(world: World, made: Plan) -> Iterator[HeldView | Place]:
    """What is on its way back holds still."""
    for held in world.holding.values():
        yield from held.placements
    for _, places in begun(made):
        yield from places


def has_room(
    world: World, there: Fleet, asked: PendingView, holders: Iterable[HeldView | Place]
) -> bool:
    """In one cluster, or domain of it, for the least of it, of one flavor."""
    (pod_set,) = asked.pod_sets
    within = [t.level for t in (asked.topology, pod_set.topology) if t is not None and t.required]
    nodes, devices = there
    cores, memory, taken = Counter[str](), Counter[str](), set[str]()
    for holder in holders:
        cores[holder.node] += holder.cpu_milli
        memory[holder.node] += holder.memory_mib
        taken |= {device for device, _ in holder.spans}
    for flavor in pod_set.flavors:
        pods = Counter[Hashable]()
        for name, node in nodes.items():
            free = [
                device.id
                for device in node.devices
                if device.id in devices
                and device.id not in taken
                and device.mode is DeviceMode.WHOLE
                and device.model == BY_NAME[flavor].model
            ]
            where = [domain(world, name, level) for level in within]
            if None in where:
                continue
            pods[world.nodes[name][0], *where] += min(
                len(free) // pod_set.gpu_count,
                (node.cpu_milli - cores[name]) // pod_set.cpu_milli,
                (node.memory_mib - memory[name]) // pod_set.memory_mib,
            )
        if any(count >= pod_set.min_count for count in pods.values()):
            return True
    return False
