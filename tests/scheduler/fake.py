"""A cluster in memory, behind the port: pods, uids, versions, and calls that fail when told to.

No kubelets: a test says what a pod comes to. The HTTP simulator is for the flows.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import Never
from uuid import uuid4

from django.conf import settings

from clusters.caught import OwnerRef, OwnerReport
from clusters.claiming import ClaimTemplateReport, GivenDevices
from clusters.confinement import Confinement, Drift, Repair
from clusters.port import (
    ClusterError,
    ClusterVersion,
    Fault,
    Listing,
    PodPhase,
    PodReport,
    PodRequest,
)
from clusters.published import DeviceClaimReport, DeviceClassReport, ResourceSliceReport
from tests.scheduler.fake_nodes import FakeNodes

type Trouble = Callable[[str], None]
"""Called with the pod's name before a call is carried out; raises what the call shall raise."""


@dataclass
class FakeCluster(FakeNodes):
    """`trouble` by verb (confine, create, open, notice, delete, read, withdraw); `calls` counts
    the verbs. `confined` is what was applied last by namespace, `drifts` what differs there.
    `services` has whose each is: workload and attempt; `notices` until when each pod was told
    that it may run, `graces` with how much grace its deletion was asked. `owners` are what
    controls pods, by uid. `others` are namespaces without this installation's label."""

    pods: dict[str, PodReport] = field(default_factory=dict)
    requests: dict[str, PodRequest] = field(default_factory=dict)
    services: dict[str, tuple[str, int]] = field(default_factory=dict)
    notices: dict[str, datetime] = field(default_factory=dict)
    graces: dict[str, int] = field(default_factory=dict)
    owners: dict[str, OwnerReport] = field(default_factory=dict)
    templates: dict[str, ClaimTemplateReport] = field(default_factory=dict)
    given: dict[str, GivenDevices] = field(default_factory=dict)
    classes: list[DeviceClassReport] = field(default_factory=list)
    trouble: dict[str, Trouble] = field(default_factory=dict)
    confined: dict[str, Confinement] = field(default_factory=dict)
    drifts: dict[str, tuple[Drift, ...]] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    calls: Counter[str] = field(default_factory=Counter)
    _versions: "count[int]" = field(default_factory=lambda: count(1))

    def fails(self, verb: str, fault: Fault, *, pod: str = "", times: int = 10**6) -> None:
        """The next calls of the verb fail, for pods with `pod` in their name."""
        left = [times]

        def raising(name: str) -> None:
            if pod in name and left[0] > 0:
                left[0] -= 1
                raise ClusterError(fault, f"{verb}: {fault}")

        self.trouble[verb] = raising

    def meanwhile(self, verb: str, act: Callable[[], None]) -> None:
        """Something happens once, just before the next call of the verb."""

        def acting(_: str) -> None:
            del self.trouble[verb]
            act()

        self.trouble[verb] = acting

    def heal(self) -> None:
        self.trouble.clear()

    # --- the port ---

    def confine(self, *, wanted: Confinement, repair: Repair = Repair.ALL) -> tuple[Drift, ...]:
        verb = "look" if repair is Repair.NOTHING else "confine"
        self._begin(verb, wanted.namespace)
        told = self.drifts.pop(wanted.namespace, ())
        left = {
            Repair.NOTHING: told,
            Repair.MISSING: tuple(drift for drift in told if drift.field),
            Repair.ALL: (),
        }[repair]
        if left:
            self.drifts[wanted.namespace] = left
        if repair is Repair.ALL:
            self.confined[wanted.namespace] = wanted
        return told

    def owns_namespace(self, *, namespace: str) -> bool:
        return namespace not in self.others

    def ensure_service(self, *, namespace: str, name: str, workload: str, attempt: int) -> None:
        self._begin("service", name)
        if self.services.setdefault(name, (workload, attempt)) != (workload, attempt):
            raise ClusterError(Fault.CONFLICT, "another service has this name")

    def delete_service(self, *, namespace: str, name: str, workload: str, attempt: int) -> None:
        self._begin("withdraw", name)
        if self.services.get(name) == (workload, attempt):
            del self.services[name]

    def create_pod(self, *, request: PodRequest) -> PodReport:
        self._begin("create", request.name)
        known = self.pods.get(request.name)
        if known is None:
            self.requests[request.name] = request
            self.pods[request.name] = PodReport(
                namespace=request.namespace,
                name=request.name,
                uid=str(uuid4()),
                resource_version=self._version(),
                phase=PodPhase.GATED,
                installation=settings.BERTH_INSTALLATION,
                workload=request.workload,
                attempt=request.attempt,
                rank=request.rank,
            )
        elif self.requests[request.name] != request:
            raise ClusterError(Fault.CONFLICT, "another pod has this name")
        return self.pods[request.name]

    def read_owner(self, *, namespace: str, owner: OwnerRef) -> OwnerReport | None:
        self._begin("owner", owner.name)
        return self.owners.get(owner.uid)

    def adopt_pod(self, *, pod: PodReport, workload: str, attempt: int, rank: int) -> PodReport:
        self._begin("adopt", pod.name)
        found = self.pods.get(pod.name)
        if found is None:
            raise ClusterError(Fault.NOT_FOUND, "no such pod")
        if (found.uid, found.resource_version) != (pod.uid, pod.resource_version):
            raise ClusterError(Fault.CONFLICT, "modified")
        taken = replace(
            found,
            resource_version=self._version(),
            installation=settings.BERTH_INSTALLATION,
            workload=workload,
            attempt=attempt,
            rank=rank,
        )
        self.pods[pod.name] = taken
        return taken

    def open_gate(
        self, *, namespace: str, name: str, uid: str, resource_version: str, hostname: str
    ) -> PodReport:
        self._begin("open", name)
        pod = self.pods.get(name)
        if pod is None:
            raise ClusterError(Fault.NOT_FOUND, "no such pod")
        if (pod.uid, pod.resource_version) != (uid, resource_version):
            raise ClusterError(Fault.CONFLICT, "modified")
        return self.becomes(name, PodPhase.WAITING, node=hostname)

    def read_pod(self, *, namespace: str, name: str) -> PodReport | None:
        self._begin("read", name)
        return self.pods.get(name)

    def give_notice(self, *, namespace: str, name: str, uid: str, until: datetime) -> None:
        self._begin("notice", name)
        pod = self.pods.get(name)
        if pod and pod.uid == uid:
            self.notices[name] = until

    def delete_pod(
        self, *, namespace: str, name: str, uid: str, grace_s: int, resource_version: str = ""
    ) -> None:
        self._begin("delete", name)
        self.graces[name] = grace_s
        pod = self.pods.get(name)
        if pod and pod.uid == uid and resource_version in ("", pod.resource_version):
            del self.pods[name]

    def list_pods(self) -> Listing[PodReport]:
        return Listing(tuple(self.pods.values()), self._version())

    def probe(self) -> Never:
        raise NotImplementedError

    def version(self) -> ClusterVersion:
        return ClusterVersion("v1", simulated=True)

    def list_resource_slices(self) -> Listing[ResourceSliceReport]:
        return Listing((), self._version())

    def watch_resource_slices(self, *, resource_version: str) -> Never:
        raise NotImplementedError

    def read_device_classes(self) -> tuple[DeviceClassReport, ...]:
        self._begin("classes", "")
        return tuple(self.classes)

    def read_claim_template(
        self, *, namespace: str, name: str, claim: str
    ) -> ClaimTemplateReport | None:
        self._begin("template", name)
        return self.templates.get(name)

    def give_devices(self, *, given: GivenDevices) -> str:
        self._begin("give", given.name)
        self.given[given.name] = given
        return self.pods[given.name].resource_version

    def list_device_claims(self) -> Listing[DeviceClaimReport]:
        return Listing((), self._version())

    def watch_device_claims(self, *, resource_version: str) -> Never:
        raise NotImplementedError

    def watch_nodes(self, *, resource_version: str) -> Never:
        raise NotImplementedError

    def watch_pods(self, *, resource_version: str) -> Never:
        raise NotImplementedError

    def close(self) -> None: ...

    # --- for tests ---

    def becomes(self, name: str, phase: PodPhase, **fields: object) -> PodReport:
        """The pod's next state; its report."""
        self.pods[name] = replace(
            self.pods[name],
            phase=phase,
            resource_version=self._version(),
            **fields,  # type: ignore[arg-type]  # a report's fields
        )
        return self.pods[name]

    def in_phase(self, *phases: PodPhase) -> list[PodReport]:
        return [pod for pod in self.pods.values() if pod.phase in phases]

    def _begin(self, verb: str, name: str) -> None:
        self.calls[verb] += 1
        if verb in self.trouble:
            self.trouble[verb](name)

    def _version(self) -> str:
        return str(next(self._versions))
