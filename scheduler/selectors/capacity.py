"""What of each flavor exists and is free now, by cluster. Facts of the fleet, without whose work
it is.

What must not live here: quota, prices, and any decision where something goes (that is core's).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from clusters import stock
from clusters.models import DeviceMode, Flavor, FlavorKind
from scheduler.core.node import mig
from scheduler.core.quota.equivalents import DEVICE_MILLI
from scheduler.core.units import ONE_MILLI
from scheduler.selectors.fleet import ALL, rows


@dataclass(frozen=True, slots=True)
class Capacity:
    """One flavor in one cluster, in thousandths of the flavor.

    `total_milli` counts usable nodes and devices. What a flavor has free may be free for another
    one too: a device cut on demand is offered to each of its profiles. Of a model's quota, devices
    that hold nothing are free. What foreign pods hold is not free. `usable` is False while the
    cluster takes nothing new, or its pool of the flavor is held.
    """

    flavor_id: UUID
    cluster_id: UUID
    total_milli: int
    free_milli: int
    usable: bool


_CLUSTERS = """
SELECT c.id, c.state = 'active',
       array(SELECT model FROM clusters_hardwarequeue q
             WHERE q.cluster_id = c.id AND q.queue_state <> 'open')
FROM clusters_cluster c
"""
# The mask of a device's taken memory slices, of which a device has eight at most. What is free of
# a shared device is what shares may ask of its free replicas (core.node.replicas).
_DEVICES = f"""
WITH live AS (
    SELECT device_id,
           sum(upper(span) - lower(span)) AS width,
           bit_or(CASE WHEN upper(span) <= 8
                       THEN ((1 << (upper(span) - lower(span))) - 1) << lower(span)
                       ELSE 0 END) AS mask
    FROM (SELECT device_id, span FROM scheduler_placementspan WHERE released_at IS NULL
          UNION ALL SELECT device_id, span FROM clusters_foreignspan) held
    GROUP BY device_id
)
SELECT n.cluster_id, {stock.sql("d")}, d.mode,
       n.share_isolation,
       CASE WHEN d.mode = 'mig-dynamic' THEN coalesce(l.mask, 0)::int ELSE 0 END,
       count(*), count(*) FILTER (WHERE l.device_id IS NULL),
       sum(greatest(n.share_replicas * part.width - coalesce(l.width, 0), 0) / part.width
           * 1000 / n.share_replicas)::bigint
FROM clusters_device d
JOIN clusters_node n ON n.id = d.node_id
CROSS JOIN LATERAL (SELECT 1000 / n.share_replicas AS width) part
LEFT JOIN live l ON l.device_id = d.id
WHERE d.usable AND d.gone_at IS NULL AND n.gone_at IS NULL AND n.ready AND n.schedulable
GROUP BY 1, 2, 3, 4, 5
"""  # noqa: S608  # constants
_SLICES = f"""
SELECT n.cluster_id, {stock.sql("d")}, s.profile, count(*),
       count(*) FILTER (WHERE NOT EXISTS (
           SELECT 1 FROM scheduler_placementspan p
           WHERE p.device_id = s.device_id AND p.released_at IS NULL AND p.span && s.span
           UNION ALL
           SELECT 1 FROM clusters_foreignspan o
           WHERE o.device_id = s.device_id AND o.span && s.span))
FROM clusters_deviceslice s
JOIN clusters_device d ON d.id = s.device_id
JOIN clusters_node n ON n.id = d.node_id
WHERE s.gone_at IS NULL AND d.mode = 'mig-static'
  AND d.usable AND d.gone_at IS NULL AND n.gone_at IS NULL AND n.ready AND n.schedulable
GROUP BY 1, 2, 3
"""  # noqa: S608  # constants
_CORES = """
SELECT n.cluster_id, sum(greatest(0, n.cpu_milli - n.foreign_cpu_milli))::bigint,
       sum(greatest(0, n.cpu_milli - n.foreign_cpu_milli - coalesce(h.cpu_milli, 0)))::bigint
FROM clusters_node n
LEFT JOIN (SELECT node_id, sum(cpu_milli) AS cpu_milli FROM scheduler_placement
           WHERE released_at IS NULL GROUP BY node_id) h ON h.node_id = n.id
WHERE n.gone_at IS NULL AND n.ready AND n.schedulable
GROUP BY 1
"""
_HARDWARE = f"""
SELECT DISTINCT c.name, coalesce({stock.sql("d")}, ''), coalesce(d.mode, ''), n.share_isolation,
       coalesce(s.profile, '')
FROM clusters_node n
JOIN clusters_cluster c ON c.id = n.cluster_id
LEFT JOIN clusters_device d ON d.node_id = n.id AND d.gone_at IS NULL
LEFT JOIN clusters_deviceslice s ON s.device_id = d.id AND s.gone_at IS NULL
                                    AND d.mode = 'mig-static'
WHERE n.gone_at IS NULL
ORDER BY 1
"""  # noqa: S608  # constants


@dataclass(frozen=True, slots=True)
class _Devices:
    """Alike devices of one cluster: how many, how many are empty, free thousandths over all."""

    stock: str
    mode: str
    shares: str
    mask: int
    count: int
    empty: int
    free_milli: int


def by_flavor_and_cluster(*, flavors: Iterable[Flavor]) -> list[Capacity]:
    """Every pair in which the cluster has any of the flavor, in the order of `flavors`. Four
    queries."""
    clusters = rows(_CLUSTERS)
    devices: dict[UUID, list[_Devices]] = {}
    for cluster_id, *facts in rows(_DEVICES):
        devices.setdefault(cluster_id, []).append(_Devices(*facts))
    slices = {(c, of, profile): (n, free) for c, of, profile, n, free in rows(_SLICES)}
    cores = {cluster_id: (total, free) for cluster_id, total, free in rows(_CORES)}
    found = []
    for flavor in flavors:
        for cluster_id, active, held in clusters:
            total, free = _amounts(
                flavor,
                devices=devices.get(cluster_id, ()),
                slices=slices.get((cluster_id, flavor.stock, flavor.profile), (0, 0)),
                cores=cores.get(cluster_id, (0, 0)),
            )
            if total:
                usable = active and not {ALL, flavor.stock} & set(held)
                found.append(Capacity(flavor.id, cluster_id, total, free, usable))
    return found


def places(*, flavors: Iterable[Flavor]) -> dict[UUID, tuple[str, ...]]:
    """By flavor, the clusters that have any of it, whether it can be used now or not, by name. One
    query."""
    there = rows(_HARDWARE)
    found: dict[UUID, list[str]] = {}
    for flavor in flavors:
        for cluster, of, mode, shares, profile in there:
            total, _ = _amounts(
                flavor,
                devices=[_Devices(of, mode, shares, mask=0, count=1, empty=1, free_milli=0)],
                slices=((of, profile) == (flavor.stock, flavor.profile), 0),
                cores=(1, 0),
            )
            if total and cluster not in found.setdefault(flavor.id, []):
                found[flavor.id].append(cluster)
    return {id: tuple(names) for id, names in found.items()}


def there_milli(*, flavor: Flavor) -> int:
    """What all clusters together have of it. Four queries."""
    return sum(each.total_milli for each in by_flavor_and_cluster(flavors=[flavor]))


def _amounts(
    flavor: Flavor,
    *,
    devices: Iterable[_Devices],
    slices: tuple[int, int],
    cores: tuple[int, int],
) -> tuple[int, int]:
    """(total, free) in thousandths of the flavor."""
    if flavor.kind == FlavorKind.CPU:
        return cores
    alike = [group for group in devices if group.stock == flavor.stock]
    if flavor.kind == FlavorKind.MODEL:
        return (
            sum(group.count for group in alike) * DEVICE_MILLI,
            sum(group.empty for group in alike) * DEVICE_MILLI,
        )
    if flavor.kind == FlavorKind.MIG:
        cut = [group for group in alike if group.mode == DeviceMode.MIG_DYNAMIC]
        total = slices[0] + sum(group.count * _fitting(flavor, 0) for group in cut)
        free = slices[1] + sum(group.count * _fitting(flavor, group.mask) for group in cut)
        return total * ONE_MILLI, free * ONE_MILLI
    whole = [group for group in alike if group.mode == DeviceMode.WHOLE]
    if flavor.kind == FlavorKind.WHOLE:
        return (
            sum(group.count for group in whole) * ONE_MILLI,
            sum(group.empty for group in whole) * ONE_MILLI,
        )
    shared = [group for group in whole if group.shares == flavor.isolation]
    return (
        sum(group.count for group in shared) * ONE_MILLI,
        sum(group.free_milli for group in shared),
    )


def _fitting(flavor: Flavor, taken: int) -> int:
    """How many slices of the profile one such device could still hold if it held nothing else."""
    profile = mig.profile(model=flavor.model, name=flavor.profile)
    if profile is None:
        return 0
    count = 0
    # Spans of one profile are equally wide and sorted by start, so taking the first that fits is
    # best.
    for span in mig.legal_spans(model=flavor.model, profile=flavor.profile):
        if not mig.mask(span) & taken:
            taken |= mig.mask(span)
            count += 1
    return min(count, profile.at_most)
