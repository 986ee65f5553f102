"""What takes nothing new now: would work start if it did?"""

from dataclasses import replace

from scheduler.core.draft import Draft
from scheduler.core.limits import because
from scheduler.core.memory import Memory
from scheduler.core.place import would_place
from scheduler.core.plan import Place
from scheduler.core.reasons import Reason, ReasonCode, listed
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import ClusterView, NodeView, PendingView, Snapshot
from scheduler.core.units import DeviceId, NodeId, ProjectId


class Outage:
    """Clusters and nodes that are out, and clusters and pools that are held.

    Its draft is built when first asked, once a plan: it is another one of the whole fleet. A sick
    device is no outage: its node takes other work.
    """

    def __init__(self, snapshot: Snapshot, memory: Memory) -> None:
        self._snapshot = snapshot
        self._memory = memory
        self._out: dict[NodeId, bool] = {}  # whether its cluster is well, and it alone is out
        self._held: dict[NodeId | DeviceId, str] = {}
        for cluster in snapshot.clusters:
            self._note(cluster)
        self._whole: Draft | None = None
        self._started: list[tuple[ProjectId, Place]] = []

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

    def __bool__(self) -> bool:
        """Whether anything is out or held."""
        return bool(self._out or self._held)

    def started(self, project: ProjectId, places: tuple[Place, ...]) -> None:
        """The plan starts something: that is held here too."""
        if self:
            self._started += [(project, place) for place in places]

    def why(self, *, pending: PendingView, request: Request, option: Option) -> Reason | None:
        """HARDWARE_HELD with who is, CLUSTER_UNAVAILABLE with how many clusters, and nodes out of
        a cluster, are out and would take it; None when that is not what it lacks."""
        if not self:
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
        if self._whole is None:
            clusters = tuple(_back(cluster) for cluster in self._snapshot.clusters)
            whole, holding = replace(self._snapshot, clusters=clusters), self._snapshot.holding
            self._whole = self._memory.draft("outage", snapshot=whole, holding=holding)
        for project, place in self._started:
            self._whole.add(project=project, holder=place)
        self._started.clear()
        return self._whole


def _uses(places: tuple[Place, ...]) -> set[NodeId | DeviceId]:
    devices = {device for place in places for device, _ in place.spans}
    return {place.node for place in places} | devices


def _back(cluster: ClusterView) -> ClusterView:
    """The same with nothing out and nothing held. Sick devices stay so, save those of a held pool,
    of which nobody knows."""
    return replace(
        cluster,
        usable=True,
        held=False,
        held_models=(),
        nodes=tuple(_node_back(node, cluster.held_models) for node in cluster.nodes),
    )


def _node_back(node: NodeView, models: tuple[str, ...]) -> NodeView:
    if not any(device.model in models for device in node.devices):
        return node if node.usable else replace(node, usable=True)
    return replace(
        node,
        usable=True,
        devices=tuple(
            replace(device, usable=device.usable or device.model in models)
            for device in node.devices
        ),
    )
