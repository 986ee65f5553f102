"""Clusters: what each has and what is free, and the map of one with who holds which span."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import BooleanField, ExpressionWrapper, Q
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from clusters import selectors
from clusters.models import DeviceMode, Isolation
from clusters.web.connections import attention
from clusters.web.pools import cards, node_pools
from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel import device_map as maps
from controlplane.kernel.charts import TONES
from controlplane.kernel.device_map import DeviceMap, Holding
from controlplane.kernel.errors import NotFound
from controlplane.kernel.htmx import minute, page, partial, revision, unchanged
from scheduler.models import Confinement
from scheduler.selectors import (
    capacity,
    confinements,
    hardware,
    kept,
    pools,
    recuts,
    strays,
    unseen,
)
from scheduler.selectors.hardware import ClusterFacts, DeviceFacts, NodeFacts, SpanHeld
from scheduler.selectors.offers import TAGS
from tenants.access import Action, Actor

OTHERS = "Others"
FOREIGN = "Outside Berth"
MOST_PROJECTS = 100
"""Of a cluster, on its page; the API has all."""


@dataclass(frozen=True, slots=True)
class Total:
    """One flavor in a cluster. `tag` is as in `offers.TAGS`."""

    flavor: str
    tag: str
    total_milli: int
    free_milli: int

    @property
    def used_milli(self) -> int:
        return self.total_milli - self.free_milli


@page("GET", "HEAD")
def cluster_list(request: HttpRequest) -> HttpResponse:
    """Every cluster: hardware is no tenant's secret, who uses it is."""
    actor = actor_of(request)
    facts = hardware.clusters()
    totals = _totals()
    at = clock.now()
    idle = kept.lately(at=at) if actor.fleet_roles else None
    operates = actor.permits_everywhere(Action.OPERATE)
    connections = selectors.connections() if operates else {}
    told = {
        one.id: attention(connections.get(one.id, selectors.Connection()), at=at)
        for one in facts
        if operates
    }
    rev = revision(facts, totals, idle, told, minute(at))
    same = unchanged(request, rev)
    if same is not None:
        return same
    context = {
        "clusters": [(one, totals.get(one.id, ()), told.get(one.id, ())) for one in facts],
        "may_operate": operates,
        "may_see_layouts": bool(actor.fleet_roles),
        "kept": idle,
        "rev": rev,
    }
    return partial(request, "clusters/cluster_list.html", "clusters", context)


@page("GET", "HEAD")
def cluster_detail(request: HttpRequest, name: str) -> HttpResponse:
    """One cluster with its map; `?node=` shows that node alone, in detail."""
    actor = actor_of(request)
    [facts] = hardware.clusters(name=name)
    chosen = request.GET.get("node") or None
    if chosen and not chosen.isprintable():
        raise NotFound("There is no such node.")
    held = hardware.revision(cluster_id=facts.id)
    at = clock.now()
    figures = pools.newest(cluster_id=facts.id, at=at)
    closed = selectors.closed_queues(cluster_id=facts.id)
    moved = [(one.model, one.queue_changed_at) for one in closed]
    operates = actor.permits_everywhere(Action.OPERATE)
    told = attention(selectors.connection(cluster_id=facts.id), at=at) if operates else ()
    stuck = recuts.stuck_nodes(cluster_id=facts.id) if operates else ()
    confined = _confined(actor, facts)
    left = unseen.left_in(cluster_id=facts.id) if actor.fleet_roles else None
    older = strays.found_in(cluster_id=facts.id) if actor.fleet_roles else None
    states = [
        (one.id, one.is_drifted, one.repaired_at, one.error, bool(one.digest)) for one in confined
    ]
    newest = [one.id for one in figures]
    coming = selectors.coming_nodes(cluster_id=facts.id)
    rev = revision(
        facts,
        held,
        chosen,
        newest,
        moved,
        told,
        stuck,
        states,
        left,
        older,
        [(one.pool.figures, one.node) for one in coming],
        minute(at),
    )
    same = unchanged(request, rev)
    if same is not None:
        return same
    nodes = hardware.nodes(actor=actor, cluster_id=facts.id, node=chosen)
    totals = _totals().get(facts.id, ())
    context = {
        "cluster": facts,
        "closed": closed,
        "left": left,
        "older": older,
        "may_operate": operates,
        "attention": told,
        "stuck": stuck,
        "totals": totals,
        "node_pools": node_pools(nodes),
        "coming": coming,
        "confined": confined,
        "pools": cards(cluster_id=facts.id, newest=figures, at=at),
        "map": _map(actor, facts, nodes),
        "node": chosen,
        "counted": any(not device.exact for node in nodes for device in node.devices),
        "exact": any(device.exact for node in nodes for device in node.devices),
        "untold": [node for node in nodes if node.untold],
        "plain_nodes": [node for node in nodes if not node.devices],
        "rev": rev,
    }
    return partial(request, "clusters/cluster_detail.html", "cluster", context)


def _confined(actor: Actor, facts: ClusterFacts) -> list[Confinement]:
    """For fleet roles; those first in which something is amiss."""
    if not actor.fleet_roles:
        return []
    rows = confinements.here(actor=actor, cluster_id=facts.id)
    amiss = confinements.DRIFTED | ~Q(error="")
    return list(
        rows.order_by(ExpressionWrapper(amiss, BooleanField()).desc(), "id")[:MOST_PROJECTS]
    )


def _totals() -> dict[UUID, tuple[Total, ...]]:
    """Cluster → its flavors, whole GPUs first."""
    flavors = selectors.flavors_by_kind()
    known = {flavor.id: flavor for flavor in flavors}
    found: dict[UUID, list[Total]] = {}
    for one in capacity.by_flavor_and_cluster(flavors=flavors):
        flavor = known[one.flavor_id]
        tag = TAGS[Isolation(flavor.isolation)]
        total = Total(flavor.name, tag, one.total_milli, one.free_milli)
        found.setdefault(one.cluster_id, []).append(total)
    return {cluster: tuple(totals) for cluster, totals in found.items()}


def _map(actor: Actor, facts: ClusterFacts, nodes: Sequence[NodeFacts]) -> DeviceMap:
    by_tenant = bool(actor.fleet_roles)
    address = reverse("cluster-detail", args=[facts.name])
    shown = [node for node in nodes if node.devices]
    return maps.device_map(
        id="map",
        title=f"GPUs of {facts.name}",
        owners=_owners(actor, by_tenant=by_tenant),
        clusters=[
            maps.Cluster(
                name=facts.name,
                nodes=[
                    maps.Node(
                        name=node.name,
                        model=_hardware(node),
                        devices=[_device(device, by_tenant=by_tenant) for device in node.devices],
                        state=node.state,
                        url=f"{address}?node={node.name}",
                    )
                    for node in shown
                ],
                state="" if facts.standing == "active" else facts.standing,
            )
        ],
    )


def _owners(actor: Actor, *, by_tenant: bool) -> list[str]:
    """All owners there may be, in a fixed order so that colours stay; others get the grey one."""
    names = hardware.owners(actor=actor, by_tenant=by_tenant)
    first = names[: TONES - 1]
    nobody = [f"({number})" for number in range(TONES - 1 - len(first))]
    return [*first, *nobody, OTHERS, FOREIGN, *names[TONES - 1 :]]


def _hardware(node: NodeFacts) -> str:
    """Its models, and what keeps those apart who share one of its GPUs: "L4, no isolation"."""
    models = dict.fromkeys(device.model for device in node.devices)
    return ", ".join(filter(None, (*models, TAGS[node.isolation])))


def _device(device: DeviceFacts, *, by_tenant: bool) -> maps.Device:
    slices = [(one.start, one.end) for one in device.slices]
    return maps.Device(
        name=str(device.ordinal),
        axis=device.axis,
        holdings=[_holding(held, by_tenant=by_tenant) for held in device.held],
        healthy=device.healthy,
        cuts=maps.edges(slices, device.axis) if device.mode == DeviceMode.MIG_STATIC else None,
    )


def _holding(held: SpanHeld, *, by_tenant: bool) -> Holding:
    """Operators tell tenants apart, others their own projects."""
    if held.workload_id is None:
        return Holding(held.start, held.end, FOREIGN if held.foreign else OTHERS)
    return Holding(
        held.start,
        held.end,
        held.tenant if by_tenant else held.project,
        held.state,
        label=held.workload,
        url=reverse("workload-detail", args=[held.workload_id]),
    )
