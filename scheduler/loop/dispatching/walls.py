"""Pure: how much of each resource a project's pods may ask for together in a cluster.

It is the second wall: the first is the project's quota in the database, which no admission
passes. Whatever the first lets in, this lets in too.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from scheduler.core.snapshot import DeviceMode, FlavorKind
from scheduler.core.units import ONE_MILLI
from scheduler.loop.pods.requests import mig_resource

SLICES_OF_ONE = 8
"""At most, of one device whose slices are made on demand."""


class Hardware(NamedTuple):
    """So many like devices of a cluster, or, with a `profile`, so many slices cut once and for
    all. The other fields are their node's."""

    model: str
    mode: DeviceMode
    profile: str
    number: int
    gpu_resource: str
    share_resource: str
    share_replicas: int
    share_isolation: str
    mig_single: bool


class Entitled(NamedTuple):
    """The most that a project may hold of a flavor, in thousandths; None is no limit."""

    kind: FlavorKind
    model: str
    profile: str
    isolation: str
    most_milli: int | None


def limits(
    *, hardware: Iterable[Hardware], entitled: Iterable[Entitled]
) -> tuple[tuple[str, int], ...]:
    """Of each resource that the cluster offers, by name: what its flavors amount to there, and no
    more than the cluster has."""
    hardware, entitled = tuple(hardware), tuple(entitled)
    offered: dict[str, int] = defaultdict(int)
    for one in hardware:
        for resource, count in _offers(one, entitled):
            offered[resource] += count
    owed: dict[str, int] = dict.fromkeys(offered, 0)
    for flavor in entitled:
        for resource, count in _owed(flavor, hardware, offered).items():
            owed[resource] += count
    return tuple(
        (resource, min(most, owed[resource])) for resource, most in sorted(offered.items())
    )


def _offers(one: Hardware, entitled: Iterable[Entitled]) -> Iterator[tuple[str, int]]:
    if one.mode is DeviceMode.WHOLE:
        yield _resource(one, one.profile), one.number * one.share_replicas
    elif one.profile:
        yield _resource(one, one.profile), one.number
    elif one.mode is DeviceMode.MIG_DYNAMIC:
        for profile in {flavor.profile for flavor in entitled if flavor.model == one.model} - {""}:
            yield _resource(one, profile), one.number * SLICES_OF_ONE


def _owed(
    flavor: Entitled, hardware: Iterable[Hardware], offered: dict[str, int]
) -> dict[str, int]:
    """What the flavor's amount is at most, asked for as each of the resources."""
    found: dict[str, int] = {}
    for one in hardware:
        if one.model != flavor.model:
            continue
        per_unit = _per_unit(flavor, one)
        resource = _resource(one, flavor.profile)
        if per_unit and resource in offered:
            most = flavor.most_milli
            count = offered[resource] if most is None else most * per_unit // ONE_MILLI
            found[resource] = max(count, found.get(resource, 0))
    return found


def _per_unit(flavor: Entitled, one: Hardware) -> int:
    """How many of the resource one whole unit of the flavor may come to be; 0: of none."""
    match flavor.kind:
        case FlavorKind.WHOLE if one.mode is DeviceMode.WHOLE:
            return one.share_replicas
        case FlavorKind.SHARE if one.mode is DeviceMode.WHOLE:
            # A pod is charged for a thousandth at least, and takes one replica at least.
            return ONE_MILLI if one.share_isolation == flavor.isolation else 0
        case FlavorKind.MIG if one.mode is not DeviceMode.WHOLE:
            return 1 if one.profile in ("", flavor.profile) else 0
    return 0


def _resource(one: Hardware, profile: str) -> str:
    """As `pods/requests` asks for it."""
    if one.mode is not DeviceMode.WHOLE:
        return one.gpu_resource if one.mig_single else mig_resource(profile)
    return one.gpu_resource if one.share_replicas == 1 else one.share_resource
