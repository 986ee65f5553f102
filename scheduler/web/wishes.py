"""What a pod set wishes of a device: read, described, and shown again."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from clusters.models import VENDORS
from controlplane.api.fields import Integer, StrictSerializer
from scheduler.core.snapshot import Isolation
from scheduler.models import PodSet
from scheduler.services import specs
from scheduler.services.specs import WishSpec
from scheduler.web.reading import Faults, Json

WISH_FIELDS = frozenset({"least_memory_mib", "vendors"})


class WishIn(StrictSerializer):
    """Whole GPUs by what they have: those flavors are accepted behind the named ones, the smallest
    first, then the cheapest; also those that come later. Description only: `wish` reads it."""

    least_memory_mib = Integer(
        low=0,
        high=specs.MAX_DEVICE_MIB,
        required=False,
        default=0,
        help_text="Of one GPU, as its flavor says: an H100 of 80 GB has 81559. 0 is any.",
    )
    vendors = serializers.ListField(
        child=serializers.ChoiceField(choices=list(VENDORS)),
        required=False,
        max_length=len(VENDORS),
        help_text="Left out or empty: of any.",
    )


class WishOut(serializers.Serializer[Any]):  # Any: plain rows
    """What it wishes of a GPU; the flavors that have it are in `flavors`, behind the named."""

    least_memory_mib = serializers.IntegerField()
    vendors = serializers.ListField(child=serializers.CharField())


def wish(
    data: Mapping[str, Json], root: str, faults: Faults, *, gpu_count: int, gpu_milli: int
) -> WishSpec | None:
    """Of a pod set below `root`, None without one."""
    pointer = f"{root}/wish"
    value = faults.member(data, "wish", root, WISH_FIELDS, "least_memory_mib and vendors")
    if value is None:
        return None
    least_mib = faults.integer(value, "least_memory_mib", pointer, 0, specs.MAX_DEVICE_MIB, 0) or 0
    vendors = faults.items(value, "vendors", pointer, len(VENDORS), _vendor_fault)
    faults.once(vendors, f"{pointer}/vendors")
    if not gpu_count or gpu_milli != 1000:
        asked = f"gpu_milli {gpu_milli}" if gpu_count else "gpu_count 0"
        message = f"A wish is for whole GPUs, which {asked} does not ask for."
        faults.add(pointer, "invalid", message)
    return WishSpec(least_mib, vendors)


def any_order(data: Mapping[str, Json], root: str, faults: Faults) -> bool:
    """Whether the flavors that the pod set below `root` names are as welcome as each other."""
    value: object = data.get("any_order", False)
    if not isinstance(value, bool):
        faults.add(f"{root}/any_order", "wrong-type", "true or false is wanted.")
        return False
    if value and (not data.get("flavors") or data.get("wish") is not None):
        message = "It is said of flavors that are named, and without a wish, which has an order."
        faults.add(f"{root}/any_order", "invalid", message)
    return value


def gpu_memory_mib(data: Mapping[str, Json], root: str, faults: Faults) -> int | None:
    """What of one device's memory a pod of the pod set below `root` asks for, None for none."""
    if data.get("gpu_memory_mib") is None:
        return None
    found = faults.integer(data, "gpu_memory_mib", root, 1, specs.MAX_DEVICE_MIB, None)
    wishes = data.get("wish") is not None
    if data.get("gpu_count") != 1 or data.get("gpu_milli", 1000) != 1000 or wishes:
        message = "Memory of a GPU is asked with gpu_count 1, and without gpu_milli or a wish."
        faults.add(f"{root}/gpu_memory_mib", "invalid", message)
    return found


def least_isolation(data: Mapping[str, Json], root: str, faults: Faults) -> Isolation:
    """Below which the pod set below `root` accepts nothing."""
    value = data.get("least_isolation", Isolation.NONE)
    if value not in list(Isolation):
        message = f"One of {', '.join(Isolation)} is wanted."
        faults.add(f"{root}/least_isolation", "invalid", message)
        return Isolation.NONE
    return Isolation(str(value))


def shown(row: PodSet) -> dict[str, Json] | None:
    """As WishOut."""
    if row.least_memory_mib is None:
        return None
    return {"least_memory_mib": row.least_memory_mib, "vendors": row.vendors}


def _vendor_fault(value: str) -> str | None:
    return None if value in VENDORS else f"One of {', '.join(VENDORS)} is wanted."
