"""What takes nothing new now: would work start if it did?"""

from dataclasses import replace
from functools import cached_property

from scheduler.core.draft import Draft
from scheduler.core.limits import because
from scheduler.core.place import would_place
from scheduler.core.plan import Place
from scheduler.core.reasons import Reason, ReasonCode, listed
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import ClusterView, NodeView, PendingView, Snapshot
from scheduler.core.units import DeviceId, NodeId


class Outage:
    """Clusters and nodes that are out, and clusters and pools that are held.

    It is asked of the plan's draft as it is, with what is out or held beside it: what is kept for
    others, or promised to them, is as taken there. A sick device is no outage: its node takes
    other work.
    """

    def __init__(self, snapshot: Snapshot, draft: Draft) -> None:
        self._now = draft
        self._out: dict[NodeId, bool] = {}  # whether its cluster is well, and it alone is out
        self._held: dict[NodeId | DeviceId, str] = {}
        self._clusters = snapshot.clusters
        for cluster in self._clusters:
            self._note(cluster)
        self._whole: tuple[int, Draft] | None = None

    def _note(self, cluster: ClusterView) -> None:
        well = cluster.usable or cluster.held
        for node in cluster.nodes:
            if not (well and node.usable):
                self._out[node.id] = well
            if cluster.held:
                self._held[node.id] = f"cluster {cluster.name}"
            if cluster.held_models:
                self._held |= {
                    device.id: f"pool {device.model} in {cluster.name}"
                    for device in node.devices
                    if device.model in cluster.held_models
                }

    def why(self, *, pending: PendingView, request: Request, option: Option) -> Reason | None:
        """HARDWARE_HELD with who is, CLUSTER_UNAVAILABLE with how many clusters, and nodes out of
        a cluster, are out and would take it; None when that is not what it lacks."""
        if not (self._out or self._held):
            return None
        draft = self._draft()
        clusters = nodes = 0
        held = set[str]()
        for places in would_place(draft=draft, pending=pending, request=request, option=option):
            held |= {self._held[id] for id in _uses(places) if id in self._held}
            used = {place.node for place in places if place.node in self._out}
            if used:
                of_cluster = self._is_cluster_out(used)
                clusters += of_cluster
                nodes += 0 if of_cluster else len(used)
        if held:
            return because(ReasonCode.HARDWARE_HELD, held=listed(sorted(held)))
        if clusters or nodes:
            return because(
                ReasonCode.CLUSTER_UNAVAILABLE, clusters_count=clusters, nodes_count=nodes
            )
        return None

    def _is_cluster_out(self, nodes: set[NodeId]) -> bool:
        """Nodes of one cluster: whether all of it is out, and not the nodes alone."""
        return not all(self._out[node] for node in nodes)

    def _draft(self) -> Draft:
        if self._whole is None or self._whole[0] != self._now.state:
            self._whole = self._now.state, self._now.beside(self._back)
        return self._whole[1]

    @cached_property
    def _back(self) -> list[NodeView]:
        """The nodes that another would be in the place of, were nothing out or held."""
        return [
            back
            for cluster in self._clusters
            for node in cluster.nodes
            if (back := _node_back(node, cluster.held_models)) is not node or not cluster.usable
        ]


def _uses(places: tuple[Place, ...]) -> set[NodeId | DeviceId]:
    devices = {device for place in places for device, _ in place.spans}
    return {place.node for place in places} | devices


def _node_back(node: NodeView, models: tuple[str, ...]) -> NodeView:
    """The same, and neither out nor held. Sick devices stay so, save those of a held pool, of
    which nobody knows."""
    if not models or all(device.model not in models for device in node.devices):
        return node if node.usable else replace(node, usable=True)
    return replace(
        node,
        usable=True,
        devices=tuple(
            replace(device, usable=device.usable or device.model in models)
            for device in node.devices
        ),
    )
