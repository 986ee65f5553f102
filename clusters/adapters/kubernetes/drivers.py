"""Drivers of Dynamic Resource Allocation whose devices Berth knows, one a line, and how a selector
names one of their devices. Pure.

Another maker's driver is another line, once it tells each device by a uuid.
"""

from typing import NamedTuple

from clusters.published import Pin


class Driver(NamedTuple):
    """Names of the attributes, and of the capacities, by which a driver tells what a device is.
    `memory_slice` is that of the first memory slice, less its number."""

    name: str
    kind: str
    whole: str
    slice: str
    uuid: str
    parent: str
    profile: str
    model: str
    memory: str
    memory_slice: str


DRIVERS = {
    each.name: each
    for each in (
        Driver(
            "gpu.nvidia.com",
            kind="type",
            whole="gpu",
            slice="mig",
            uuid="uuid",
            parent="parentUUID",
            profile="profile",
            model="productName",
            memory="memory",
            memory_slice="memorySlice",
        ),
    )
}


def selector(pin: Pin) -> str:
    """The CEL expression that holds for that device alone. What is asked first keeps the rest from
    being asked of devices that don't have it, which would be an error."""
    driver = DRIVERS[pin.driver]
    has = f"device.attributes['{driver.name}']"
    asked = {driver.kind: driver.slice if pin.profile else driver.whole}
    if pin.profile:
        asked |= {driver.parent: pin.uuid, driver.profile: pin.profile}
    else:
        asked |= {driver.uuid: pin.uuid}
    terms = [f"device.driver == '{driver.name}'"]
    terms += [f"{has}.{name} == {_text(value)}" for name, value in asked.items()]
    if pin.profile:
        holds = f"in device.capacity['{driver.name}']"
        terms.append(f"'{driver.memory_slice}{pin.start}' {holds}")
        if pin.start:
            terms.append(f"!('{driver.memory_slice}{pin.start - 1}' {holds})")
    return " && ".join(terms)


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
