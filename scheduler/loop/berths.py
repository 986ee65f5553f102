"""Where adopted pods are taken to be: a place for each, on the node on which it runs.

The cluster tells which node that is and how many devices it holds there, not which (as of foreign
pods, ADR 0071): so these are chosen as for a start, from what nobody else holds there. A node that
takes nothing new any more holds what runs on it all the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from clusters.models import Cluster, Node
from clusters.port import PodReport
from scheduler.core.demand import Demand
from scheduler.core.fit import Room
from scheduler.core.gang import seat
from scheduler.core.plan import Place
from scheduler.core.slices import Slices
from scheduler.core.snapshot import FlavorKind, FlavorView, NodeView, PodSetView, Snapshot
from scheduler.core.units import FlavorId
from scheduler.loop.requests import MIG, mig_resource
from scheduler.selectors import fleet, load


class Misplaced(Exception):
    """It says why there is no place for a pod, in words for operators."""


def places(
    *, cluster: Cluster, pod_sets: Sequence[PodSetView], reports: Sequence[PodReport]
) -> tuple[Place, ...]:
    """A place for each pod of one attempt. Raises Misplaced where that is not clear for all."""
    in_order = sorted(reports, key=lambda report: report.rank)
    asked = _asked(pod_sets, in_order)
    nodes = {
        node.name: node
        for node in Node.objects.filter(
            cluster=cluster, gone_at=None, name__in=[report.node for report in reports]
        )
    }
    for report in in_order:
        if report.deleting:
            raise Misplaced(f"{report.name} is being deleted")
        if report.node not in nodes:
            raise Misplaced(f"its node {report.node or '(none yet)'} is not known")
        if nodes[report.node].device_driver:
            raise Misplaced("which certain devices it was given is not known")
    ids = {str(node.id) for node in nodes.values()}
    views = {
        view.name: view
        for one in fleet.clusters()
        if one.id == str(cluster.id)
        for view in one.nodes
        if view.id in ids
    }
    flavors = {flavor.id: flavor for flavor in fleet.flavors()}
    # Of what counts as foreign these pods may be a part, where it was tried before in vain.
    for each in (views, {name: replace(view, foreign=()) for name, view in views.items()}):
        rooms = _rooms(each, flavors)
        found = [
            _place(rooms[report.node], nodes[report.node], pod_set, report, flavors)
            for pod_set, report in zip(asked, in_order, strict=True)
        ]
        seated = [place for place in found if place is not None]
        if len(seated) == len(found):
            return tuple(seated)
    lacking = in_order[found.index(None)]
    raise Misplaced(f"there is no room for {lacking.name} on {lacking.node} beside what is known")


def _asked(pod_sets: Sequence[PodSetView], reports: Sequence[PodReport]) -> list[PodSetView]:
    """The pod set of each. Ranks go through the sets in their order; where not all pods are there
    that tells which is whose of a single set alone."""
    if any(pod_set.gpu_memory_mib is not None for pod_set in pod_sets):
        raise Misplaced("it asked for memory of a device")
    if [report.rank for report in reports] != list(range(len(reports))):
        raise Misplaced("not all of its pods are there")
    whole = list(chain.from_iterable([each] * each.count for each in pod_sets))
    enough = len(pod_sets) == 1 and pod_sets[0].min_count <= len(reports) <= len(whole)
    if len(reports) != len(whole) and not enough:
        raise Misplaced(f"{len(reports)} of its {len(whole)} pods are there")
    return whole[: len(reports)]


def _rooms(
    views: Mapping[str, NodeView], flavors: Mapping[FlavorId, FlavorView]
) -> dict[str, Room]:
    rooms = {name: Room(node=replace(view, usable=True)) for name, view in views.items()}
    by_id = {room.node.id: room for room in rooms.values()}
    for held in load.held_on(nodes=by_id):
        by_id[held.node].take(holder=held, flavor=flavors.get(held.flavor))
    return rooms


def _place(
    room: Room,
    node: Node,
    pod_set: PodSetView,
    report: PodReport,
    flavors: Mapping[FlavorId, FlavorView],
) -> Place | None:
    """The first of its flavors that it can have there, taken out of the room."""
    nothing = Snapshot(
        at=0, flavors=tuple(flavors.values()), clusters=(), queues=(), pending=(), holding=()
    )
    slices = Slices(
        flavors=flavors.values(), demand=partial(Demand, nothing), devices=lambda model: 0
    )
    for flavor in (flavors[id] for id in pod_set.flavors if id in flavors):
        if not _holds(report, node, flavor):
            continue
        place = seat(room=room, pod_set=pod_set, flavor=flavor, slices=slices)
        if place is not None:
            room.take(holder=place, flavor=flavor)
            return replace(place, rank=report.rank)
    return None


def _holds(report: PodReport, node: Node, flavor: FlavorView) -> bool:
    """Whether what it holds is called as a pod of that flavor has it there."""
    names = {name for name, count in report.resources if count}
    if flavor.kind is FlavorKind.CPU:
        return True
    if flavor.kind is FlavorKind.MIG and not node.mig_single:
        return mig_resource(flavor.profile) in names
    return not any(name.startswith(MIG) for name in names)
