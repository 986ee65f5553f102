"""Which node and device for a pod, so that what stays free stays usable: prices of gaps.

The fragmentation gradient (Weng et al., "Beware of Fragmentation", USENIX ATC 2023) counts what
the next pod could not use. Two things are added. A gap is counted at its worth (`prices`), so a
share goes where the mix of shares leaves least over in the end. And cores and memory are looked
at as deep as the gap: a node with four empty devices and cores for one pod has lost three.

For a node with gaps g, cores c and memory m, over the expected pods p of weight w (W in sum):

    worth  = sum over g of price(g)
    loss   = sum over p of w(p) * (2 * worth                        if p can't start there
                                   max(0, worth - drawn(p))         if it can)
    drawn  = price(p) * min(c / cores of p, m / memory of p)
    cost   = 6 W (worth before - worth after) + (loss after - loss before) + W * tilt
    tilt   = a little for every device and core left free and for an empty device opened: best fit

The least cost is taken, ties to the lowest rank, then to the fullest device, then to the lowest
number. A pod that fits somewhere is never refused. All in integers. Costs are kept per shape and
node and computed anew only for nodes that have changed since; of nodes alike and not yet touched
only the first is looked at.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import ModuleType
from typing import Final, NamedTuple

import numpy as np

from scheduler.core import plain
from scheduler.core.plain import Ints
from scheduler.core.prices import PRICE, gap_prices
from scheduler.core.units import ONE_MILLI

ANY_MODEL: Final = (1 << 62) - 1

LARGEST: Final = 1 << 36
"""Above it are no cores (`_milli`), no memory (MiB): products stay below 2^62."""

MOST_DEVICES: Final = 64

MOST_MODELS: Final = 62

TOTAL_WEIGHT: Final = 10_000


class Node(NamedTuple):
    """`free`: thousandths per device. `model` is a number below 62, the bit in Shape.models."""

    cpu_milli: int
    memory_mib: int
    model: int
    free: tuple[int, ...]


class Shape(NamedTuple):
    """What a pod asks for: `gpus` whole devices, or `gpu_milli` of one, or no device."""

    cpu_milli: int
    memory_mib: int
    gpus: int = 0
    gpu_milli: int = ONE_MILLI
    models: int = ANY_MODEL

    @property
    def asked_milli(self) -> int:
        return self.gpus * self.gpu_milli

    @property
    def possible(self) -> bool:
        """Whether its quantities are such as a node could have."""
        part = self.gpus == 1 and 0 < self.gpu_milli < ONE_MILLI
        return (
            0 <= self.cpu_milli < LARGEST
            and 0 <= self.memory_mib < LARGEST
            and 0 <= self.gpus <= MOST_DEVICES
            and (self.gpu_milli == ONE_MILLI or part)
            and 0 <= self.models <= ANY_MODEL
        )


class Seat(NamedTuple):
    """The rank of a node, and devices by their number on it."""

    node: int
    devices: tuple[int, ...]


class Packing:
    """What is free on the nodes, and the best seat for a pod. Mutable.

    The rank of a node is its place in `nodes`. Without `compiled` the numpy twin does the work.
    """

    def __init__(self, *, nodes: Iterable[Node], compiled: bool = True) -> None:
        listed = list(nodes)
        width = max((len(node.free) for node in listed), default=0)
        self._kernel = _jit() if compiled else plain
        self._sizes = [len(node.free) for node in listed]
        self._nodes = np.zeros((len(listed), plain.NODE_COLUMNS), np.int64)
        self._free = np.zeros((len(listed), max(width, 1)), np.int64)
        firsts: dict[Node, int] = {}
        for rank, node in enumerate(listed):
            _check_node(rank, node)
            first = firsts.setdefault(node, rank)
            self._nodes[rank, :5] = node.cpu_milli, node.memory_mib, node.model, 0, first
            self._free[rank, : len(node.free)] = node.free
        self._alike: dict[int, list[int]] = {first: [] for first in firsts.values()}
        for rank in range(len(listed) - 1, -1, -1):
            self._alike[firsts[listed[rank]]].append(rank)
        self._rows: dict[Shape, int] = {}
        self._shapes = np.zeros((0, plain.SHAPE_COLUMNS), np.int64)
        self._costs, self._devices, self._stamps = (self._blank(0) for _ in range(3))
        self._mix: dict[Shape, int] = {}
        self._total = 1
        self._seen: Counter[Shape] = Counter()
        self._arrivals = 0
        self._lesson = 1
        self.expect({})

    def expect(self, mix: Mapping[Shape, int]) -> None:
        """Go by these pods from now on: how many of each shape are like to come."""
        asking = {shape: count for shape, count in mix.items() if shape.gpus and count > 0}
        total = sum(asking.values())
        self._mix = {s: max(1, count * TOTAL_WEIGHT // total) for s, count in asking.items()}
        self._total = sum(self._mix.values()) or 1
        demand: Counter[int] = Counter()
        for shape in sorted(asking):
            self._row(shape)
            if shape.gpu_milli < ONE_MILLI:
                demand[shape.gpu_milli] += asking[shape]
        self._worth: Ints = np.array(_prices(tuple(sorted(demand.items()))), np.int64)
        for shape, row in self._rows.items():
            self._describe(shape, row)
        self._stamps[:] = -1
        for rank in range(len(self._nodes)):
            self._measure(rank)

    def see(self, shape: Shape) -> None:
        """A pod has arrived. The mix is learnt from all that have, at each doubling of them.

        From the first on: what the first dozens block decides more than it seems.
        """
        self._seen[shape] += 1
        self._arrivals += 1
        if self._arrivals >= self._lesson:
            self._lesson *= 2
            self.expect(self._seen)

    def best(self, shape: Shape) -> Seat | None:
        """The seat of least cost, None when the pod fits nowhere."""
        row = self._row(shape)
        node = self._kernel.choose(
            row,
            self._total,
            self._nodes,
            self._free,
            self._shapes,
            self._worth,
            self._costs,
            self._devices,
            self._stamps,
        )
        if node < 0:
            return None
        device = int(self._devices[row, node])
        if device >= 0:
            return Seat(node, (device,))
        if not shape.gpus:
            return Seat(node, ())
        levels = self._free[node].tolist()
        empty = [g for g, level in enumerate(levels) if level == ONE_MILLI]
        return Seat(node, tuple(empty[: shape.gpus]))

    def place(self, shape: Shape, seat: Seat) -> None:
        """Take the seat. Raises ValueError when it is not free."""
        self._change(shape, seat, 1)

    def remove(self, shape: Shape, seat: Seat) -> None:
        """Undo `place`. Raises ValueError when the seat is not held."""
        self._change(shape, seat, -1)

    def update(self, rank: int, node: Node) -> None:
        """This is now free on the node; its model and how many devices it has stay."""
        _check_node(rank, node)
        self._nodes[rank, : plain.MODEL] = node.cpu_milli, node.memory_mib
        self._free[rank, : len(node.free)] = node.free
        self._changed(rank)

    def waste_milli(self, shape: Shape, seat: Seat) -> int:
        """How much more than it asks for the pod costs there: what makes its rest worthless."""
        worth = self._worth
        before = sum(int(worth[self._free[seat.node, g]]) for g in seat.devices)
        after = sum(int(worth[self._free[seat.node, g] - shape.gpu_milli]) for g in seat.devices)
        return (before - after) * ONE_MILLI // PRICE - shape.asked_milli

    def free(self) -> tuple[int, int]:
        """Thousandths of devices and of cores that are free on all nodes."""
        return int(self._free.sum()), int(self._nodes[:, plain.CPU].sum())

    def node(self, rank: int) -> Node:
        """What is free there now."""
        cpu, memory, model = self._nodes[rank, :3].tolist()
        return Node(cpu, memory, model, tuple(self._free[rank, : self._sizes[rank]].tolist()))

    def _change(self, shape: Shape, seat: Seat, sign: int) -> None:
        rank = seat.node
        state, free = self._nodes[rank], self._free[rank]
        cpu = int(state[plain.CPU]) - sign * shape.cpu_milli
        memory = int(state[plain.MEMORY]) - sign * shape.memory_mib
        levels = [int(free[g]) - sign * shape.gpu_milli for g in seat.devices]
        legal = all(0 <= level <= ONE_MILLI for level in levels) and cpu >= 0 and memory >= 0
        if not legal or len(set(seat.devices)) != shape.gpus:
            raise ValueError(f"{shape} is not to be had at {seat}")
        state[plain.CPU], state[plain.MEMORY] = cpu, memory
        free[list(seat.devices)] = levels
        self._changed(rank)

    def _changed(self, rank: int) -> None:
        state = self._nodes[rank]
        state[plain.VERSION] += 1
        if state[plain.FIRST] >= 0:
            self._touch(rank)
        self._measure(rank)

    def _touch(self, rank: int) -> None:
        """It is no longer as it was given; the next one stands for those that still are."""
        first = int(self._nodes[rank, plain.FIRST])
        alike = self._alike[first]
        self._nodes[rank, plain.FIRST] = -1
        if rank != first:
            alike.remove(rank)
            return
        alike.pop()
        if alike:
            self._nodes[alike, plain.FIRST] = alike[-1]
            self._alike[alike[-1]] = alike

    def _measure(self, rank: int) -> None:
        self._kernel.measure(rank, self._nodes, self._free, self._shapes, self._worth)

    def _row(self, shape: Shape) -> int:
        row = self._rows.get(shape)
        if row is None:
            if not shape.possible:
                raise ValueError(f"no pod asks for {shape}")
            row = self._rows[shape] = len(self._rows)
            if row == len(self._shapes):
                more = max(16, row)
                blank = np.zeros((more, plain.SHAPE_COLUMNS), np.int64)
                self._shapes = np.concatenate([self._shapes, blank])
                self._costs, self._devices, self._stamps = (
                    np.concatenate([table, self._blank(more)])
                    for table in (self._costs, self._devices, self._stamps)
                )
            self._describe(shape, row)
        return row

    def _describe(self, shape: Shape, row: int) -> None:
        part = shape.gpus == 1 and shape.gpu_milli < ONE_MILLI
        price = int(self._worth[shape.gpu_milli]) if part else shape.gpus * PRICE
        self._shapes[row] = (*shape, self._mix.get(shape, 0), price)

    def _blank(self, rows: int) -> Ints:
        return np.full((rows, len(self._nodes)), -1, np.int64)


@lru_cache(maxsize=8)
def _prices(demand: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """Kept, for the drafts of one plan all expect the same."""
    return tuple(gap_prices(dict(demand)))


def _jit() -> ModuleType:
    from scheduler.core import jit  # where no plan is made, nobody waits for numba

    return jit


def _check_node(rank: int, node: Node) -> None:
    right = (
        0 <= node.cpu_milli < LARGEST
        and 0 <= node.memory_mib < LARGEST
        and 0 <= node.model < MOST_MODELS
        and len(node.free) <= MOST_DEVICES
        and all(0 <= level <= ONE_MILLI for level in node.free)
    )
    if not right:
        raise ValueError(f"node {rank} can't be: {node}")
