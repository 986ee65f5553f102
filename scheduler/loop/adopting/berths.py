"""Where adopted pods are taken to be: a place for each, on the node on which it runs.

The cluster tells which node that is and how many devices it holds there, not which (as of foreign
pods, ADR 0071): so these are chosen as for a start, from what nobody else holds there. A node that
takes nothing new any more holds what runs on it all the same. What has ended holds nothing, and
needs no room.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from clusters.models import Cluster, Node
from clusters.port import PodReport
from scheduler.core.demand import Demand
from scheduler.core.node.fit import Room
from scheduler.core.node.slices import Slices
from scheduler.core.placing.gang import seat
from scheduler.core.plan import Place
from scheduler.core.quota.portions import as_given
from scheduler.core.quota.quota import amount_milli
from scheduler.core.snapshot import (
    FlavorView,
    HeldView,
    PodSetView,
    Snapshot,
)
from scheduler.core.units import NodeId
from scheduler.loop.pods.requests import Charged, differs
from scheduler.selectors import fleet, load


class Misplaced(Exception):
    """It says why there is no place for a pod, in words for operators."""


class Berths:
    """The nodes of some pods and what is held there, read once for all of them. What is adopted
    from it is to be told by `take`."""

    def __init__(self, *, cluster: Cluster, reports: Iterable[PodReport]) -> None:
        names = {report.node for report in reports}
        self._nodes = {
            node.name: node for node in Node.objects.filter(cluster=cluster, name__in=names)
        }
        ids = {str(node.id) for node in self._nodes.values()}
        self._views = {
            view.name: view
            for one in fleet.clusters()
            if one.id == str(cluster.id)
            for view in one.nodes
            if view.id in ids
        }
        flavors = fleet.flavors()
        self._flavors = {flavor.id: flavor for flavor in flavors}
        self._held: defaultdict[NodeId, list[HeldView | Place]] = defaultdict(list)
        for held in load.held_on(nodes=[view.id for view in self._views.values()]):
            self._held[held.node].append(held)
        nothing = Snapshot(at=0, flavors=flavors, clusters=(), queues=(), pending=(), holding=())
        self._slices = Slices(
            flavors=flavors, demand=partial(Demand, nothing), devices=lambda model: 0
        )

    def places(
        self, *, pod_sets: Sequence[PodSetView], reports: Sequence[PodReport]
    ) -> tuple[Place, ...]:
        """A place for each pod of one attempt. Raises Misplaced where that is not clear for
        all."""
        if any(pod_set.gpu_memory_mib is not None for pod_set in pod_sets):
            raise Misplaced("it asked for memory of a device")
        in_order = _in_order(reports)
        asked = list(zip(in_order, _asked(pod_sets, in_order), strict=True))
        for report in in_order:
            if report.node not in self._views:
                raise Misplaced(f"its node {report.node or '(none yet)'} is not known")
            if self._nodes[report.node].device_driver:
                raise Misplaced("which certain devices it was given is not known")
        # Of what counts as foreign these pods may be a part, where it was tried before in vain.
        for beside_foreign in (True, False):
            rooms = {
                name: self._room(name, beside_foreign=beside_foreign)
                for name in {report.node for report in in_order}
            }
            found = [self._place(rooms[report.node], pod_set, report) for report, pod_set in asked]
            seated = tuple(place for place in found if place is not None)
            if len(seated) == len(found):
                return seated
        lacking = in_order[found.index(None)]
        raise Misplaced(
            f"there is no room for {lacking.name} on {lacking.node} beside what is known"
        )

    def left(
        self, *, pod_sets: Sequence[PodSetView], reports: Sequence[PodReport]
    ) -> tuple[Place, ...]:
        """Where pods were that have all ended: places that hold no device. The nodes may be gone.
        Raises Misplaced."""
        in_order = _in_order(reports)
        places = []
        for report, pod_set in zip(in_order, _asked(pod_sets, in_order), strict=True):
            node = self._nodes.get(report.node)
            if node is None:
                raise Misplaced(f"its node {report.node or '(none)'} is not known")
            view = self._views.get(report.node)
            models = {device.model for device in view.devices} if view else set()
            suiting = self._suiting(report, pod_set)
            flavor = min(suiting, key=lambda each: each.model not in models)  # else the first
            given = as_given(pod_set=pod_set, flavor=flavor)
            places.append(
                Place(
                    pod_set=pod_set.id,
                    rank=report.rank,
                    node=NodeId(str(node.id)),
                    flavor=flavor.id,
                    amount_milli=amount_milli(pod_set=given),
                    cpu_milli=pod_set.cpu_milli,
                    memory_mib=pod_set.memory_mib,
                )
            )
        return tuple(places)

    def take(self, places: Iterable[Place]) -> None:
        """They hold what they hold from now on."""
        for place in places:
            self._held[place.node].append(place)

    def _room(self, name: str, *, beside_foreign: bool) -> Room:
        # What runs there has its devices: nothing is kept free for tokens that the node has lost.
        node, view = self._nodes[name], replace(self._views[name], usable=True, counted=False)
        if not beside_foreign:
            cpu, memory = node.cpu_milli, node.memory_mib
            view = replace(view, foreign=(), cpu_milli=cpu, memory_mib=memory)
        room = Room(node=view)
        for held in self._held[view.id]:
            room.take(holder=held, flavor=self._flavors.get(held.flavor))
        return room

    def _place(self, room: Room, pod_set: PodSetView, report: PodReport) -> Place | None:
        """With the first flavor that it can have there, taken out of the room."""
        for flavor in self._suiting(report, pod_set):
            place = seat(room=room, pod_set=pod_set, flavor=flavor, slices=self._slices)
            if place is not None:
                room.take(holder=place, flavor=flavor)
                return replace(place, rank=report.rank)
        return None

    def _suiting(self, report: PodReport, pod_set: PodSetView) -> Sequence[FlavorView]:
        """The flavors with which it is charged for just what it holds, at least one. Raises
        Misplaced."""
        why = "its flavors are no more"
        suiting = []
        for flavor in (self._flavors[id] for id in pod_set.flavors if id in self._flavors):
            told = differs(_charged(self._nodes[report.node], pod_set, flavor), report)
            if not told:
                suiting.append(flavor)
            why = told
        if not suiting:
            raise Misplaced(why)
        return suiting


def _charged(node: Node, pod_set: PodSetView, flavor: FlavorView) -> Charged:
    given = as_given(pod_set=pod_set, flavor=flavor)
    return Charged(
        cpu_milli=given.cpu_milli,
        memory_mib=given.memory_mib,
        flavor_kind=flavor.kind,
        profile=flavor.profile,
        gpu_count=given.gpu_count,
        amount_milli=amount_milli(pod_set=given),
        share_replicas=node.share_replicas,
        share_resource=node.share_resource,
        gpu_resource=node.gpu_resource,
        mig_single=node.mig_single,
        pins=bool(node.device_driver),
    )


def _in_order(reports: Iterable[PodReport]) -> list[PodReport]:
    in_order = sorted(reports, key=lambda report: report.rank)
    for report in in_order:
        if report.deleting:
            raise Misplaced(f"{report.name} is being deleted")
    return in_order


def _asked(pod_sets: Sequence[PodSetView], reports: Sequence[PodReport]) -> list[PodSetView]:
    """The pod set of each. Ranks go through the sets in their order; where not all pods are there
    that tells which is whose of a single set alone."""
    if [report.rank for report in reports] != list(range(len(reports))):
        raise Misplaced("not all of its pods are there")
    whole = list(chain.from_iterable([each] * each.count for each in pod_sets))
    enough = len(pod_sets) == 1 and pod_sets[0].min_count <= len(reports) <= len(whole)
    if len(reports) != len(whole) and not enough:
        raise Misplaced(f"{len(reports)} of its {len(whole)} pods are there")
    return whole[: len(reports)]
