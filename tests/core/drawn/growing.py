"""Random node pools of which nodes can come, beside those of a fleet."""

from dataclasses import replace
from random import Random

from scheduler.core.snapshot import ClusterView, ComingView, Snapshot


def growing(pick: Random, of: Snapshot) -> Snapshot:
    """At times: pools whose nodes are as some that are there, at most three of each."""
    if pick.random() < 0.5:
        return of
    clusters = (replace(c, coming=_pools(pick, c)) for c in of.clusters)
    return replace(of, clusters=tuple(clusters))


def _pools(pick: Random, of: ClusterView) -> tuple[ComingView, ...]:
    like = [node for node in of.nodes if pick.random() < 0.4]
    return tuple(
        ComingView(
            id=f"{of.id} pool {nth}",
            name=f"pool-{nth}",
            node=node,
            count=pick.randint(0, 3),
            making_count=pick.randint(0, 1),
            start_s=pick.choice([None, 0, 300]),
        )
        for nth, node in enumerate(like)
    )
