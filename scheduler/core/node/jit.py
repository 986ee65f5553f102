"""The score of a node, compiled by numba, as the sweep is; nothing else is.

See `fragmentation` for what is computed and why. The columns of the arrays are named here, and so
are the weights: numba keeps what it has compiled by this file alone. Signatures are given, so that
what can't be compiled or loaded fails as this module is imported.
"""

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# Columns of `nodes`: what is free on each. FIRST is the lowest rank among the nodes that are like
# this one and, like it, unchanged since the start; -1 once it has changed. WORTH and LOSS are set
# by `measure`.
CPU: Final = 0
MEMORY: Final = 1
MODEL: Final = 2
VERSION: Final = 3
FIRST: Final = 4
WORTH: Final = 5
LOSS: Final = 6
NODE_COLUMNS: Final = 7

# Columns of pods, after CPU and MEMORY. PRICE is what one takes, in prices of gaps.
COUNT: Final = 2
MILLI: Final = 3
MODELS: Final = 4
WEIGHT: Final = 5
PRICE: Final = 6
POD_COLUMNS: Final = 7

WHOLE: Final = 1000
NEVER: Final = 1 << 62
"""The cost of what does not fit."""

# What the parts of a cost weigh against each other; `fragmentation` says why. A tilt is in
# millionths of a device: per thousandth of a device left free, per core left free.
WORTH_FACTOR: Final = 6
UNFIT_FACTOR: Final = 2
SHORT_FACTOR: Final = 1
TILT_DEVICE: Final = 10
TILT_CORE: Final = 600

_ROW, _TABLE = "int64[::1]", "int64[:,::1]"


def _compiled[F: Callable[..., Any]](signature: str) -> Callable[[F], F]:
    """Compiled now, and kept on disk where there is a place to keep it."""

    def compile_now(function: F) -> F:
        try:
            return cast(F, njit(signature, cache=True)(function))
        except (RuntimeError, OSError):
            return cast(F, njit(signature)(function))

    return compile_now


@_compiled(f"UniTuple(int64, 2)(int64, int64, int64, {_ROW}, {_TABLE}, {_ROW})")
def _unusable(
    cpu: int, memory: int, model: int, free: Ints, expected: Ints, worth: Ints
) -> tuple[int, int]:
    value = 0
    empty = 0
    for level in free:
        value += worth[level]
        if level == WHOLE:
            empty += 1
    lost = 0
    if value == 0:
        return 0, 0
    for i in range(len(expected)):
        needs_cpu, needs_memory = expected[i, CPU], expected[i, MEMORY]
        weight, count = expected[i, WEIGHT], expected[i, COUNT]
        if (
            needs_cpu > cpu
            or needs_memory > memory
            or (count > 1 and count > empty)
            or not (expected[i, MODELS] >> model) & 1
        ):
            lost += weight * value * UNFIT_FACTOR
            continue
        drawn = cpu * expected[i, PRICE] // max(needs_cpu, 1)
        drawn = min(drawn, memory * expected[i, PRICE] // max(needs_memory, 1))
        if drawn < value:
            lost += weight * (value - drawn) * SHORT_FACTOR
    return value, lost


@_compiled(f"void(int64, int64, {_TABLE}, {_TABLE}, {_TABLE}, {_ROW})")
def measure(first: int, beyond: int, nodes: Ints, free: Ints, expected: Ints, worth: Ints) -> None:
    """Set WORTH and LOSS of the nodes from `first` up to `beyond`, which have changed."""
    for node in range(first, beyond):
        value, lost = _unusable(
            nodes[node, CPU], nodes[node, MEMORY], nodes[node, MODEL], free[node], expected, worth
        )
        nodes[node, WORTH], nodes[node, LOSS] = value, lost


@_compiled(f"UniTuple(int64, 2)({_ROW}, int64, int64, {_TABLE}, {_TABLE}, {_TABLE}, {_ROW})")
def _cost(
    pod: Ints, total: int, node: int, nodes: Ints, free: Ints, expected: Ints, worth: Ints
) -> tuple[int, int]:
    """The least cost of the pod on this node, and the device that it is for."""
    cpu = nodes[node, CPU] - pod[CPU]
    memory = nodes[node, MEMORY] - pod[MEMORY]
    model = nodes[node, MODEL]
    if cpu < 0 or memory < 0:
        return NEVER, -1
    count, milli = pod[COUNT], pod[MILLI]
    after = free[node].copy()
    tilt = (after.sum() - count * milli) * TILT_DEVICE + cpu * TILT_CORE // WHOLE
    fixed = WORTH_FACTOR * total * nodes[node, WORTH] - nodes[node, LOSS] + total * tilt
    if count == 1 and milli < WHOLE:
        best, device, tried = NEVER, -1, 0
        while True:
            g = -1  # the least free of those that were not tried
            for h in range(len(after)):
                if after[h] >= milli and after[h] > tried and (g < 0 or after[h] < after[g]):
                    g = h
            if g < 0:
                return best, device
            tried = after[g]
            after[g] -= milli
            value, lost = _unusable(cpu, memory, model, after, expected, worth)
            after[g] = tried
            cost = fixed - WORTH_FACTOR * total * value + lost
            if cost < best:
                best, device = cost, g
    for g in range(len(after)):
        if count > 0 and after[g] == WHOLE:
            after[g] = 0
            count -= 1
    if count > 0:
        return NEVER, -1
    value, lost = _unusable(cpu, memory, model, after, expected, worth)
    return fixed - WORTH_FACTOR * total * value + lost, -1


@_compiled(
    f"int64(int64, int64, int64, {_ROW}, int64, {_TABLE}, {_TABLE}, {_TABLE}, {_ROW},"
    f" {_ROW}, {_ROW}, {_ROW})"
)
def choose(
    cpu: int,
    memory: int,
    models: int,
    pod: Ints,
    total: int,
    nodes: Ints,
    free: Ints,
    expected: Ints,
    worth: Ints,
    costs: Ints,
    devices: Ints,
    stamps: Ints,
) -> int:
    """The rank of the best node of the models with the cores and memory, or -1; `devices` says
    which device.

    `pod` is what the costs are of: one that asks a little less than this one may, of whatever
    model. `total` is the sum of the weights. What `costs` and `devices` say of a node is as old as
    the stamp.
    """
    best, least = -1, NEVER
    for node in range(len(nodes)):
        if nodes[node, FIRST] >= 0 and nodes[node, FIRST] != node:
            continue
        if nodes[node, CPU] < cpu or nodes[node, MEMORY] < memory:
            continue
        if not (models >> nodes[node, MODEL]) & 1:
            continue
        if stamps[node] != nodes[node, VERSION]:
            cost, device = _cost(pod, total, node, nodes, free, expected, worth)
            costs[node], devices[node], stamps[node] = cost, device, nodes[node, VERSION]
        if costs[node] < least:
            best, least = node, costs[node]
    return best
