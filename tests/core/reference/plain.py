"""The score of a node, in numpy alone: what `jit` computes, written apart, to hold it to.

See `fragmentation` for what is computed and why, `jit` for the columns and the arguments.
"""

import numpy as np

from scheduler.core.node.jit import (
    COUNT,
    CPU,
    FIRST,
    LOSS,
    MEMORY,
    MILLI,
    MODEL,
    MODELS,
    NEVER,
    PRICE,
    SHORT_FACTOR,
    TILT_CORE,
    TILT_DEVICE,
    UNFIT_FACTOR,
    VERSION,
    WEIGHT,
    WHOLE,
    WORTH,
    WORTH_FACTOR,
    Ints,
)


def measure(first: int, beyond: int, nodes: Ints, free: Ints, expected: Ints, worth: Ints) -> None:
    state = nodes[first:beyond]
    state[:, WORTH], state[:, LOSS] = _unusable(
        state[:, CPU], state[:, MEMORY], state[:, MODEL], free[first:beyond], expected, worth
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
    ranks = np.arange(len(nodes))
    asked = (nodes[:, FIRST] < 0) | (nodes[:, FIRST] == ranks)
    asked &= (nodes[:, CPU] >= cpu) & (nodes[:, MEMORY] >= memory)
    asked &= (models >> nodes[:, MODEL]) & 1 == 1
    stale = ranks[asked & (stamps != nodes[:, VERSION])]
    if len(stale):
        found = _costs(pod, total, nodes[stale], free[stale], expected, worth)
        costs[stale], devices[stale] = found
        stamps[stale] = nodes[stale, VERSION]
    row = np.where(asked, costs, NEVER)
    best = int(np.argmin(row))
    return best if row[best] < NEVER else -1


def _costs(
    pod: Ints, total: int, nodes: Ints, free: Ints, expected: Ints, worth: Ints
) -> tuple[Ints, Ints]:
    """Of each node: the least cost, and the device that it is for."""
    count, milli = pod[COUNT], pod[MILLI]
    best = np.full(len(nodes), NEVER, np.int64)
    device = np.full(len(nodes), -1, np.int64)
    cpu, memory = nodes[:, CPU] - pod[CPU], nodes[:, MEMORY] - pod[MEMORY]
    fits = (cpu >= 0) & (memory >= 0)
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
            cpu[can], memory[can], nodes[can, MODEL], after[can], expected, worth
        )
        cost = WORTH_FACTOR * total * (nodes[can, WORTH] - value) + loss - nodes[can, LOSS]
        cost += total * left[can]
        better = (cost < best[can]) | ((cost == best[can]) & (before[can] < level[can]))
        at = np.flatnonzero(can)[better]
        best[at], device[at], level[at] = cost[better], g, before[can][better]
    return best, device


def _unusable(
    cpu: Ints, memory: Ints, model: Ints, free: Ints, expected: Ints, worth: Ints
) -> tuple[Ints, Ints]:
    """Of each node: what its gaps are worth, and how much of that the expected pods can't use."""
    value = worth[free].sum(axis=1)
    pods = expected
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
