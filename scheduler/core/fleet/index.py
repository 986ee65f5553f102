"""Where is room? Nodes by what is free on them, so that a search touches the few that matter.

A pool is a sorted list of (level, free cores, rank) of nodes. What the level counts depends on the
pool; the rank numbers nodes by cluster, name and id, so that every tie has one answer:
fewest left over, then tightest in cores, then first by name. (With random ties the same rules pack
worse by several percent: shared GPUs, Weng et al., "Beware of Fragmentation", USENIX ATC 2023.)
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple, Self

from scheduler.core.node import mig, replicas
from scheduler.core.node.fit import Room
from scheduler.core.ordered import Ordered
from scheduler.core.snapshot import (
    DeviceMode,
    DeviceView,
    FlavorKind,
    FlavorView,
    Isolation,
)
from scheduler.core.units import ClusterId, DeviceId, FlavorId, NodeId

Entry = tuple[int, int, int]

_HARDWARE = attrgetter("model", "mode", "shares", "replicas", "slices")


class Free(StrEnum):
    """What a pool's level counts on a node."""

    CPU = "cpu"  # nothing: 0 for a node without devices, else 1 + empty devices
    EMPTY = "empty"  # devices with nothing on them
    PART = "part"  # the most that a share may ask of one device in part use; an entry a device
    SLICES = "slices"  # free slices of the profile
    MASK = "mask"  # bits in use of one device that is cut on demand; an entry a device


class Key(NamedTuple):
    """What a pool is about."""

    cluster: ClusterId
    free: Free
    model: str = ""
    profile: str = ""
    shares: Isolation | None = None


class Pool(Ordered[Entry]):
    """The nodes of one kind, sorted by what is free. `total` sums the levels (cores for CPU);
    `number` is that of its key in the index. Of many pools nothing but the total is asked for.
    """

    __slots__ = ("_counts", "free", "key", "number", "total")

    def __init__(self, key: Key, entries: Iterable[Entry] = (), *, number: int) -> None:
        super().__init__(entries)
        self.key = key
        self.free = key.free
        self.number = number
        self.total = sum(map(self._measure, self._entries))
        self._counts: dict[int, int] | None = None  # of entries, by level

    def add(self, entry: Entry) -> None:
        self._come.append(entry)  # as `super` does: a call for each would be felt
        self.total += self._measure(entry)
        if self._counts is not None:
            self._counts[entry[0]] = self._counts.get(entry[0], 0) + 1

    def discard(self, entry: Entry) -> None:
        super().discard(entry)
        self.total -= self._measure(entry)
        if self._counts is not None:
            self._counts[entry[0]] -= 1

    def twin(self) -> Self:
        twin = super().twin()
        twin._counts = None if self._counts is None else dict(self._counts)
        return twin

    def ranks(self, level: int, cpu_milli: int) -> Iterator[int]:
        """Nodes with at least that level and cores, least left over first."""
        entries = self.entries
        at = bisect_left(entries, (level, cpu_milli))
        while at < len(entries):
            level, cpu, rank = entries[at]
            if cpu < cpu_milli:
                at = bisect_left(entries, (level, cpu_milli), at)
            else:
                yield rank
                at += 1

    def ranks_at(self, level: int, cpu_milli: int) -> Iterator[int]:
        """Nodes of exactly that level with at least those cores, tightest first."""
        entries = self.entries
        at = bisect_left(entries, (level, cpu_milli))
        while at < len(entries) and entries[at][0] == level:
            yield entries[at][2]
            at += 1

    def ranks_from_empty(self, level: int, cpu_milli: int) -> Iterator[int]:
        """As `ranks`, most left over first; nodes without devices still come before others."""
        entries, levels = self.entries, [each for each, _ in self.levels() if each >= level]
        for each in levels if self.free is Free.CPU else reversed(levels):
            end = bisect_left(entries, (each + 1,))
            least = bisect_left(entries, (each, cpu_milli))
            while least < end:
                begin = bisect_left(entries, entries[end - 1][:2])
                yield from [rank for _, _, rank in entries[begin:end]]
                end = begin

    def levels(self) -> Iterator[tuple[int, int]]:
        """Each level present, ascending, and how many entries have it. Counted once, then kept up:
        each search for victims asks it."""
        if self._counts is None:
            self._counts = dict(Counter(level for level, _, _ in self.entries))
        return ((level, many) for level, many in sorted(self._counts.items()) if many)

    def largest(self) -> int:
        """The highest level of one node; the most free cores (`_milli`) for a pool of kind CPU."""
        if self.free is Free.CPU:
            return max((cpu for _, cpu, _ in self.entries), default=0)
        return self.entries[-1][0] if self.entries else 0

    def _measure(self, entry: Entry) -> int:
        return max(0, entry[1]) if self.free is Free.CPU else entry[0]


Entries = list[tuple[int, Entry]]
"""Each in the pool of that number."""


class _Slot(NamedTuple):
    """The numbers of the pools that a usable device can stand in."""

    mode: DeviceMode
    whole: int
    part: int | None
    slices: tuple[tuple[int, int], ...]
    replicas: int


_Slots = tuple[int, tuple[DeviceId, ...], tuple[_Slot, ...]]
"""Of a node: its pool of kind CPU, its usable devices, and the pools of each."""


class Index:
    """Pools over the rooms of a draft; `refresh` a room after each change."""

    __slots__ = (
        *("_alike", "_entries", "_hardware", "_numbers", "_of_flavor", "_places", "_pools"),
        *("_slots", "clusters", "rooms"),
    )

    def __init__(self, *, rooms: Iterable[tuple[ClusterId, Room, bool]]) -> None:
        """`rooms` in the order of nodes; those that are not usable have no rank."""
        self.rooms: list[Room] = []
        self.clusters: list[ClusterId] = []
        self._places: dict[NodeId, int] = {}
        self._hardware: list[tuple[DeviceView, ...]] = []
        self._slots: list[_Slots] = []
        self._alike: dict[tuple[object, ...], tuple[_Slot, ...]] = {}
        self._entries: list[Entries] = []
        self._pools: list[Pool] = []
        self._numbers: dict[Key, int] = {}
        self._of_flavor: dict[tuple[ClusterId, FlavorId], tuple[Pool, ...]] = {}
        for cluster, room, usable in rooms:
            self._append(cluster, room, usable=usable)

    def twin(self, rooms: Mapping[NodeId, Room]) -> "Index":
        """Another over these rooms of the same nodes; those that are not as here have to be
        renewed."""
        twin = self.beside()
        twin.rooms = [rooms[node] for node in self._places]
        for room, like in zip(twin.rooms, self.rooms, strict=True):
            room.rank = like.rank
        return twin

    def beside(self) -> "Index":
        """Another over the same rooms; each that is to be another one has to be renewed."""
        beside = copy(self)
        beside.rooms, beside._pools = self.rooms[:], [pool.twin() for pool in self._pools]
        beside._numbers, beside._of_flavor = dict(self._numbers), {}
        beside._alike, beside._slots = dict(self._alike), self._slots[:]
        beside._entries, beside._hardware = self._entries[:], self._hardware[:]
        return beside

    def extend(self, rooms: Iterable[tuple[ClusterId, Room]]) -> None:
        """With rooms of more nodes, all usable, after those that there are; in this one alone,
        not in that which it is beside."""
        self.clusters, self._places = self.clusters[:], dict(self._places)
        for cluster, room in rooms:
            self._append(cluster, room, usable=True)

    def _append(self, cluster: ClusterId, room: Room, *, usable: bool) -> None:
        rank = len(self.rooms)
        self.rooms.append(room)
        self.clusters.append(cluster)
        self._places[room.node.id] = rank
        room.rank = rank if usable else -1
        self._hardware.append(room.node.devices)
        self._slots.append(self._slots_for(cluster, room))
        self._entries.append([])
        self._enter(rank, self._levels(room) if usable else [])

    def renew(self, room: Room, *, usable: bool) -> None:
        """Its node may have changed too, and the room be another than before."""
        rank = self._places[room.node.id]
        self.rooms[rank] = room
        room.rank = rank if usable else -1
        if self._hardware[rank] is not room.node.devices:
            self._hardware[rank] = room.node.devices
            self._slots[rank] = self._slots_for(self.clusters[rank], room)
        self._enter(rank, self._levels(room) if usable else [])

    def ranked(self) -> Iterator[tuple[ClusterId, Room]]:
        """The usable nodes, in order."""
        for cluster, room in zip(self.clusters, self.rooms, strict=True):
            if room.rank >= 0:
                yield cluster, room

    def refresh(self, room: Room) -> tuple[Entries, Entries]:
        """The room has changed: what it had in which pool before, and what it has now."""
        rank = room.rank
        if rank < 0:
            return [], []
        old, new = self._entries[rank], self._levels(room)
        self._enter(rank, new)
        return old, new

    def _enter(self, rank: int, entries: Entries) -> None:
        """In the place of those that the node had."""
        old = self._entries[rank]
        if entries == old:
            return
        pools = self._pools
        for pool, entry in old:
            pools[pool].discard(entry)
        for pool, entry in entries:
            pools[pool].add(entry)
        self._entries[rank] = entries

    def pools_for(self, *, cluster: ClusterId, flavor: FlavorView) -> tuple[Pool, ...]:
        """Where pods of the flavor may go in the cluster, preferred first."""
        found = self._of_flavor.get((cluster, flavor.id))
        if found is None:
            found = tuple(self._pools[self._number(key)] for key in _keys(cluster, flavor))
            self._of_flavor[cluster, flavor.id] = found
        return found

    def of_nodes(self, *, pools: Iterable[int], ranks: Iterable[int]) -> dict[int, Pool]:
        """A pool beside each of these numbers, with what those nodes have in it. The caller keeps
        them up."""
        found: dict[int, list[Entry]] = {pool: [] for pool in pools}
        for rank in ranks:
            for pool, entry in self._entries[rank]:
                if pool in found:
                    found[pool].append(entry)
        return {pool: Pool(self._pools[pool].key, of, number=pool) for pool, of in found.items()}

    def pools(self) -> dict[Key, tuple[int, tuple[Entry, ...]]]:
        """The total and the entries of each pool that has any."""
        return {p.key: (p.total, tuple(p.entries)) for p in self._pools if p.entries}

    def _number(self, key: Key) -> int:
        """Of its pool, which is made if there is none."""
        found = self._numbers.setdefault(key, len(self._pools))
        if found == len(self._pools):
            self._pools.append(Pool(key, number=found))
        return found

    def _slots_for(self, cluster: ClusterId, room: Room) -> _Slots:
        usable = [device for device in room.devices.values() if device.usable]
        ids = tuple(device.id for device in usable)
        return self._number(Key(cluster, Free.CPU)), ids, self._of(cluster, usable)

    def _of(self, cluster: ClusterId, devices: Sequence[DeviceView]) -> tuple[_Slot, ...]:
        """One for each device; nodes of like devices share theirs."""
        alike = (cluster, *map(_HARDWARE, devices))
        found = self._alike.get(alike)
        if found is None:
            found = self._alike[alike] = self._slots_of(cluster, devices)
        return found

    def _slots_of(self, cluster: ClusterId, devices: Sequence[DeviceView]) -> tuple[_Slot, ...]:
        slots = []
        for device in devices:
            model = device.model
            shares = device.shares if device.mode is DeviceMode.WHOLE else None
            free = Free.MASK if device.mode is DeviceMode.MIG_DYNAMIC else Free.EMPTY
            part = self._number(Key(cluster, Free.PART, model, shares=shares)) if shares else None
            slices = tuple(
                (
                    self._number(Key(cluster, Free.SLICES, model, piece.profile)),
                    mig.mask(piece.span),
                )
                for piece in device.slices
            )
            whole = self._number(Key(cluster, free, model, shares=shares))
            slots.append(_Slot(device.mode, whole, part, slices, device.replicas))
        return tuple(slots)

    def _levels(self, room: Room) -> Entries:
        cpu_pool, devices, slots = self._slots[room.rank]
        cpu, rank, taken, broken = room.cpu_milli, room.rank, room.taken, room.broken
        levels: Entries = []
        counts: dict[int, int] = {}
        empty_devices = 0
        for device, (mode, whole, part, slices, cut) in zip(devices, slots, strict=True):
            if broken and device in broken:
                continue
            bits = taken[device]
            if not bits:
                empty_devices += 1
            if mode is DeviceMode.WHOLE:
                if not bits:
                    counts[whole] = counts.get(whole, 0) + 1
                elif part is not None:
                    left = replicas.largest_milli(bits=bits, replicas=cut)
                    if left:
                        levels.append((part, (left, cpu, rank)))
            elif mode is DeviceMode.MIG_DYNAMIC:
                levels.append((whole, (bits, cpu, rank)))
            else:
                for pool, slice_bits in slices:
                    if not slice_bits & bits:
                        counts[pool] = counts.get(pool, 0) + 1
        for pool, level in counts.items():
            levels.append((pool, (level, cpu, rank)))
        levels.append((cpu_pool, (1 + empty_devices if slots else 0, cpu, rank)))
        return levels


def _keys(cluster: ClusterId, flavor: FlavorView) -> list[Key]:
    model = flavor.model
    if flavor.kind is FlavorKind.CPU:
        return [Key(cluster, Free.CPU)]
    if flavor.kind is FlavorKind.WHOLE:
        # Devices that can't be shared first: the others are kept for shares.
        return [Key(cluster, Free.EMPTY, model, shares=s) for s in (None, *Isolation)]
    if flavor.kind is FlavorKind.SHARE:
        shares = flavor.isolation
        return [Key(cluster, free, model, shares=shares) for free in (Free.PART, Free.EMPTY)]
    return [
        Key(cluster, Free.SLICES, model, flavor.profile),
        Key(cluster, Free.MASK, model),
    ]
