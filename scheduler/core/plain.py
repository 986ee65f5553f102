"""The score of a node, in numpy alone: what `jit` computes, written apart.

It is the reference that tests hold the compiled kernel to, and it stands in for it where numba
can't be had. See `fragmentation` for what is computed and why. The columns of the arrays are
named here, for both.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# Columns of `nodes`. FIRST is the lowest rank among the nodes that are like this one and, like
# it, unchanged since the start; -1 once it has changed. WORTH and LOSS are set by `measure`.
CPU: Final = 0
MEMORY: Final = 1
MODEL: Final = 2
VERSION: Final = 3
FIRST: Final = 4
WORTH: Final = 5
LOSS: Final = 6
NODE_COLUMNS: Final = 7

# Columns of `shapes`, after CPU and MEMORY. PRICE is what one pod takes, in prices of gaps.
COUNT: Final = 2
MILLI: Final = 3
MODELS: Final = 4
WEIGHT: Final = 5
PRICE: Final = 6
SHAPE_COLUMNS: Final = 7

WHOLE: Final = 1000
NEVER: Final = 1 << 62
"""The cost of what does not fit."""

# What the parts of a cost weigh against each other; `fragmentation` says why. A tilt is in
# millionths of a device: per thousandth of a device left free, per core left free, per device
# that is no longer empty.
WORTH_FACTOR: Final = 6
UNFIT_FACTOR: Final = 2
SHORT_FACTOR: Final = 1
TILT_DEVICE: Final = 10
TILT_CORE: Final = 600
TILT_NEW: Final = 10_000


def measure(node: int, nodes: Ints, free: Ints, shapes: Ints, worth: Ints) -> None:
    """Set WORTH and LOSS of a node that has changed."""
    state = nodes[node : node + 1]
    value, loss = _unusable(
        state[:, CPU], state[:, MEMORY], state[:, MODEL], free[node : node + 1], shapes, worth
    )
    nodes[node, WORTH], nodes[node, LOSS] = value[0], loss[0]


def choose(
    shape: int,
    total: int,
    nodes: Ints,
    free: Ints,
    shapes: Ints,
    worth: Ints,
    costs: Ints,
    devices: Ints,
    stamps: Ints,
) -> int:
    """The rank of the best node for a pod of the shape, or -1; `devices` says which device.

    `total` is the sum of the weights. `costs`, `devices` and `stamps` hold one row a shape; what
    they say of a node is as old as the stamp.
    """
    ranks = np.arange(len(nodes))
    asked = (nodes[:, FIRST] < 0) | (nodes[:, FIRST] == ranks)
    stale = ranks[asked & (stamps[shape] != nodes[:, VERSION])]
    if len(stale):
        found = _costs(shape, total, nodes[stale], free[stale], shapes, worth)
        costs[shape, stale], devices[shape, stale] = found
        stamps[shape, stale] = nodes[stale, VERSION]
    row = np.where(asked, costs[shape], NEVER)
    best = int(np.argmin(row))
    return best if row[best] < NEVER else -1


def _costs(
    shape: int, total: int, nodes: Ints, free: Ints, shapes: Ints, worth: Ints
) -> tuple[Ints, Ints]:
    """Of each node: the least cost, and the device that it is for."""
    pod = shapes[shape]
    count, milli = pod[COUNT], pod[MILLI]
    best = np.full(len(nodes), NEVER, np.int64)
    device = np.full(len(nodes), -1, np.int64)
    cpu, memory = nodes[:, CPU] - pod[CPU], nodes[:, MEMORY] - pod[MEMORY]
    fits = (cpu >= 0) & (memory >= 0) & ((pod[MODELS] >> nodes[:, MODEL]) & 1 == 1)
    left = (free.sum(axis=1) - count * milli) * TILT_DEVICE + cpu * TILT_CORE // WHOLE
    if count == 1 and milli < WHOLE:
        options = [(g, free[:, g]) for g in range(free.shape[1])]
    else:
        options = [(-1, np.zeros(len(nodes), np.int64))]
        empty = np.cumsum(free == WHOLE, axis=1)
        fits &= count <= (empty[:, -1] if empty.shape[1] else 0)
    level = np.full(len(nodes), NEVER, np.int64)
    for g, before in options:
        after = free.copy()
        if g >= 0:
            after[:, g] -= milli
        elif count:
            after[(free == WHOLE) & (empty <= count)] = 0
        can = fits if g < 0 else fits & (before >= milli)
        value, loss = _unusable(
            cpu[can], memory[can], nodes[can, MODEL], after[can], shapes, worth
        )
        cost = WORTH_FACTOR * total * (nodes[can, WORTH] - value) + loss - nodes[can, LOSS]
        cost += total * (left[can] + (TILT_NEW * (before[can] == WHOLE) if g >= 0 else 0))
        better = (cost < best[can]) | ((cost == best[can]) & (before[can] < level[can]))
        at = np.flatnonzero(can)[better]
        best[at], device[at], level[at] = cost[better], g, before[can][better]
    return best, device


def _unusable(
    cpu: Ints, memory: Ints, model: Ints, free: Ints, shapes: Ints, worth: Ints
) -> tuple[Ints, Ints]:
    """Of each node: what its gaps are worth, and how much of that the expected pods can't use."""
    value = worth[free].sum(axis=1)
    pods = shapes[(shapes[:, WEIGHT] > 0) & (shapes[:, COUNT] > 0)]
    fits = (pods[:, CPU] <= cpu[:, None]) & (pods[:, MEMORY] <= memory[:, None])
    fits &= (pods[:, MODELS] >> model[:, None]) & 1 == 1
    empty = (free == WHOLE).sum(axis=1)
    fits &= (pods[:, COUNT] == 1) | (pods[:, COUNT] <= empty[:, None])
    drawn = np.minimum(
        cpu[:, None] * pods[:, PRICE] // np.maximum(pods[:, CPU], 1),
        memory[:, None] * pods[:, PRICE] // np.maximum(pods[:, MEMORY], 1),
    )
    short = np.maximum(value[:, None] - drawn, 0) * SHORT_FACTOR
    lost = np.where(fits, short, value[:, None] * UNFIT_FACTOR)
    return value, (lost * pods[:, WEIGHT]).sum(axis=1)
