"""What a pod that others made asks for, in Berth's words: how many devices, of which flavors."""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from clusters import stock
from clusters.claiming import ClaimRequest, ClaimTemplateReport
from clusters.models import Cluster
from clusters.port import ClusterError, ClusterPort
from clusters.published import (
    OF_CLASS,
    DeviceClassReport,
    Selected,
)
from scheduler.core.snapshot import FlavorKind, FlavorView
from scheduler.core.units import ONE_MILLI
from scheduler.loop.pods.caught import heard
from scheduler.loop.pods.requests import MIG, mig_resource
from scheduler.loop.reach import Reach
from scheduler.selectors import fleet
from scheduler.selectors.fleet import rows

logger = logging.getLogger(__name__)


class Refused(Exception):
    """Berth has no words for it; the message says what would be right."""


@dataclass(frozen=True, slots=True)
class Asks:
    """Of one pod; at least something of cores and memory, as every workload's pods. `requests` is
    what it claims."""

    cpu_milli: int
    memory_mib: int
    resources: tuple[tuple[str, int], ...]
    requests: tuple[ClaimRequest, ...] = ()

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
SELECT DISTINCT {stock.sql("d")}, n.gpu_resource, n.share_replicas, n.share_resource, n.mig_single,
       n.device_driver, d.model
FROM clusters_device d JOIN clusters_node n ON n.id = d.node_id
WHERE n.cluster_id = %s AND d.gone_at IS NULL AND n.gone_at IS NULL
"""  # noqa: S608  # constants


class Offers:
    """What one cluster has, as it is when this is made."""

    def __init__(self, *, port: ClusterPort, cluster: Cluster, reach: Reach) -> None:
        """Asks the cluster, where a driver publishes any of its devices."""
        self._port = port
        self._cluster = cluster
        self._templates: dict[tuple[str, str, str], ClaimTemplateReport | ClusterError | None] = {}
        self._flavors = fleet.flavors()
        self._offered = rows(_OFFERED, [cluster.id])
        # By each resource that stands for one; and why they could not be read, "" when they were.
        self._classes: Mapping[str, Sequence[DeviceClassReport]] = {}
        self._unread = ""
        self._reach = reach
        if any(driver for *_, driver, _ in self._offered):
            try:
                self._classes = _by_resource(reach.call(port.read_device_classes))
            except ClusterError as error:
                self._unread = f"The device classes of {cluster.name} could not be read: {error}."
                logger.warning("%s", self._unread)
        self._devices = {
            name for _, whole, _, shared, *_ in self._offered for name in (whole, shared)
        }
        self._devices |= self._classes.keys()

    def asks(self, *, said: dict[str, Any], namespace: str) -> Asks:  # Any: JSON
        """Of a pod, with what its claims' templates say now. Raises Refused, ClusterError."""
        asks = Asks.of(said)
        claims = [self._claimed(namespace, *claim) for claim in heard(said).claims]
        return replace(asks, requests=tuple(each for found in claims for each in found))

    def _claimed(self, namespace: str, claim: str, name: str) -> tuple[ClaimRequest, ...]:
        if not name:
            raise Refused(f"Others may share its claim {claim}: name a template of claims.")
        key = namespace, name, claim
        if key not in self._templates:
            self._templates[key] = self._read(namespace=namespace, name=name, claim=claim)
        found = self._templates[key]
        if isinstance(found, ClusterError):
            raise found
        if found is None:
            raise Refused(f"There is no template {name} for its claim {claim}.")
        if found.refusal:
            raise Refused(f"Its claim {claim} is made from the template {name}. {found.refusal}")
        return found.requests

    def _read(
        self, *, namespace: str, name: str, claim: str
    ) -> ClaimTemplateReport | ClusterError | None:
        """What fails is not tried again."""
        try:
            return self._reach.call(
                lambda: self._port.read_claim_template(namespace=namespace, name=name, claim=claim)
            )
        except ClusterError as error:
            return error

    def devices(self, *, asks: Asks, named: tuple[str, ...]) -> Devices:
        """Of which flavors it accepts how many: those that are `named`, else all that have what it
        asks for in that cluster. Raises Refused."""
        named = tuple(dict.fromkeys(named))
        if asks.requests:
            return self._by_claims(asks, named)
        if not asks.resources:
            cpu = (each.name for each in self._flavors if each.kind is FlavorKind.CPU)
            return Devices(0, ONE_MILLI, named or tuple(sorted(cpu)))
        found = {
            resource: devices
            for resource, count in asks.resources
            if (devices := self._found(resource, count)) is not None
        }
        others = [name for name, _ in asks.resources if name not in found and self._counts(name)]
        if len(found) != 1 or others:
            told = ", ".join(name for name, _ in asks.resources)
            where = self._cluster.name
            several = "of several kinds" if found else f"that no flavor has in {where}"
            why = f"It asks for {told}: devices {several}. Ask for those of one flavor."
            raise Refused(self._told(why, asks))
        [of] = found.values()
        return Devices(of.gpu_count, of.gpu_milli, named) if named else of

    def _by_claims(self, asks: Asks, named: tuple[str, ...]) -> Devices:
        chosen = {each.selected for each in asks.requests}
        # While the classes can't be read any may be one's.
        counted = [name for name, _ in asks.resources if self._unread or self._counts(name)]
        if counted:
            told = ", ".join(counted)
            why = f"It claims devices, and asks for {told} besides. Ask for devices in one way."
            raise Refused(self._told(why, asks))
        if len(chosen) > 1:
            raise Refused("It claims devices of several kinds. Ask for those of one flavor.")
        [of] = chosen
        fit = {
            flavor.name
            for flavor in self._flavors
            if (offered := [row[-2:] for row in self._offered if row[0] == flavor.model])
            and all(_is_of(of, flavor, driver, model) for driver, model in offered)
        }
        if not fit or not fit.issuperset(named):
            where = self._cluster.name
            told = ", ".join(sorted(fit)) or "none"
            raise Refused(
                f"Of the devices that it claims {told} are flavors that a driver publishes on all"
                f" nodes of {where} that have them. Ask for devices of one of those."
            )
        return Devices(
            sum(each.count for each in asks.requests), ONE_MILLI, named or tuple(sorted(fit))
        )

    def _found(self, resource: str, count: int) -> Devices | None:
        """None where no flavor has it. Where some nodes of a model are asked for by it and others,
        of which a driver publishes the devices or does not, are not, nobody could choose among
        them: it is none of that model's."""
        names: set[str] = set()
        devices, milli = count, ONE_MILLI
        for flavor in self._flavors:
            by_driver: dict[bool, bool] = {}
            for of, whole, replicas, shared, single, driver, model in self._offered:
                if flavor.model != of:
                    continue
                if driver:
                    fits = self._of_class(resource, flavor, driver, model)
                elif flavor.kind is FlavorKind.MIG:
                    fits = resource == (whole if single else mig_resource(flavor.profile))
                elif flavor.kind is FlavorKind.WHOLE:
                    fits = replicas == 1 and not single and whole == resource
                else:
                    fits = flavor.kind is FlavorKind.SHARE and replicas > 1 and shared == resource
                    if fits:
                        devices, milli = 1, count * ONE_MILLI // replicas
                by_driver[bool(driver)] = by_driver.get(bool(driver), False) or fits
            if by_driver and all(by_driver.values()):
                names.add(flavor.name)
        if names and 0 < milli <= ONE_MILLI:
            return Devices(devices, milli, tuple(sorted(names)))
        return None

    def _of_class(self, resource: str, flavor: FlavorView, driver: str, model: str) -> bool:
        """Whether it asks, by a class of devices, for what the flavor has of the driver's."""
        classes = self._classes.get(resource, ())
        if len(classes) != 1 or (of := classes[0].selected) is None:
            return False
        return _is_of(of, flavor, driver, model)

    def _counts(self, resource: str) -> bool:
        """Whether it stands for devices, of whatever flavor or none."""
        return resource in self._devices or resource.startswith((MIG, OF_CLASS))

    def _told(self, why: str, asks: Asks) -> str:
        """With what else may be the reason."""
        unclear = [self._unclear(name) for name, _ in asks.resources]
        return " ".join(filter(None, [why, self._unread, *unclear]))

    def _unclear(self, resource: str) -> str:
        """Why nobody can tell which devices that is, "" when that is not so."""
        classes = self._classes.get(resource, ())
        if len(classes) > 1:
            return f"Several device classes stand for {resource}: {classes[0].name} and another."
        return " ".join(f"The device class {e.name} {e.unclear}." for e in classes if e.unclear)


def _by_resource(
    classes: Sequence[DeviceClassReport],
) -> Mapping[str, Sequence[DeviceClassReport]]:
    found: dict[str, list[DeviceClassReport]] = defaultdict(list)
    for each in classes:
        for resource in each.resources:
            found[resource].append(each)
    return found


def _is_of(of: Selected, flavor: FlavorView, driver: str, model: str) -> bool:
    """Whether those of the flavor, of that model, that the driver publishes were selected."""
    kind = FlavorKind.MIG if of.profile else FlavorKind.WHOLE
    wanted = of.driver, kind, of.profile, of.model or model
    return wanted == (driver, flavor.kind, flavor.profile, model)
