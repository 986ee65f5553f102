"""Which node had better be cut anew, and how: for what waits and no slice fits, or towards what
the advice says. A proposal only; nothing here decides.

A node is cut as a whole, since its MIG manager needs all of its devices unused. Devices that are
not in MIG mode stay whole. Which nodes can be cut at all the caller says. Of several the one that
loses least is chosen: an idle one, then the one whose work has run for least since its checkpoint.
One with work that can only be waited for comes after all of those, and only where the caller would
wait and all of that work is sure to end, by its run-time limit; never one with pods of others.
"""

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from dataclasses import dataclass

from scheduler.core.held.losses import lost_milli_s
from scheduler.core.held.runs import ends_at
from scheduler.core.node.ways import Way, placed, served, serving, slices_of
from scheduler.core.quota.devices import Devices
from scheduler.core.snapshot import (
    ClusterView,
    DeviceMode,
    DeviceView,
    FlavorKind,
    FlavorView,
    HoldingView,
    NodeView,
    PendingView,
    Snapshot,
)
from scheduler.core.units import ONE_MILLI, ClusterId, FlavorId, NodeId, WorkloadId


@dataclass(frozen=True, slots=True)
class Pool:
    """A stock in a cluster. `cuttable` are nodes that can be cut anew, of that stock or not;
    others are left as they are, and what is free there is there all the same. Where no node can be
    emptied at once, one will do of which all work that is waited for is sure to have ended
    `empty_by` then; None: none will."""

    cluster: ClusterId
    model: str
    cuttable: frozenset[NodeId]
    empty_by: int | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What it takes to empty a node: who is stopped, and how many thousandths of devices x seconds
    each loses, where a slice is part of one; who can only be waited for, as it may not be
    preempted, or is on its way out, and when it ends at the latest, None where nobody knows; and
    whether pods of others hold devices there."""

    node: NodeId
    stops: tuple[tuple[WorkloadId, int], ...] = ()
    waits_for: tuple[tuple[WorkloadId, int | None], ...] = ()
    foreign: bool = False

    @property
    def lost_milli_s(self) -> int:
        return sum(lost for _, lost in self.stops)

    @property
    def at_once(self) -> bool:
        """Nobody has to be waited for."""
        return self.empty_at == 0

    @property
    def empty_at(self) -> int | None:
        """When the last of those who are waited for has ended, at the latest: 0 where there are
        none, None where nobody knows."""
        ends = [end for _, end in self.waits_for if end is not None]
        if self.foreign or len(ends) < len(self.waits_for):
            return None
        return max(ends, default=0)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A node's devices by ordinal, as they are cut and as they had better be. `serves` is how many
    slices more of those that are asked for it has then."""

    cost: Cost
    now: tuple[Way, ...]
    ways: tuple[Way, ...]
    serves: int


def cost(*, snapshot: Snapshot, node: NodeView) -> Cost:
    stops, waits_for = [], []
    devices = Devices(snapshot.flavors)
    for held in snapshot.holding:
        if not any(place.node == node.id and place.spans for place in held.placements):
            continue
        if held.preemptible and not held.releasing:
            stops.append((held.id, _lost(held, devices, snapshot.at)))
        else:
            waits_for.append((held.id, ends_at(held, snapshot.at)))
    waits_for.sort(key=lambda each: each[0])
    return Cost(node.id, tuple(sorted(stops)), tuple(waits_for), bool(node.foreign))


def cut_so(*, node: NodeView) -> tuple[Way, ...]:
    """How its devices are cut now, by ordinal."""
    return tuple(map(_way, sorted(node.devices, key=lambda each: each.ordinal)))


def _way(device: DeviceView) -> Way:
    return tuple(sorted(Counter(slice.profile for slice in device.slices).items()))


def for_what_waits(
    *, snapshot: Snapshot, pool: Pool, for_room: Collection[WorkloadId], waited_s: int = 0
) -> Proposal | None:
    """By which recut of one node the most of what waits for slices there, and has for so long,
    would find some; None when there is enough, or nothing helps. `for_room` is what room is all
    that is missing for: what waits for quota, say, would not start on new slices either."""
    there = next((each for each in snapshot.clusters if each.id == pool.cluster), None)
    if there is None or not there.usable:
        return None
    asked = _asked(snapshot, pool, for_room, waited_s)
    free = {
        node.id: _free(snapshot, node, pool.model)
        for node in there.nodes
        if node.usable and _cut_devices(node, pool.model)
    }
    if not any(asked[name] > sum(each[name] for each in free.values()) for name in asked):
        return None

    def made(node: NodeView) -> Proposal | None:
        elsewhere = sum((each for id, each in free.items() if id != node.id), Counter[str]())
        need = asked - elsewhere
        price, now = cost(snapshot=snapshot, node=node), cut_so(node=node)
        in_use = _in_use(snapshot, node, pool.model, of={id for id, _ in price.stops})
        cut = [way for way in now if way]
        ways = serving(model=pool.model, now=cut, first=in_use, then=need)
        both = in_use + need
        gain = served(ways=ways, asked=both) - served(ways=cut, asked=both)
        return Proposal(price, now, _merged(now, ways), gain) if gain > 0 else None

    return _cheapest(_cuttable(there, pool), made, pool=pool, at=snapshot.at)


def towards(*, snapshot: Snapshot, pool: Pool, wanted: Mapping[Way, int]) -> Proposal | None:
    """The next recut on the way to `wanted`, which says how many devices of the pool are to be cut
    in each way, whether or not their nodes can be now. None when they are, or come to the same
    slices."""
    cluster = next((each for each in snapshot.clusters if each.id == pool.cluster), None)
    if cluster is None:
        return None
    want, there = Counter(wanted), Counter(_ways_there(cluster, pool.model))
    missing, surplus = want - there, there - want
    if slices_of(missing.elements()) == slices_of(surplus.elements()):
        return None

    def made(node: NodeView) -> Proposal | None:
        now = cut_so(node=node)
        cut = [way for way in now if way]
        given = sorted((Counter(cut) & surplus).elements())
        taken = sorted(missing.elements())[: len(given)]
        if slices_of(given[: len(taken)]) == slices_of(taken):
            return None  # what a cluster shows of it would be the same
        kept = Counter(cut) - Counter(given[: len(taken)])
        ways = placed(now=cut, ways=[*kept.elements(), *taken])
        price = cost(snapshot=snapshot, node=node)
        return Proposal(price, now, _merged(now, ways), len(taken))

    return _cheapest(_cuttable(cluster, pool), made, pool=pool, at=snapshot.at)


def _ways_there(cluster: ClusterView, model: str) -> list[Way]:
    """Of each device that is cut and no sick one. Of a pool that is held all look like that."""
    return [
        way
        for node in cluster.nodes
        for device in _cut_devices(node, model)
        if (way := _way(device)) and (device.usable or model in cluster.held_models)
    ]


def _cheapest(
    nodes: Iterable[NodeView], made: Callable[[NodeView], Proposal | None], *, pool: Pool, at: int
) -> Proposal | None:
    found = [
        one
        for node in nodes
        if (one := made(node)) is not None
        and one.cost.empty_at is not None
        and one.cost.empty_at <= (pool.empty_by or 0)
    ]
    return min(found, key=lambda one: _order(one, at), default=None)


def _order(of: Proposal, at: int) -> tuple[bool, int, bool, int, NodeId]:
    """Who is waited for comes last; then by the GPU time that is lost, and in which the devices
    take nothing new, at most."""
    wait_s = max(0, (of.cost.empty_at or 0) - at)
    milli_s = of.cost.lost_milli_s + wait_s * ONE_MILLI * len(of.now)
    return wait_s > 0, milli_s, bool(of.cost.stops), -of.serves, of.cost.node


def _cuttable(cluster: ClusterView, pool: Pool) -> list[NodeView]:
    """Those of the pool on which work may be placed, so that they are cut for some."""
    return [
        node
        for node in cluster.nodes
        if node.usable and node.id in pool.cuttable and _cut_devices(node, pool.model)
    ]


def _cut_devices(node: NodeView, model: str) -> list[DeviceView]:
    """Its devices of that stock that are cut when somebody says so."""
    return [
        device
        for device in node.devices
        if device.mode is DeviceMode.MIG_STATIC and device.model == model
    ]


def _merged(now: tuple[Way, ...], ways: Iterable[Way]) -> tuple[Way, ...]:
    """With the devices that stay whole."""
    rest = iter(ways)
    return tuple(next(rest) if way else way for way in now)


def _lost(held: HoldingView, devices: Devices, at: int) -> int:
    return lost_milli_s(
        sevenths_milli=devices.of((each.flavor, each.amount_milli) for each in held.placements),
        started_at=held.started_at,
        checkpointed_at=held.checkpointed_at,
        at=at,
    )


def _asked(
    snapshot: Snapshot, pool: Pool, for_room: Collection[WorkloadId], waited_s: int
) -> Counter[str]:
    """Slices by profile that who has waited for so long, and could start there, asks for first."""
    flavors = {flavor.id: flavor for flavor in snapshot.flavors}
    held = {queue.project for queue in snapshot.queues if queue.held}
    asked: Counter[str] = Counter()
    for waits in snapshot.pending:
        if waits.submitted_at > snapshot.at - waited_s:
            continue
        if waits.id not in for_room or waits.project in held:
            continue
        if _could_start(waits, pool.cluster, snapshot.at):
            for pods in waits.pod_sets:
                profile = _profile(flavors, pods.flavors, pool.model)
                asked[profile] += pods.min_count * pods.gpu_count
    del asked[""]
    return asked


def _could_start(waits: PendingView, cluster: ClusterId, at: int) -> bool:
    return (
        waits.not_before <= at
        and waits.waits_for is None
        and waits.gate is None
        and (not waits.clusters or cluster in waits.clusters)
    )


def _profile(
    flavors: Mapping[FlavorId, FlavorView], accepted: tuple[FlavorId, ...], model: str
) -> str:
    """Of the first flavor, if that is of slices of the model; "" for any other."""
    first = flavors.get(accepted[0]) if accepted else None
    if first is None or first.kind is not FlavorKind.MIG or first.model != model:
        return ""
    return first.profile


def _free(snapshot: Snapshot, node: NodeView, model: str) -> Counter[str]:
    devices = _cut_devices(node, model)
    found = Counter(
        slice.profile for device in devices if device.usable for slice in device.slices
    )
    return found - _in_use(snapshot, node, model) - _profiles(devices, node.foreign)


def _in_use(
    snapshot: Snapshot, node: NodeView, model: str, *, of: Container[WorkloadId] | None = None
) -> Counter[str]:
    """By those workloads, or by all."""
    spans = [
        pair
        for held in snapshot.holding
        if of is None or held.id in of
        for place in held.placements
        if place.node == node.id
        for pair in place.spans
    ]
    return _profiles(_cut_devices(node, model), spans)


def _profiles(
    devices: Iterable[DeviceView], spans: Iterable[tuple[object, object]]
) -> Counter[str]:
    """Of the slices at those spans."""
    profile = {
        (device.id, slice.span): slice.profile for device in devices for slice in device.slices
    }
    return Counter(profile[at] for at in spans if at in profile)
