"""`reshape` over the rooms of a cluster: whose slices go where, so that one more can be cut.

Moved is only who holds one slice and no more. Of many devices the emptiest are looked at.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.index import Free, Pool
from scheduler.core.held.victims import Held
from scheduler.core.node import mig, reshape
from scheduler.core.node.fit import Room
from scheduler.core.plan import Place
from scheduler.core.snapshot import (
    DeviceMode,
    DeviceView,
    FlavorKind,
    FlavorView,
    HeldView,
    PodSetView,
)
from scheduler.core.units import NodeId, Span

MOST_DEVICES = 256
_ALL_COMPUTE = 7 * MOST_DEVICES
"""No board has more than 7 compute slices: what moves is bounded by what it loses."""


@dataclass(frozen=True, slots=True)
class Reshaped:
    """`place` is free once each of `movers` has gone to its place in `homes`, one by one."""

    place: Place
    movers: tuple[Held, ...]
    homes: tuple[Place, ...]


def reshaped(
    *,
    draft: Draft,
    pools: tuple[Pool, ...],
    pod_set: PodSetView,
    flavor: FlavorView,
    movable: Callable[[NodeId], Iterator[Held]],
) -> Reshaped | None:
    """What moves for a pod of one slice, least compute first; None when nothing helps, cores and
    memory too. `pools` are where to look, `movable` says who on a node may move. The draft stays
    as it is."""
    mix = draft.slices.mix(flavor)
    if mix is None or flavor.kind is not FlavorKind.MIG or pod_set.gpu_count != 1:
        return None
    found = list(_devices(draft, pools, flavor))
    at = {(room.node.id, device.id): nth for nth, (room, device) in enumerate(found)}
    slices: list[list[reshape.Held]] = [[] for _ in found]
    owners: dict[tuple[int, Span], Held] = {}
    for node in {room.node.id for room, _ in found}:
        for held in movable(node):
            of = held.holding.placements
            if len(of) != 1 or len(of[0].spans) != 1:
                continue
            ((on, span),) = of[0].spans
            if (node, on) in at and of[0].flavor in draft.flavors:
                nth = at[node, on]
                profile = draft.flavors[of[0].flavor].profile
                slices[nth].append(reshape.Held(profile, span, movable=True))
                owners[nth, span] = held
    for (room, device), of_device in zip(found, slices, strict=True):
        bits = room.taken[device.id] & ~sum(mig.mask(held.span) for held in of_device)
        of_device += (
            reshape.Held("", Span(bit, bit + 1), movable=False)
            for bit in range(bits.bit_length())
            if bits >> bit & 1
        )
    moves = reshape.reshape(
        mix=mix, profile=flavor.profile, devices=slices, most_compute=_ALL_COMPUTE
    )
    if moves is None or not moves.moves:
        return None
    movers = tuple(owners[move.device, move.span] for move in moves.moves)
    homes = tuple(
        _moved(held.holding.placements[0], *found[move.to], move.to_span)
        for held, move in zip(movers, moves.moves, strict=True)
    )
    room, device = found[moves.device]
    asked = Place(
        pod_set=pod_set.id,
        rank=0,
        node=room.node.id,
        flavor=flavor.id,
        amount_milli=1000,
        cpu_milli=pod_set.cpu_milli,
        memory_mib=pod_set.memory_mib,
        spans=((device.id, moves.span),),
    )
    return Reshaped(asked, movers, homes)


def _devices(
    draft: Draft, pools: tuple[Pool, ...], flavor: FlavorView
) -> Iterator[tuple[Room, DeviceView]]:
    """Those that are cut on demand, the emptiest first."""
    ranks = {rank for pool in pools if pool.free is Free.MASK for *_, rank in pool.entries}
    found = [
        (room.taken[device.id].bit_count(), rank, nth, room, device)
        for rank in ranks
        for room in (draft.index.rooms[rank],)
        for nth, device in enumerate(room.devices.values())
        if device.usable
        and device.mode is DeviceMode.MIG_DYNAMIC
        and device.model == flavor.model
        and device.id not in room.broken
    ]
    found.sort(key=lambda each: each[:3])
    for *_, room, device in found[:MOST_DEVICES]:
        yield room, device


def _moved(placement: HeldView, room: Room, device: DeviceView, span: Span) -> Place:
    return Place(
        pod_set=placement.pod_set,
        rank=0,
        node=room.node.id,
        flavor=placement.flavor,
        amount_milli=placement.amount_milli,
        cpu_milli=placement.cpu_milli,
        memory_mib=placement.memory_mib,
        spans=((device.id, span),),
    )
