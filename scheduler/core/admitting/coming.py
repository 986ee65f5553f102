"""Nodes that can come, of pools that make nodes: would work start if they were there?"""

from collections.abc import Iterator
from typing import NamedTuple

from scheduler.core.bounds.limits import because
from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.node_pools import nodes_of
from scheduler.core.placing.place import would_place
from scheduler.core.reasons import Reason, ReasonCode, listed
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import ClusterView, ComingView, NodeView, PendingView, Snapshot
from scheduler.core.units import ClusterId, NodeId


class Comes(NamedTuple):
    """Of which pool a node is, and whether it is being made."""

    pool: ComingView
    made: bool


class Coming:
    """Nodes that can come in clusters and pools that take something new.

    `of` has them by id. It is asked of the plan's draft as it is, with those nodes beside it,
    after all that are there.
    """

    def __init__(self, snapshot: Snapshot, draft: Draft) -> None:
        self._now = draft
        self._nodes: list[tuple[ClusterId, NodeView]] = []
        self.of: dict[NodeId, Comes] = {}
        for cluster in snapshot.clusters:
            for pool in _open_pools(cluster):
                for nth, node in enumerate(nodes_of(pool)):
                    self._nodes.append((cluster.id, node))
                    self.of[node.id] = Comes(pool, nth < pool.making_count)
        self._with: tuple[int, Draft] | None = None

    def why(self, *, pending: PendingView, request: Request, option: Option) -> Reason | None:
        """WAITING_FOR_NODE with how many nodes of which pools it takes, in the cluster where it
        takes the fewest; None where it would not start with all that can come."""
        if not self._nodes:
            return None
        found = would_place(draft=self.draft(), pending=pending, request=request, option=option)
        used = [{p.node for p in places if p.node in self.of} for places in found]
        fewest = min(filter(None, used), key=lambda nodes: (len(nodes), sorted(nodes)), default=())
        if not fewest:
            return None
        comes = [self.of[node] for node in fewest]
        numbers: dict[str, int | str] = {
            "making_count": sum(node.made for node in comes),
            "node_pools": listed(sorted({node.pool.name for node in comes})),
            "nodes_count": len(comes),
        }
        take_s = [node.pool.start_s for node in comes]
        if None not in take_s:
            numbers["start_s"] = max(filter(None, take_s), default=0)
        return because(ReasonCode.WAITING_FOR_NODE, **numbers)

    def draft(self) -> Draft:
        """The plan's draft with those nodes, for as long as it is in the same state."""
        if self._with is None or self._with[0] != self._now.state:
            self._with = self._now.state, self._now.beside((), more=self._nodes)
        return self._with[1]


def _open_pools(cluster: ClusterView) -> Iterator[ComingView]:
    """Those of which nodes would take something new."""
    for pool in cluster.coming if cluster.usable else ():
        if not any(device.model in cluster.held_models for device in pool.node.devices):
            yield pool
