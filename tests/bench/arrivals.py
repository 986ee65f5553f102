"""Nodes that fill as pods arrive one by one, the mix learnt from those that have."""

from collections import Counter
from collections.abc import Sequence

from scheduler.core.node.fragmentation import Packing
from scheduler.core.node.prices import PRICE, gap_prices
from scheduler.core.node.shapes import Node, Seat, Shape
from scheduler.core.units import ONE_MILLI


def asked_milli(shape: Shape) -> int:
    return shape.gpus * shape.gpu_milli


class Arrivals:
    """`free_milli` and `free_cpu_milli` are of all nodes."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = list(nodes)
        self._packing = Packing(nodes=nodes, mix={})
        self._seen: Counter[Shape] = Counter()
        self._count, self._lesson = 0, 1
        self._worth = gap_prices({})
        self.free_milli = sum(sum(node.free) for node in nodes)
        self.free_cpu_milli = sum(node.cpu_milli for node in nodes)

    def see(self, shape: Shape) -> None:
        """A pod has arrived. The mix is learnt at each doubling of their number.

        From the first on: what the first dozens block decides more than it seems.
        """
        self._seen[shape] += 1
        self._count += 1
        if self._count >= self._lesson:
            self._lesson *= 2
            self._packing.expect(self._seen)
            shares = Counter[int]()
            for seen, count in self._seen.items():
                if seen.gpus and seen.gpu_milli < ONE_MILLI:
                    shares[seen.gpu_milli] += count
            self._worth = gap_prices(shares)

    def best(self, shape: Shape) -> Seat | None:
        return self._packing.best(shape)

    def place(self, shape: Shape, seat: Seat) -> None:
        """Take the seat, which is free."""
        node = self._nodes[seat.node]
        free = list(node.free)
        for device in seat.devices:
            free[device] -= shape.gpu_milli
        cpu, memory = node.cpu_milli - shape.cpu_milli, node.memory_mib - shape.memory_mib
        node = self._nodes[seat.node] = Node(cpu, memory, node.model, tuple(free))
        self._packing.update(seat.node, node)
        self.free_milli -= asked_milli(shape)
        self.free_cpu_milli -= shape.cpu_milli

    def waste_milli(self, shape: Shape, seat: Seat) -> int:
        """How much more than it asks for the pod costs there: what makes its rest worthless."""
        free = [self._nodes[seat.node].free[device] for device in seat.devices]
        cost = sum(self._worth[level] - self._worth[level - shape.gpu_milli] for level in free)
        return cost * ONE_MILLI // PRICE - asked_milli(shape)
