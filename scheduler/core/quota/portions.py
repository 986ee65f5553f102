"""What a pod gets of a flavor: of one that asks for memory of a device, the least part with it."""

from dataclasses import replace
from fractions import Fraction

from scheduler.core.node import mig
from scheduler.core.node.isolation import is_enough
from scheduler.core.snapshot import FlavorKind, FlavorView, PodSetView
from scheduler.core.units import ONE_MILLI


def share_milli(*, asked_mib: int, device_mib: int) -> int:
    """The least thousandths of a device of so much memory that have what is asked; over 1000 where
    it has less."""
    return -(-asked_mib * ONE_MILLI // device_mib)


def portion_milli(*, gpu_memory_mib: int, flavor: FlavorView) -> int | None:
    """The least thousandths of one device of the flavor with so much memory, or all of one slice
    or whole device; None where one has less, or its memory is not known."""
    if not 0 < gpu_memory_mib <= flavor.memory_mib:
        return None
    if flavor.kind is FlavorKind.SHARE:
        return share_milli(asked_mib=gpu_memory_mib, device_mib=flavor.memory_mib)
    return ONE_MILLI if flavor.kind in (FlavorKind.WHOLE, FlavorKind.MIG) else None


def as_given(*, pod_set: PodSetView, flavor: FlavorView) -> PodSetView:
    """The pod set as it asks where it gets the flavor: in thousandths of it. One that does not ask
    for memory, or for more than the flavor has, stays as it is."""
    if pod_set.gpu_memory_mib is None:
        return pod_set
    milli = portion_milli(gpu_memory_mib=pod_set.gpu_memory_mib, flavor=flavor)
    if milli is None:
        return pod_set
    return replace(pod_set, gpu_milli=milli, gpu_memory_mib=None)


def is_as_good(flavor: FlavorView, accepted: FlavorView) -> bool:
    """Whether it gives as much: of the same kind, a slice as large, neighbours as far apart."""
    if flavor.kind is not accepted.kind or flavor.kind is FlavorKind.CPU:
        return False
    if flavor.kind is FlavorKind.MIG:
        return _part(flavor) >= _part(accepted)
    return is_enough(given=flavor.isolation, least=accepted.isolation)


def _part(flavor: FlavorView) -> Fraction:
    return mig.device_equivalent(model=flavor.model, profile=flavor.profile) or Fraction(1)
