"""Cluster reports → rows: nodes, devices and their slices. A vanished one is marked, never
deleted."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import NumericRange
from django.db.models import F, Q

from clusters import selectors
from clusters.models import Cluster, Device, DeviceMode, DeviceSlice, Node
from clusters.port import MOST_DEVICES, MOST_NODES, ClusterError, Fault, NodeReport

logger = logging.getLogger(__name__)

type Layout = Sequence[Sequence[tuple[str, int, int]]]
"""A device's slices as (profile, start, end), one inner sequence a device."""

type Arrange = Callable[[str, Mapping[str, int], int], Layout]
"""(model, slices of each profile, devices) → where they lie; raises ValueError when impossible."""


def sync(
    *,
    cluster: Cluster,
    reports: Iterable[NodeReport],
    gone: Iterable[str] = (),
    complete: bool,
    arrange: Arrange,
    at: datetime,
    held: Collection[UUID] = (),
) -> bool:
    """Make the rows as the reports say; True when anything changed.

    `complete` means that the reports are all nodes there are: others are marked gone. `gone` names
    nodes whose deletion was seen. A node that comes back gets its row back. `held` are devices
    that work is on, and that are no longer told, or told in another way: a count token where a
    driver publishes devices now, or a device with a uuid where none does. Their rows stay what
    they were, and beside them nothing new starts, for both may be one. Those of another cluster
    that work is on stay there. Raises ClusterError for more nodes than a cluster can have.
    """
    by_name = {report.name: _counted(report, arrange) for report in reports}
    with transaction.atomic():
        # One writer at a time for a cluster's inventory.
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        rows = {
            node.name: node
            for node in Node.objects.filter(cluster=cluster)
            if complete or node.name in by_name or node.name in set(gone)
        }
        changed = _sync_nodes(cluster, by_name, rows)
        missing = {name for name in rows if name not in by_name} if complete else set(gone)
        vanished = Node.objects.filter(
            cluster=cluster, name__in=missing, gone_at__isnull=True
        ).update(gone_at=at, ready=False)
        changed |= bool(vanished)
        if changed and not complete:  # a list has its own limit
            _refuse_too_many(cluster)
        if missing:
            changed |= _let_go(cluster, held, at)
        owned = _owned(cluster, by_name.values(), held, at)
        changed |= _sync_devices(_identified(by_name, rows, held, owned), rows, arrange, at)
        if changed:
            Cluster.objects.filter(pk=cluster.pk).update(inventory_rev=F("inventory_rev") + 1)
    return changed


def _refuse_too_many(cluster: Cluster) -> None:
    if Node.objects.filter(cluster=cluster, gone_at__isnull=True).count() > MOST_NODES:
        told = f"The cluster told of more than {MOST_NODES:,} nodes."
        raise ClusterError(Fault.MALFORMED, told)


def _counted(report: NodeReport, arrange: Arrange) -> NodeReport:
    """With the fewest devices that its slices can be cut from, where it does not tell how many."""
    if not (report.mig_single and report.mig_counts):
        return report
    [device] = report.devices
    [(profile, slices)] = report.mig_counts.items()
    for of_one in range(min(slices, MOST_OF_ONE), 0, -1):
        with suppress(ValueError):
            arrange(device.model, {profile: of_one}, 1)
            devices = range(-(-slices // of_one))
            if len(devices) <= MOST_DEVICES:
                return replace(report, devices=tuple(replace(device, ordinal=n) for n in devices))
            break
    return replace(report, mig_counts={})  # more than make sense, or of what nobody knows


MOST_OF_ONE = 8
"""Slices of one device."""

_NODE_FIELDS = (
    "hostname",
    "ready",
    "schedulable",
    "leaving",
    "cpu_milli",
    "memory_mib",
    "share_replicas",
    "share_isolation",
    "share_resource",
    "gpu_resource",
    "mig_single",
    "device_driver",
    "labels",
)


def _sync_nodes(
    cluster: Cluster, reports: Mapping[str, NodeReport], rows: dict[str, Node]
) -> bool:
    new, edited = [], []
    for name, report in reports.items():
        wanted = {field: getattr(report, field) for field in _NODE_FIELDS}
        wanted["labels"] = dict(report.labels)
        node = rows.get(name)
        if node is None:
            rows[name] = Node(cluster=cluster, name=name, **wanted)
            new.append(rows[name])
        elif node.gone_at is not None or any(
            getattr(node, field) != value for field, value in wanted.items()
        ):
            for field, value in wanted.items():
                setattr(node, field, value)
            node.gone_at = None
            edited.append(node)
    Node.objects.bulk_create(new, batch_size=1000)
    Node.objects.bulk_update(edited, [*_NODE_FIELDS, "gone_at"], batch_size=200)
    return bool(new or edited)


def _let_go(cluster: Cluster, held: Collection[UUID], at: datetime) -> bool:
    """Devices with a uuid that were in a node that is gone: they may come back in another."""
    there = Device.objects.filter(node__cluster=cluster, gone_at__isnull=True).exclude(uuid="")
    lost = there.filter(node__gone_at__isnull=False).exclude(pk__in=held)
    return bool(lost.update(gone_at=at, usable=False))


def uuids(reports: Iterable[NodeReport]) -> set[str]:
    """Of all devices that they tell of by one."""
    return {seen.uuid for report in reports for seen in report.devices} - {""}


STAYS = timedelta(days=1)
"""For so long after a device went it is its cluster's, and no other that tells of it gets it."""


def _owned(
    cluster: Cluster, reports: Collection[NodeReport], held: Collection[UUID], at: datetime
) -> dict[str, object]:
    """By uuid: the node of another cluster whose device it is.

    What a cluster says of its own hardware counts first, or another one that tells of the same
    uuid while a driver is away would keep the device for itself. A node that its own cluster took
    away may have been moved.
    """
    there = Device.objects.filter(uuid__in=uuids(reports)).exclude(node__cluster=cluster)
    stays = Q(node__gone_at__isnull=True) & (Q(gone_at__isnull=True) | Q(gone_at__gt=at - STAYS))
    return dict(there.filter(stays | Q(pk__in=held)).values_list("uuid", "node_id"))


def _identified(
    reports: Mapping[str, NodeReport],
    nodes: Mapping[str, Node],
    held: Collection[UUID],
    owned: Mapping[str, object],
) -> dict[str, NodeReport]:
    """With the ordinals that devices with a uuid have in their node already; others get one that
    is free, or that of a device without. One that another node has as well, or that is `owned` by
    one, is left out: there it may be in use. Ordinals of what is `held` are not free, and beside
    those nothing is usable."""
    kept: dict[object, set[int]] = {}
    for node, ordinal in Device.objects.filter(pk__in=held).values_list("node_id", "ordinal"):
        kept.setdefault(node, set()).add(ordinal)
    rows = Device.objects.filter(uuid__in=uuids(reports.values()), gone_at__isnull=True)
    homes = {**dict(rows.values_list("uuid", "node_id")), **owned}
    ordinals: dict[object, dict[str, int]] = {}
    for node, uuid, ordinal in (
        Device.objects.filter(node_id__in=[nodes[name].pk for name in reports])
        .exclude(uuid="")
        .order_by("gone_at")  # the last one counts: one that is there, if any is
        .values_list("node_id", "uuid", "ordinal")
    ):
        ordinals.setdefault(node, {})[uuid] = ordinal
    found = dict(reports)
    for name, report in reports.items():
        node = nodes[name].pk
        taken = kept.get(node, set())
        seen_here = [replace(s, usable=s.usable and not taken) for s in report.devices]
        if not report.device_driver:
            if taken:
                free = iter(sorted(set(range(len(taken) + len(seen_here))) - taken))
                devices = tuple(replace(seen, ordinal=next(free)) for seen in seen_here)
                found[name] = replace(report, devices=devices)
            continue
        strangers = {s.uuid for s in report.devices if homes.get(s.uuid, node) != node}
        if strangers:
            logger.warning("node %s: %s are devices of another node", name, sorted(strangers))
        here = [seen for seen in seen_here if seen.uuid not in strangers]
        for seen in here:
            homes[seen.uuid] = node
        known = ordinals.get(node, {})
        most = len(known) + len(here) + len(taken)
        free = iter(sorted(set(range(most)) - set(known.values()) - taken))
        devices = tuple(replace(s, ordinal=known.get(s.uuid, -1)) for s in here)
        devices = tuple(s if s.ordinal >= 0 else replace(s, ordinal=next(free)) for s in devices)
        found[name] = replace(report, devices=devices)
    return found


_DEVICE_FIELDS = ("model", "capacity", "memory_mib", "mode", "uuid", "usable")


def _sync_devices(
    reports: Mapping[str, NodeReport], nodes: Mapping[str, Node], arrange: Arrange, at: datetime
) -> bool:
    ids = [nodes[name].pk for name in reports]
    rows: dict[object, dict[int, Device]] = {}
    for device in Device.objects.filter(node_id__in=ids):
        rows.setdefault(device.node_id, {})[device.ordinal] = device
    new: list[Device] = []
    edited: list[Device] = []
    lost: list[Device] = []
    apart = selectors.capacities()
    for name, report in reports.items():
        existing = rows.setdefault(nodes[name].pk, {})
        capacity = nodes[name].origin.capacity
        for seen in report.devices:
            wanted = {
                "model": seen.model,
                "capacity": capacity if (seen.model, capacity) in apart else "",
                "memory_mib": seen.memory_mib,
                "mode": seen.mode,
                "uuid": seen.uuid,
                "usable": seen.usable,
            }
            known = existing.get(seen.ordinal)
            if known is None:
                known = Device(node=nodes[name], ordinal=seen.ordinal, **wanted)
                existing[seen.ordinal] = known
                new.append(known)
            elif known.gone_at is not None or any(
                getattr(known, field) != value for field, value in wanted.items()
            ):
                for field, value in wanted.items():
                    setattr(known, field, value)
                known.gone_at = None
                edited.append(known)
        shown = {seen.ordinal for seen in report.devices}
        for ordinal, device in existing.items():
            if ordinal not in shown and device.gone_at is None:
                device.gone_at, device.usable = at, False
                lost.append(device)
    Device.objects.bulk_create(new, batch_size=2000)
    Device.objects.bulk_update(edited, [*_DEVICE_FIELDS, "gone_at"], batch_size=200)
    Device.objects.bulk_update(lost, ["gone_at", "usable"], batch_size=200)
    changed = _sync_slices(reports, nodes, rows, arrange, at)
    return bool(new or edited or lost or changed)


def _sync_slices(
    reports: Mapping[str, NodeReport],
    nodes: Mapping[str, Node],
    devices: Mapping[object, Mapping[int, Device]],
    arrange: Arrange,
    at: datetime,
) -> bool:
    """Keep the slices of nodes whose counts did not change: where they lie is our own choice,
    unless it is told."""
    cut = {
        name: [
            device
            for _, device in sorted(devices[nodes[name].pk].items())
            if device.mode == DeviceMode.MIG_STATIC and device.gone_at is None
        ]
        for name in reports
    }
    live: dict[object, list[DeviceSlice]] = {}
    for row in DeviceSlice.objects.filter(
        device__node_id__in=[nodes[name].pk for name in reports], gone_at__isnull=True
    ).select_related("device"):
        live.setdefault(row.device.node_id, []).append(row)
    new, lost = [], []
    for name, report in reports.items():
        existing = live.get(nodes[name].pk, [])
        try:
            layout = _layout(report, cut[name], existing, arrange)
        except ValueError as error:  # a node that claims the impossible harms only itself
            logger.warning("node %s: its MIG slices can't be laid out: %s", name, error)
            layout = [()] * len(cut[name])
        wanted = {
            (device.pk, *piece): device
            for device, slices in zip(cut[name], layout, strict=True)
            for piece in slices
        }
        for row in existing:
            if wanted.pop((row.device_id, *_piece(row)), None) is None:
                lost.append(row.pk)
        new += [
            DeviceSlice(device=device, profile=profile, span=NumericRange(start, end))
            for (_, profile, start, end), device in wanted.items()
        ]
    DeviceSlice.objects.filter(pk__in=lost).update(gone_at=at)
    DeviceSlice.objects.bulk_create(new, batch_size=2000)
    return bool(new or lost)


def _layout(
    report: NodeReport, cut: Sequence[Device], existing: Sequence[DeviceSlice], arrange: Arrange
) -> Layout:
    """Where the slices of its devices that are `cut` lie, in their order."""
    if report.device_driver:
        told = {seen.ordinal: seen.slices for seen in report.devices}
        return [[(s.profile, s.start, s.end) for s in told[device.ordinal]] for device in cut]
    wanted = {profile: count for profile, count in report.mig_counts.items() if count}
    if not cut or not wanted:
        return [()] * len(cut)
    if Counter(row.profile for row in existing) == Counter(wanted):
        rows = [[_piece(row) for row in existing if row.device_id == each.pk] for each in cut]
        if sum(map(len, rows)) == len(existing):
            return rows
    return arrange(cut[0].model, wanted, len(cut))


def _piece(row: DeviceSlice) -> tuple[str, int, int]:
    return row.profile, row.span.lower, row.span.upper
