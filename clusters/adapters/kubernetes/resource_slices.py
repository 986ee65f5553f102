"""Pure: a raw ResourceSlice as its report. Raises Malformed for one that makes no sense."""

import re
from collections.abc import Mapping

from clusters.adapters.kubernetes.checks import Json, Malformed, mapping, objects, word
from clusters.adapters.kubernetes.drivers import DRIVERS, Driver
from clusters.adapters.kubernetes.failures import printable
from clusters.adapters.kubernetes.models import model_of
from clusters.adapters.kubernetes.quantities import BadQuantity, mebibytes, parse
from clusters.published import PublishedDevice, ResourceSliceReport

MOST_PARTS = 1000
MOST_MEMORY_SLICES = 8
LONGEST_NAME = 63
"""Of a counter, a DNS label."""
_UUID = re.compile(r"[A-Za-z0-9._-]{1,80}")
_PROFILE = re.compile(r"[1-9][0-9]?g\.[1-9][0-9]{0,3}gb(?:[+-][a-z.]{2,8})?")
_KEEPS_OFF = {"NoSchedule", "NoExecute"}


def resource_slice(body: Json) -> ResourceSliceReport:
    metadata, spec = mapping(body, "metadata"), mapping(body, "spec")
    pool = mapping(spec, "pool")
    driver = DRIVERS.get(word(spec, "driver"))
    devices, left_out = _devices(spec, driver) if driver else ((), ())
    try:
        return ResourceSliceReport(
            name=word(metadata, "name"),
            driver=word(spec, "driver"),
            pool=word(pool, "name"),
            generation=_number(pool, "generation", least=0, most=2**63),
            parts=_number(pool, "resourceSliceCount", least=1, most=MOST_PARTS),
            node=word(spec, "nodeName") if spec.get("nodeName") else "",
            devices=devices,
            counters=_counters(spec, "sharedCounters", "name") if driver else {},
            left_out=left_out,
        )
    except BadQuantity as error:
        raise Malformed(str(error)) from None


def _devices(spec: Json, driver: Driver) -> tuple[tuple[PublishedDevice, ...], tuple[str, ...]]:
    """Those that make sense; of each other its name, and why not."""
    found, left_out = [], []
    for body in objects(spec, "devices"):
        try:
            found.append(_device(body, driver))
        except (BadQuantity, Malformed) as error:
            left_out.append(f"{printable(str(body.get('name')), longest=80)}: {error}")
    return tuple(device for device in found if device is not None), tuple(left_out)


def _device(body: Json, driver: Driver) -> PublishedDevice | None:
    """None for what is neither a whole device nor a slice of one."""
    attributes, capacity = (
        _of_driver(mapping(body, key), driver) for key in ("attributes", "capacity")
    )
    kind = _text(attributes, driver.kind)
    if kind not in (driver.whole, driver.slice):
        return None
    is_slice = kind == driver.slice
    start, end = _place(capacity, driver) if is_slice else (0, 0)
    return PublishedDevice(
        name=word(body, "name"),
        model=model_of(_text(attributes, driver.model).strip().replace(" ", "-"))[:80],
        memory_mib=mebibytes(_amount(capacity.get(driver.memory))),
        uuid=_match(_UUID, attributes, driver.uuid, may_lack=is_slice),
        parent=_match(_UUID, attributes, driver.parent) if is_slice else "",
        profile=_match(_PROFILE, attributes, driver.profile) if is_slice else "",
        start=start,
        end=end,
        tainted=any(taint.get("effect") in _KEEPS_OFF for taint in objects(body, "taints")),
        consumes=_counters(body, "consumesCounters", "counterSet"),
    )


def _place(capacity: Mapping[str, object], driver: Driver) -> tuple[int, int]:
    """The memory slices that it says it has, which lie side by side."""
    found = sorted(
        int(nth)
        for name in capacity
        if name.startswith(driver.memory_slice)
        and (nth := name.removeprefix(driver.memory_slice)).isascii()
        and nth.isdigit()
        and len(nth) < 3
    )
    if not found:
        return 0, 0
    if found != list(range(found[0], found[0] + len(found))) or found[-1] >= MOST_MEMORY_SLICES:
        raise Malformed(f"its memory slices {found} are none of a device")
    return found[0], found[-1] + 1


def _counters(body: Json, key: str, of: str) -> dict[tuple[str, str], int]:
    return {
        (word(each, of), _counter(name)): int(parse(_amount(counter)))
        for each in objects(body, key)
        for name, counter in mapping(each, "counters").items()
    }


def _counter(name: str) -> str:
    if not (len(name) <= LONGEST_NAME and name.isprintable()):
        raise Malformed("the name of a counter is no name")
    return name


def _of_driver(told: Json, driver: Driver) -> dict[str, object]:
    """By name, less the driver's own domain, which may be left out."""
    return {name.removeprefix(f"{driver.name}/"): value for name, value in told.items()}


def _text(attributes: Mapping[str, object], name: str) -> str:
    told = attributes.get(name)
    value = told.get("string") if isinstance(told, dict) else None
    if value is not None and not (isinstance(value, str) and value.isprintable()):
        raise Malformed(f"{name} is no text")
    return value or ""


def _match(
    pattern: re.Pattern[str],
    attributes: Mapping[str, object],
    name: str,
    *,
    may_lack: bool = False,
) -> str:
    value = _text(attributes, name)
    if not pattern.fullmatch(value) and (value or not may_lack):
        raise Malformed(f"a device has no {name} that makes sense")
    return value


def _amount(told: object) -> str:
    value = told.get("value", "0") if isinstance(told, dict) else "0"
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise Malformed("an amount is no quantity")
    return value


def _number(body: Json, key: str, *, least: int, most: int) -> int:
    value = body.get(key, 0)
    if type(value) is not int or not least <= value <= most:
        raise Malformed(f"{key} is no number from {least} to {most}")
    return value
