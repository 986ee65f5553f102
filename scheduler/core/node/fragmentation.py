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
    tilt   = a little for every device and core left free: best fit

The least cost is taken, ties to the lowest rank, then to the fullest device, then to the lowest
number. A pod that fits somewhere is never refused. All in integers.

What this takes is bounded. Pods are told apart by the three leading bits of their cores and
memory, as far as the cost goes; those of most weight are expected, and costs are kept for so many
kinds (`takes`). Costs are computed anew only for nodes that have changed since; of nodes alike and
not yet touched only the first is looked at.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import numpy as np

from scheduler.core.node import jit
from scheduler.core.node.jit import Ints
from scheduler.core.node.prices import PRICE, gap_prices
from scheduler.core.node.shapes import (
    ANY_MODEL,
    LARGEST,
    MOST_DEVICES,
    MOST_MODELS,
    Node,
    Seat,
    Shape,
)
from scheduler.core.units import ONE_MILLI

TOTAL_WEIGHT: Final = 10_000

MOST_EXPECTED: Final = 128
"""Kinds of pods that the loss is about. openb has 73."""

MOST_SOUGHT: Final = 512
"""Kinds of pods that costs are kept for; fewer where there are more than 4,096 nodes."""

MOST_COSTS: Final = MOST_SOUGHT * 4096


class Packing:
    """What is free on the nodes, and the best seat for a pod. Mutable.

    The rank of a node is its place in `nodes`. `mix` counts the pods that are like to come.
    """

    def __init__(self, *, nodes: Iterable[Node], mix: Mapping[Shape, int]) -> None:
        listed = list(nodes)
        width = max((len(node.free) for node in listed), default=0)
        self._sizes = [len(node.free) for node in listed]
        self._nodes = np.zeros((len(listed), jit.NODE_COLUMNS), np.int64)
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
        self.expect(mix)

    def expect(self, mix: Mapping[Shape, int]) -> None:
        """Go by these pods from now on. Raises ValueError for one that is not `possible`."""
        kinds: Counter[Shape] = Counter()
        for shape, count in mix.items():
            if shape.gpus and count > 0:
                kinds[_possible(shape).kind] += count
        heaviest = sorted(
            kinds, key=lambda kind: (-kinds[kind] * kind.gpus * kind.gpu_milli, kind)
        )
        expected = sorted(heaviest[:MOST_EXPECTED])
        among = sum(kinds[kind] for kind in expected)
        weights = [max(1, kinds[kind] * TOTAL_WEIGHT // among) for kind in expected]
        demand: Counter[int] = Counter()
        for kind, count in kinds.items():
            if kind.gpu_milli < ONE_MILLI:
                demand[kind.gpu_milli] += count
        self._worth: Ints = np.array(_prices(tuple(sorted(demand.items()))), np.int64)
        self._expected = np.zeros((len(expected), jit.POD_COLUMNS), np.int64)
        for i, kind in enumerate(expected):
            self._expected[i] = self._row(kind, weights[i])
        self._total = sum(weights) or 1
        self._sought: dict[Shape, tuple[Ints, Ints, Ints, Ints]] = {}
        self._measure(0, len(self._nodes))

    def takes(self, shape: Shape) -> bool:
        """Whether there is place to keep the costs of such pods."""
        kept = len(self._sought)
        more = kept < MOST_SOUGHT and kept * len(self._nodes) < MOST_COSTS
        return more or _of_any_model(shape) in self._sought

    def best(self, shape: Shape) -> Seat | None:
        """The seat of least cost, None when the pod fits nowhere.

        Raises ValueError for a shape that is not `possible`.
        """
        node, _, devices = self._choose(shape)
        if node < 0:
            return None
        device = int(devices[node])
        if device >= 0:
            return Seat(node, (device,))
        if not shape.gpus:
            return Seat(node, ())
        levels = self._free[node].tolist()
        empty = [g for g, level in enumerate(levels) if level == ONE_MILLI]
        return Seat(node, tuple(empty[: shape.gpus]))

    def cost(self, shape: Shape) -> int | None:
        """That of its `best` seat, no less than 0; None when the pod fits nowhere. The costs of
        all shapes compare."""
        node, costs, _ = self._choose(shape)
        return None if node < 0 else int(costs[node])

    def _choose(self, shape: Shape) -> tuple[int, Ints, Ints]:
        """The rank of the best node, or -1; by rank, what is known of the costs and devices."""
        kind = _of_any_model(_possible(shape))
        if kind not in self._sought:
            pod = np.array(self._row(kind, 0), np.int64)
            costs, devices, stamps = np.full((3, len(self._nodes)), -1, np.int64)
            self._sought[kind] = pod, costs, devices, stamps
        pod, costs, devices, stamps = self._sought[kind]
        node = jit.choose(
            shape.cpu_milli,
            shape.memory_mib,
            shape.models,
            pod,
            self._total,
            self._nodes,
            self._free,
            self._expected,
            self._worth,
            costs,
            devices,
            stamps,
        )
        return node, costs, devices

    def update(self, rank: int, node: Node) -> None:
        """This is now free on the node; its model and how many devices it has stay."""
        _check_node(rank, node)
        state = self._nodes[rank]
        state[: jit.MODEL] = node.cpu_milli, node.memory_mib
        self._free[rank, : self._sizes[rank]] = node.free
        state[jit.VERSION] += 1
        if state[jit.FIRST] >= 0:
            self._touch(rank)
        self._measure(rank, rank + 1)

    def _touch(self, rank: int) -> None:
        """It is no longer as it was given; the next one stands for those that still are."""
        first = int(self._nodes[rank, jit.FIRST])
        alike = self._alike[first]
        self._nodes[rank, jit.FIRST] = -1
        if rank != first:
            alike.remove(rank)
            return
        alike.pop()
        if alike:
            self._nodes[alike, jit.FIRST] = alike[-1]
            self._alike[alike[-1]] = alike

    def _measure(self, first: int, beyond: int) -> None:
        jit.measure(first, beyond, self._nodes, self._free, self._expected, self._worth)

    def _row(self, kind: Shape, weight: int) -> tuple[int, ...]:
        part = kind.gpus == 1 and kind.gpu_milli < ONE_MILLI
        price = int(self._worth[kind.gpu_milli]) if part else kind.gpus * PRICE
        return (*kind, weight, price)


@lru_cache(maxsize=8)
def _prices(demand: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """Kept, for the drafts of one plan all expect the same."""
    return tuple(gap_prices(dict(demand)))


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


def _of_any_model(shape: Shape) -> Shape:
    """What costs are kept of: on which nodes it may be does not change what it costs there."""
    return shape.kind._replace(models=ANY_MODEL)


def _possible(shape: Shape) -> Shape:
    if not shape.possible:
        raise ValueError(f"no pod asks for {shape}")
    return shape
