"""What a cluster's drivers publish of the devices of its nodes, by Dynamic Resource Allocation,
and how one of them is asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, field

OF_CLASS = "deviceclass.resource.kubernetes.io/"
"""How the resources begin that are named by a class of devices."""

type Counters = Mapping[tuple[str, str], int]
"""Amounts by the name of a counter set and of a counter in it."""


@dataclass(frozen=True, slots=True)
class PublishedDevice:
    """A whole device, or, with a `profile`, a slice of the device whose uuid is `parent`: one that
    is cut, or one that could be.

    `start` and `end` are its memory slices, both 0 where none can be asked for by its place.
    `consumes` is what it takes of its pool's counters while somebody has it. `tainted`: nothing
    new is to start on it.
    """

    name: str
    model: str
    memory_mib: int
    uuid: str = ""
    parent: str = ""
    profile: str = ""
    start: int = 0
    end: int = 0
    tainted: bool = False
    consumes: Counters = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResourceSliceReport:
    """A part of what one driver publishes of one node: `parts` of a `generation` are all of it.

    `node` is "" for devices of no certain node. Of a driver that Berth does not know, `devices`
    is (). `left_out` says of each device that made no sense its name and why.
    """

    name: str
    driver: str
    pool: str
    generation: int
    parts: int
    node: str = ""
    devices: tuple[PublishedDevice, ...] = ()
    counters: Counters = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceClaimReport:
    """What a claim has been given: the driver, the pool and the name of each device, () while it
    has none. `workload` "" marks a foreign one, else it is for the pod of that rank."""

    namespace: str
    name: str
    installation: str = ""
    workload: str = ""
    attempt: int = 0
    rank: int = 0
    devices: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Selected:
    """Devices of a driver: whole ones, or with a `profile` slices; `model` "" is any."""

    driver: str
    profile: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class DeviceClassReport:
    """A class of devices. `resource` is the extended resource by which a pod may ask for one of
    them, "" for none but that of its own name. `selected` is None where Berth can't tell which
    they are, and `unclear` says why."""

    name: str
    resource: str = ""
    selected: Selected | None = None
    unclear: str = ""

    @property
    def resources(self) -> tuple[str, ...]:
        """All by which a pod asks for it."""
        return tuple(filter(None, (self.resource, f"{OF_CLASS}{self.name}")))


@dataclass(frozen=True, slots=True)
class Pin:
    """One device, and no other: the whole one of that uuid, or with a `profile` the slice of it
    that begins at the memory slice `start`."""

    driver: str
    uuid: str
    profile: str = ""
    start: int = 0
