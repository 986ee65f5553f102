"""What foreign pods hold on a cluster's nodes: noted as they come and go, then stored.

Of cores and memory it is told how much, of devices how many: so where those lie is chosen
(`core/node/foreign`), and chosen again where our own pods were put meanwhile.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from clusters.models import Cluster, Device, Node
from clusters.port import MOST_PODS, ClusterError, Fault, PodReport
from clusters.services import foreign
from controlplane.kernel import hints
from scheduler.core.node import mig
from scheduler.core.node.foreign import UNITS, held_spans
from scheduler.core.snapshot import DeviceMode, NodeView
from scheduler.core.units import DeviceId, DeviceSpan, Span
from scheduler.loop.pods.requests import mig_resource
from scheduler.loop.watching.claimed import axis
from scheduler.models import PlacementSpan
from scheduler.selectors import fleet
from scheduler.selectors.fleet import rows

STORE_S = 2.0
"""How long it waits for more after something has changed."""
AGAIN_S = 15.0
"""How soon it looks again where others hold devices: our own pods come and go there too."""

type _Resources = Counter[str]
"""How many of each extended resource."""


class _Held(NamedTuple):
    """What counts of a pod; of a large cluster's there are many."""

    node: str
    cpu_milli: int
    memory_mib: int
    resources: tuple[tuple[str, int], ...]


class ForeignPods:
    """Those of one cluster. `claimed` tells what others hold by claims, None while that is not
    known: then nothing is stored. Times are those of a monotonic clock.

    Of thousands of nodes few change at once, and to look at all of them would hold up what else
    the cluster tells: so only those are looked at where something may be another than it was.
    """

    def __init__(
        self, cluster: Cluster, claimed: Callable[[], set[foreign.SpanRow] | None] = set
    ) -> None:
        self._cluster = cluster
        self._claimed = claimed
        self._pods: dict[str, _Held] = {}
        self._listed = False
        self._due: float | None = None
        self._touched: set[str] | None = None  # names of nodes; None for all of them
        self._short: set[str] = set()
        self._last_claimed: set[foreign.SpanRow] = set()

    def clear(self) -> None:
        """A list of all pods has come: those that it names are noted next. Before the first one
        nothing is stored, for nothing is known."""
        self._pods.clear()
        self._listed = True
        self.devices_changed()

    def note(self, pod: PodReport, *, gone: bool) -> None:
        """Raises ClusterError for more pods than a cluster can have."""
        if gone or pod.phase.ended or not pod.node:
            return self.forget(pod.uid)
        held = _Held(pod.node, pod.cpu_milli, pod.memory_mib, pod.resources)
        before = self._pods.get(pod.uid)
        if held == before:
            return None
        self._pods[pod.uid] = held
        if len(self._pods) > MOST_PODS:
            told = f"The cluster told of more than {MOST_PODS:,} pods that run there at once."
            raise ClusterError(Fault.MALFORMED, told)
        self._touch({held.node} if before is None else {held.node, before.node})

    def forget(self, uid: str) -> None:
        """The pod has ended, if it is one of these."""
        if held := self._pods.pop(uid, None):
            self._touch({held.node})

    def devices_changed(self) -> None:
        """There may be other devices than before for them to hold, or they hold others."""
        self._touched = None
        self._look_within(STORE_S)

    def _touch(self, nodes: set[str]) -> None:
        if self._touched is not None:
            self._touched |= nodes
        self._look_within(STORE_S)

    def _look_within(self, seconds: float) -> None:
        due = time.monotonic() + seconds
        self._due = due if self._due is None else min(due, self._due)

    def store_when_due(self) -> None:
        if not self._listed or self._due is None or time.monotonic() < self._due:
            return
        self._due = None
        claimed = self._claimed()
        if claimed is None:
            return self._look_within(STORE_S)
        among = self._among(claimed)
        self._touched, self._last_claimed = set(), claimed
        if among is None or among:
            self._store(among, claimed)
        self._look_within(AGAIN_S)

    def _among(self, claimed: set[foreign.SpanRow]) -> set[str] | None:
        """The nodes to look at, None for all. What they are taken to hold stays as it is, but
        where it lies on what our pods hold, or did not find room."""
        if self._touched is None or claimed != self._last_claimed:
            return None
        met = rows(_MET, {"cluster": self._cluster.pk})
        return self._touched | self._short | {node for (node,) in met}

    def _store(self, among: set[str] | None, claimed: set[foreign.SpanRow]) -> None:
        amounts: dict[str, tuple[int, int]] = {}
        devices: dict[str, _Resources] = {}
        for pod in self._pods.values():
            if among is not None and pod.node not in among:
                continue
            cpu_milli, memory_mib = amounts.get(pod.node, (0, 0))
            amounts[pod.node] = cpu_milli + pod.cpu_milli, memory_mib + pod.memory_mib
            if pod.resources:
                devices.setdefault(pod.node, Counter()).update(dict(pod.resources))
        whole = _beside_drivers(self._cluster, devices)
        blurred = {device for device, _, _ in whole}
        chosen, self._short = _device_spans(self._cluster, devices)
        on = chosen | whole | {row for row in claimed if row[0] not in blurred}
        if foreign.sync(cluster=self._cluster, amounts=amounts, spans=on, among=among):
            hints.send(hints.CYCLE)


_MET = """
SELECT DISTINCT n.name
FROM clusters_foreignspan f JOIN clusters_device d ON d.id = f.device_id
JOIN clusters_node n ON n.id = d.node_id
JOIN scheduler_placementspan s ON s.device_id = f.device_id AND s.span && f.span
WHERE n.cluster_id = %(cluster)s AND s.released_at IS NULL
"""


def _device_spans(
    cluster: Cluster, held: Mapping[str, _Resources]
) -> tuple[set[foreign.SpanRow], set[str]]:
    """What of devices is taken to be theirs, by node name and what they hold there; and the nodes
    where there is no room for all of it."""
    if not held:
        return set(), set()
    there = Node.objects.filter(
        cluster=cluster, gone_at__isnull=True, name__in=held, device_driver=""
    )
    nodes = {str(node.pk): node for node in there}
    ours: dict[str, list[DeviceSpan]] = {}
    live = PlacementSpan.objects.filter(released_at__isnull=True, device__node__in=nodes.values())
    for node, device, span in live.values_list("device__node_id", "device_id", "span"):
        part = DeviceId(str(device)), Span(span.lower, span.upper)
        ours.setdefault(str(node), []).append(part)
    found: set[foreign.SpanRow] = set()
    short: set[str] = set()
    for view in fleet.nodes([node.pk for node in nodes.values()]):
        profiles = _by_profile(nodes[view.id], view, held[view.name])
        spans = held_spans(node=view, held=profiles, ours=ours.get(view.id, ()))
        found |= {(device, span.start, span.end) for device, span in spans}
        if len(spans) < sum(profiles.values()):
            short.add(view.name)
    return found, short


def _beside_drivers(cluster: Cluster, held: Mapping[str, _Resources]) -> set[foreign.SpanRow]:
    """All of the devices of nodes where somebody holds one that the device plugin gave, and a
    driver publishes them now: it may be any of those."""
    there = Device.objects.filter(node__cluster=cluster, node__name__in=held, gone_at=None)
    return {
        (str(device.pk), 0, axis(device))
        for device in there.exclude(node__device_driver="").select_related("node")
        if any(_is_device(name, device.node) for name in held[device.node.name])
    }


def _is_device(resource: str, node: Node) -> bool:
    named = resource in (node.gpu_resource, node.share_resource)
    return named or resource.startswith(mig_resource(""))


def _by_profile(row: Node, view: NodeView, held: _Resources) -> dict[str, int]:
    """What they hold by profile, as `held_spans` takes it, of its devices alone."""
    units = row.share_resource if row.share_replicas > 1 else row.gpu_resource
    names = {units: UNITS}
    for device in view.devices:
        profiles = [piece.profile for piece in device.slices]
        board = mig.board(model=device.model)
        if board is not None and device.mode is DeviceMode.MIG_DYNAMIC:
            profiles = [profile.name for profile in board.profiles]
        for profile in profiles:
            names[row.gpu_resource if row.mig_single else mig_resource(profile)] = profile
    return {names[resource]: count for resource, count in held.items() if resource in names}
