"""What pods that others made ask for by classes of devices and by claims, and how they get it."""

from dataclasses import dataclass
from typing import Protocol

from clusters.published import DeviceClassReport, Pin, Selected


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What a pod asks for under the `name` of a request of one of its claims, which it calls
    `claim`: `count` devices of a class, of those for which all `selectors` hold. `selected` is
    what the class and they choose."""

    claim: str
    name: str
    device_class: str
    selectors: tuple[str, ...]
    count: int
    selected: Selected


@dataclass(frozen=True, slots=True)
class ClaimTemplateReport:
    """What claims made from a template ask for; where Berth can't charge that, `refusal` says
    what would be right."""

    requests: tuple[ClaimRequest, ...] = ()
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class GivenDevices:
    """Which pod of others, as a placement's and at that version, is to get the very devices `pins`
    by its `requests`, in their order. Its claims are then called `prefix`-0, -1, ..."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    workload: str
    attempt: int
    rank: int
    prefix: str
    requests: tuple[ClaimRequest, ...]
    pins: tuple[Pin, ...]


class ClaimingPort(Protocol):
    """Of a cluster whose devices a driver publishes. All raise ClusterError as `ClusterPort`."""

    def read_device_classes(self) -> tuple[DeviceClassReport, ...]: ...

    def read_claim_template(
        self, *, namespace: str, name: str, claim: str
    ) -> ClaimTemplateReport | None:
        """What the claim that a pod calls `claim` is made from; None when that is not there."""
        ...

    def give_devices(self, *, given: GivenDevices) -> str:
        """Have the pod, at its gate, claim those in place of what was made for it; the pod's
        version then. The claims go when it goes. Done already, it changes nothing. One that was
        changed meanwhile, as by a later attempt's labels, raises ClusterError(SERVER)."""
        ...
