"""How many of the slices that wait have a span at once: every way to cut every device is tried."""

from collections import Counter
from functools import cache

from scheduler.core.moving.defragment import Proposal
from scheduler.core.plan import Plan
from scheduler.core.snapshot import DeviceMode
from tests.core.reference.portions import SLICES
from tests.core.reference.world import CLUSTERS, World, parts_of

AXIS = 8
"""Memory slices of a device."""
NAMES = tuple(sorted(SLICES))
type Counts = tuple[int, ...]
"""Of slices, in the order of NAMES."""


def check(world: World, made: Proposal, then: Plan) -> None:
    """It counts no slice that has no span, nor one twice; and where all that wait are alike, which
    can't be in each other's way, no other number."""
    wait = _waiting(world)
    before = _most(world, Plan(landings=world.to_land()), wait)
    after = _most(world, then, wait)
    assert made.before.slices <= before, "counted slices before that have no span"
    assert made.after.slices <= after, "counted slices afterwards that have no span"
    assert made.after.slices >= made.before.slices, "took spans from slices that wait"
    if sum(1 for count in wait if count) == 1:
        assert made.before.slices == before, "counted too few slices before"
        assert made.after.slices == after, "counted too few slices afterwards"


def _waiting(world: World) -> Counts:
    """All pods of all that waits, whatever it waits for, and is to land nowhere."""
    wait = Counter[str]()
    for id in world.waiting - {each.workload for each in world.to_land()}:
        (pod_set,) = world.asks[id].pod_sets
        if pod_set.flavors[0] in SLICES:
            wait[pod_set.flavors[0]] += pod_set.count
    return tuple(wait[name] for name in NAMES)


def _most(world: World, made: Plan, wait: Counts) -> int:
    """That have a span in the first cluster once the plan is carried out and all have landed; a
    slice takes a core, and 1 GiB, as all of them do here."""
    then = world.after(made)
    holders = [pod for _, pods in then.stays() for pod in pods]
    holders += [place for each in made.landings for place in each.places]  # type: ignore[misc]
    taken = parts_of(holders)
    nodes, devices = world.takes_new()
    found = {(0,) * len(NAMES)}
    for name, node in nodes.items():
        if world.nodes[name][0] != CLUSTERS[0]:
            continue
        on = [holder for holder in holders if holder.node == name]
        cores = (node.cpu_milli - sum(holder.cpu_milli for holder in on)) // 1000
        memory = (node.memory_mib - sum(holder.memory_mib for holder in on)) // 1024
        here = {(0,) * len(NAMES)}
        for device in node.devices:
            if device.id in devices and device.mode is DeviceMode.MIG_DYNAMIC:
                free = frozenset(range(AXIS)) - {part for id, part in taken if id == device.id}
                here = _sums(here, _cuts(free))
        found = _sums(found, {each for each in here if sum(each) <= min(cores, memory)})
        found = {tuple(map(min, each, wait)) for each in found}
    return max(map(sum, found))


def _sums(some: set[Counts], others: set[Counts] | frozenset[Counts]) -> set[Counts]:
    return {
        tuple(a + b for a, b in zip(one, other, strict=True)) for one in some for other in others
    }


@cache
def _cuts(free: frozenset[int]) -> frozenset[Counts]:
    """The slices that may lie on a device at once, of which these parts are free."""
    found = {(0,) * len(NAMES)}
    for nth, name in enumerate(NAMES):
        width, starts = SLICES[name]
        for start in starts:
            span = frozenset(range(start, start + width))
            if span <= free:
                for rest in _cuts(free - span):
                    found.add(tuple(count + (at == nth) for at, count in enumerate(rest)))
    return frozenset(found)
