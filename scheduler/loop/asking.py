"""What a pod that others made asks for, in Berth's words: how many devices, of which flavors."""

from dataclasses import dataclass
from typing import Any, Self

from clusters import stock
from clusters.models import Cluster
from scheduler.core.snapshot import FlavorKind
from scheduler.core.units import ONE_MILLI
from scheduler.loop.requests import MIG, mig_resource
from scheduler.selectors import fleet
from scheduler.selectors.fleet import rows


class Refused(Exception):
    """Berth has no words for it; the message says what would be right."""


@dataclass(frozen=True, slots=True)
class Asks:
    """Of one pod; at least something of cores and memory, as every workload's pods."""

    cpu_milli: int
    memory_mib: int
    resources: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, said: dict[str, Any]) -> Self:  # Any: JSON, as `caught.said` makes it
        resources = sorted((name, count) for name, count in said["resources"].items() if count)
        return cls(max(1, said["cpu_milli"]), max(1, said["memory_mib"]), tuple(resources))


@dataclass(frozen=True, slots=True)
class Devices:
    """As a pod set says it. `flavors` are names."""

    gpu_count: int
    gpu_milli: int
    flavors: tuple[str, ...]


# What nodes of the cluster have, and are asked for by.
_OFFERED = f"""
SELECT DISTINCT {stock.sql("d")}, n.gpu_resource, n.share_replicas, n.share_resource, n.mig_single
FROM clusters_device d JOIN clusters_node n ON n.id = d.node_id
WHERE n.cluster_id = %s AND d.gone_at IS NULL AND n.gone_at IS NULL
"""  # noqa: S608  # constants


def device(*, cluster: Cluster, asks: Asks, named: tuple[str, ...]) -> Devices:
    """Of which flavors it accepts how many: those that are `named`, else all that have what it
    asks for in that cluster. Raises Refused."""
    named = tuple(dict.fromkeys(named))
    offered = rows(_OFFERED, [cluster.id])
    flavors = fleet.flavors()
    cpu = tuple(sorted(each.name for each in flavors if each.kind is FlavorKind.CPU))
    if not asks.resources:
        return Devices(0, ONE_MILLI, named or cpu)
    found: dict[str, Devices] = {}
    for resource, count in asks.resources:
        names: set[str] = set()
        devices, milli = count, ONE_MILLI
        for of, whole, replicas, shared, single in offered:
            for each in flavors:
                if each.model != of:
                    continue
                if each.kind is FlavorKind.MIG:
                    asked_as = whole if single else mig_resource(each.profile)
                    fits = asked_as == resource
                elif each.kind is FlavorKind.WHOLE:
                    fits = replicas == 1 and not single and whole == resource
                else:
                    fits = each.kind is FlavorKind.SHARE and replicas > 1 and shared == resource
                    if fits:
                        devices, milli = 1, count * ONE_MILLI // replicas
                if fits:
                    names.add(each.name)
        if names and 0 < milli <= ONE_MILLI:
            found[resource] = Devices(devices, milli, tuple(sorted(names)))
    # The same names as `requests.differs` knows for devices.
    known = {name for _, whole, _, shared, _ in offered for name in (whole, shared)}
    amiss = any(
        resource not in found and (resource in known or resource.startswith(MIG))
        for resource, _ in asks.resources
    )
    if len(found) != 1 or amiss:
        told = ", ".join(name for name, _ in asks.resources)
        several = "of several kinds" if found else f"that no flavor has in {cluster.name}"
        raise Refused(f"It asks for {told}: devices {several}. Ask for those of one flavor.")
    [only] = found.values()
    return Devices(only.gpu_count, only.gpu_milli, named) if named else only
