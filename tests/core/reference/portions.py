"""What a pod gets: as much as it asks for, of what it accepts, on what takes new work."""

from fractions import Fraction

from scheduler.core.plan import Place
from scheduler.core.snapshot import (
    DeviceMode,
    DeviceView,
    FlavorKind,
    FlavorView,
    PendingView,
    PodSetView,
)
from tests.core.build import BY_NAME
from tests.core.reference.tried import Case
from tests.core.reference.world import World, isolates

SLICES = {"1g": (1, range(7)), "3g": (4, (0, 4))}
"""How many memory slices of an H100 a profile takes, and where it may begin (NVIDIA's "MIG User
Guide", Supported MIG Profiles)."""


def check(world: World, asked: PendingView, place: Place) -> None:
    [pod_set] = [each for each in asked.pod_sets if each.id == place.pod_set]
    nodes, devices = world.takes_new()
    assert place.node in nodes, "on a node that takes nothing new"
    assert place.flavor in pod_set.flavors, "of a flavor that it does not accept"
    on = {device for device, _ in place.spans}
    assert on <= {device.id for device in nodes[place.node].devices}, "on another node's device"
    assert on <= devices.keys(), "on a device that takes nothing new"
    assert len(on) == pod_set.gpu_count, "of as many devices as it asks for"
    flavor = BY_NAME[place.flavor]
    least = max(world.queues[asked.project].least_isolation, pod_set.least_isolation, key=isolates)
    assert isolates(flavor.isolation) >= isolates(least), "neighbours are too near"
    _check_amount(pod_set, flavor, place.amount_milli)
    is_share = flavor.kind is FlavorKind.SHARE
    world.tried[Case.BY_MEMORY] += is_share and pod_set.gpu_memory_mib is not None
    world.tried[Case.REPLICAS] += is_share
    world.tried[Case.SLICE] += flavor.kind is FlavorKind.MIG
    for device in on:
        spans = [(span.start, span.end) for id, span in place.spans if id == device]
        _check_spans(devices[device], flavor, place.amount_milli, spans)


def least_milli(pod_set: PodSetView, flavor: str) -> int:
    """What it takes of the flavor to start: a search from nothing upwards, for memory."""
    return pod_set.min_count * _a_pod_milli(pod_set, BY_NAME[flavor])  # type: ignore[index]


def _a_pod_milli(pod_set: PodSetView, flavor: FlavorView) -> int:
    if not pod_set.gpu_count:
        return pod_set.cpu_milli
    if pod_set.gpu_memory_mib is None or flavor.kind is not FlavorKind.SHARE:
        return pod_set.gpu_count * (1000 if pod_set.gpu_memory_mib else pod_set.gpu_milli)
    milli = 1
    while milli * flavor.memory_mib < pod_set.gpu_memory_mib * 1000:
        milli += 1
    return milli


def _check_amount(pod_set: PodSetView, flavor: FlavorView, amount_milli: int) -> None:
    asked_mib = pod_set.gpu_memory_mib
    assert asked_mib is None or asked_mib <= flavor.memory_mib, "of too little memory"
    assert amount_milli == _a_pod_milli(pod_set, flavor), "charged for more or less than it asks"


def _check_spans(
    device: DeviceView, flavor: FlavorView, amount_milli: int, spans: list[tuple[int, int]]
) -> None:
    """A share alone may lie in several."""
    assert device.model == flavor.model, "on a device of another model"
    if flavor.kind is FlavorKind.MIG:
        width, starts = SLICES[flavor.id]
        assert device.mode is DeviceMode.MIG_DYNAMIC, "a slice of what is not cut"
        assert spans in [[(start, start + width)] for start in starts], "no such slice"
        return
    assert device.mode is DeviceMode.WHOLE, "of a device that is given in slices"
    if flavor.kind is FlavorKind.WHOLE:
        assert spans == [(0, 1000)], "not all of a device"
        return
    assert device.shares is flavor.isolation, "a share of what is not shared so"
    replicas = Fraction(sum(end - start for start, end in spans), 1000 // device.replicas)
    asked = amount_milli * device.replicas
    assert replicas.denominator == 1, "a replica in part"
    assert (replicas - 1) * 1000 < asked <= replicas * 1000, "more or fewer than it asks for"
