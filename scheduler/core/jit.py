"""The score of a node, compiled: the only module that uses numba. `plain` is its twin.

See `fragmentation` for what is computed and why, `plain` for the columns and the arguments.
"""

from collections.abc import Callable
from typing import Any, cast

from numba import njit

from scheduler.core.plain import (
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
    TILT_NEW,
    UNFIT_FACTOR,
    VERSION,
    WEIGHT,
    WHOLE,
    WORTH,
    WORTH_FACTOR,
    Ints,
)


def _compiled[F: Callable[..., Any]](function: F) -> F:
    """Compiled at its first call, and kept on disk where there is a place to keep it."""
    try:
        return cast(F, njit(cache=True)(function))
    except RuntimeError:
        return cast(F, njit(function))


@_compiled
def _unusable(
    cpu: int, memory: int, model: int, free: Ints, shapes: Ints, worth: Ints
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
    for i in range(len(shapes)):
        weight, count = shapes[i, WEIGHT], shapes[i, COUNT]
        if weight == 0 or count == 0:
            continue
        needs_cpu, needs_memory = shapes[i, CPU], shapes[i, MEMORY]
        if (
            needs_cpu > cpu
            or needs_memory > memory
            or (count > 1 and count > empty)
            or not (shapes[i, MODELS] >> model) & 1
        ):
            lost += weight * value * UNFIT_FACTOR
            continue
        drawn = cpu * shapes[i, PRICE] // max(needs_cpu, 1)
        drawn = min(drawn, memory * shapes[i, PRICE] // max(needs_memory, 1))
        if drawn < value:
            lost += weight * (value - drawn) * SHORT_FACTOR
    return value, lost


@_compiled
def measure(node: int, nodes: Ints, free: Ints, shapes: Ints, worth: Ints) -> None:
    """Set WORTH and LOSS of a node that has changed."""
    value, lost = _unusable(
        nodes[node, CPU], nodes[node, MEMORY], nodes[node, MODEL], free[node], shapes, worth
    )
    nodes[node, WORTH], nodes[node, LOSS] = value, lost


@_compiled
def _cost(
    shape: int, total: int, node: int, nodes: Ints, free: Ints, shapes: Ints, worth: Ints
) -> tuple[int, int]:
    """The least cost of the pod on this node, and the device that it is for."""
    cpu = nodes[node, CPU] - shapes[shape, CPU]
    memory = nodes[node, MEMORY] - shapes[shape, MEMORY]
    model = nodes[node, MODEL]
    if cpu < 0 or memory < 0 or not (shapes[shape, MODELS] >> model) & 1:
        return NEVER, -1
    count, milli = shapes[shape, COUNT], shapes[shape, MILLI]
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
            value, lost = _unusable(cpu, memory, model, after, shapes, worth)
            after[g] = tried
            cost = fixed - WORTH_FACTOR * total * value + lost
            if tried == WHOLE:
                cost += total * TILT_NEW
            if cost < best:
                best, device = cost, g
    for g in range(len(after)):
        if count > 0 and after[g] == WHOLE:
            after[g] = 0
            count -= 1
    if count > 0:
        return NEVER, -1
    value, lost = _unusable(cpu, memory, model, after, shapes, worth)
    return fixed - WORTH_FACTOR * total * value + lost, -1


@_compiled
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
    """The rank of the best node for a pod of the shape, or -1; `devices` says which device."""
    best, least = -1, NEVER
    for node in range(len(nodes)):
        if nodes[node, FIRST] >= 0 and nodes[node, FIRST] != node:
            continue
        if stamps[shape, node] != nodes[node, VERSION]:
            cost, device = _cost(shape, total, node, nodes, free, shapes, worth)
            costs[shape, node], devices[shape, node] = cost, device
            stamps[shape, node] = nodes[node, VERSION]
        if costs[shape, node] < least:
            best, least = node, costs[shape, node]
    return best
