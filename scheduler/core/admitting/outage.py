"""What takes nothing new now: would work start if it did?"""

from dataclasses import replace
from functools import cached_property

from scheduler.core.bounds.limits import because
from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.space import largest_free_milli
from scheduler.core.placing.place import would_place
from scheduler.core.plan import Place
from scheduler.core.quota.quota import amount_milli
from scheduler.core.reasons import Reason, ReasonCode, listed
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import ClusterView, FlavorKind, NodeView, PendingView, Snapshot
from scheduler.core.units import ClusterId, DeviceId, NodeId


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
        self._drafts: dict[bool, tuple[int, Draft]] = {}  # by whether it is the outage alone

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
        alone = self._takes_none(pending, request, option)
        draft = self._draft(alone=alone)
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

    def _takes_none(self, pending: PendingView, request: Request, option: Option) -> bool:
        """Whether no pod of it has its devices on any node that takes something new now: then all
        would be where something is out or held, and to look there alone is quicker."""
        if any(flavor.kind is not FlavorKind.WHOLE for flavor in option.flavors):
            return False
        return all(
            largest_free_milli(draft=self._now, cluster=cluster, flavor=flavor)
            < amount_milli(pod_set=pod_set)
            for pod_set, flavor in zip(option.asks(pending).pod_sets, option.flavors, strict=True)
            for cluster in self._now.clusters
            if request.accepts(cluster)
        )

    def _draft(self, *, alone: bool) -> Draft:
        """Made anew when the plan's is in another state."""
        now, known = self._now, self._drafts.get(alone)
        if known is None or known[0] != now.state:
            back = self._back
            made = now.only(back) if alone else now.beside(node for _, node in back)
            known = self._drafts[alone] = now.state, made
        return known[1]

    @cached_property
    def _back(self) -> list[tuple[ClusterId, NodeView]]:
        """The nodes that another would be in the place of, were nothing out or held, in the order
        of an index."""
        found = [
            (cluster.id, back)
            for cluster in self._clusters
            for node in cluster.nodes
            if (back := _node_back(node, cluster.held_models)) is not node or not cluster.usable
        ]
        return sorted(found, key=lambda each: (each[0], each[1].name, each[1].id))


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
