"""The least that has to be lost so that some like pods find room: by trying everybody."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, combinations

from scheduler.core.snapshot import HoldingView, NodeView


def lost_s(gone: Iterable[HoldingView], *, at: int) -> int:
    """Devices x seconds of work that has never been saved."""
    return sum(len(held.placements) * (at - (held.started_at or at)) for held in gone)


def least_lost_s(
    holding: Sequence[HoldingView],
    nodes: Sequence[NodeView],
    *,
    pods: int,
    gpus: int,
    within: int,
    at: int,
) -> int | None:
    """Of whole devices on like nodes, all of which may go; None where all of it would not do.
    `within` levels of the topology all pods are in one domain."""
    losses: list[int] = []
    everyone = (combinations(holding, count) for count in range(len(holding) + 1))
    for gone in chain.from_iterable(everyone):
        ids = {held.id for held in gone}
        taken = Counter(p.node for held in holding if held.id not in ids for p in held.placements)
        room = Counter[tuple[str, ...]]()
        for node in nodes:
            room[node.topology[:within]] += (len(node.devices) - taken[node.id]) // gpus
        if max(room.values()) >= pods:
            losses.append(lost_s(gone, at=at))
    return min(losses, default=None)
