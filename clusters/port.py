"""What Berth needs of a cluster: one Protocol and its frozen reports. No back end, no Django.

Every method may raise ClusterError and nothing else; no call outlasts its time limit. Reports are
untrusted input: the shell matches uid, attempt and cluster before it believes one.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from clusters.autoscaling import AutoscalingPort, Consumed
from clusters.caught import CaughtPod, OwnerRef, OwnerReport
from clusters.claiming import ClaimingPort
from clusters.confinement import Confinement, Drift, Repair
from clusters.exposure import ExposurePort
from clusters.inspection import InspectionPort
from clusters.published import DeviceClaimReport, Pin, ResourceSliceReport

NVIDIA_GPU = "nvidia.com/gpu"
"""The resource of whole devices, unless a node says otherwise."""
MOST_DEVICES = 128
"""Of one node; one that says it has more makes no sense."""
MOST_NODES, MOST_PODS = 10_000, 200_000
"""Of one cluster: more than Kubernetes is made for, which is 5,000 and 150,000."""
UNKNOWN = "unknown"
"""How the model ends of a device of which its node does not tell it."""
PRIORITIES = ("low", "normal", "high", "urgent")  # of a pod, the least first


class Fault(StrEnum):
    """What went wrong, as far as the caller has to tell cases apart."""

    UNREACHABLE = "unreachable"  # no connection, or a time-out: the call may have worked
    THROTTLED = "throttled"  # 429
    SERVER = "server"  # 5xx
    UNAUTHORIZED = "unauthorized"  # 401: the credential is not accepted
    FORBIDDEN = "forbidden"  # 403: a right is missing; the message names the verb and resource
    QUOTA = "quota"  # 403: the namespace's quota is used up, or not counted yet: later it may do
    NOT_FOUND = "not-found"  # 404
    CONFLICT = "conflict"  # 409, 412 or a precondition's 422: read again, then decide
    EXPIRED = "expired"  # 410: list again
    INVALID = "invalid"  # 400, 422: the object will never be accepted as it is
    MALFORMED = "malformed"  # the answer is not what the API promises


class ClusterError(Exception):
    """A call failed. `retry_after_s` repeats the server's wish, None when it named none."""

    def __init__(self, fault: Fault, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.fault = fault
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class SliceReport:
    """One MIG instance: memory slices [start, end) of its device."""

    profile: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """One device of a node. With the device plugin `uuid` is "": the ordinal is a count token.

    `mode` is whole, mig-static or mig-dynamic as in `core.snapshot.DeviceMode`; `slices` are told
    where it has a uuid. One that is not `usable` takes nothing new.
    """

    ordinal: int
    model: str
    memory_mib: int
    mode: str = "whole"
    slices: tuple[SliceReport, ...] = ()
    uuid: str = ""
    usable: bool = True


@dataclass(frozen=True, slots=True)
class NodeReport:
    """One machine as its API shows it.

    `hostname` is the value of kubernetes.io/hostname, which a placement selects. `share_replicas`
    is into how many shares each whole device is cut (1: not shared) and `share_isolation` what
    keeps them apart ("none" for time-slicing, "memory" for MPS or HAMi, "" when not shared); a
    share is asked for as one `share_resource`, a whole device, where none is shared, as one
    `gpu_resource`. `mig_counts` is how many slices of each MIG profile
    a node of mig-static devices advertises; which device holds which is left to the reader. With
    `mig_single` they are of one profile and asked for as a `gpu_resource` each, and `devices` has
    one of those that they are cut from: how many there are is not told. With a `device_driver` the
    devices are as that one publishes them, and asked for each by itself; what the device plugin
    says does not count then. `unused` says why none of them is usable, "" when that is not so.

    `cordoned` is whether somebody said that nothing new is to start there, `recut` for which recut
    Berth did, `leaving` whether it is told to go soon. `mig_config` names the way in which it is
    to be cut, `mig_state` how far that is: "pending", "rebooting", "success", "failed", "" unsaid.
    """

    name: str
    hostname: str
    uid: str
    ready: bool
    schedulable: bool
    cpu_milli: int
    memory_mib: int
    devices: tuple[DeviceReport, ...] = ()
    share_replicas: int = 1
    share_isolation: str = ""
    share_resource: str = "nvidia.com/gpu.shared"
    gpu_resource: str = NVIDIA_GPU
    mig_counts: Mapping[str, int] = field(default_factory=dict)
    mig_single: bool = False
    device_driver: str = ""
    unused: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    resource_version: str = ""
    cordoned: bool = False
    leaving: bool = False
    recut: str = ""
    mig_config: str = ""
    mig_state: str = ""


class PodPhase(StrEnum):
    GATED = "gated"  # born, its gate not open
    WAITING = "waiting"  # open, not bound to its node yet
    UNSCHEDULABLE = "unschedulable"  # open, and the cluster's scheduler refuses it
    SCHEDULED = "scheduled"  # bound to its node, not running
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """It will never run again."""
        return self in {PodPhase.SUCCEEDED, PodPhase.FAILED}


@dataclass(frozen=True, slots=True)
class PodReport:
    """One pod. `workload` "" marks a foreign pod, of which only node, phase, cpu, memory and the
    extended `resources` (devices, slices) that it holds count.

    created_at is the API server's, None when it did not say; started_at and finished_at are its
    container's own times, None while not so. `reason` is the cluster's word, which
    `core.failures` knows: of the pod (Evicted, NodeLost, DeadlineExceeded), else of who disrupted
    it (DeletionByTaintManager), else of its container (OOMKilled, ErrImagePull: ...), or the
    scheduler's sentence when unschedulable. `caught` is there for what others made for Berth to
    start.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    phase: PodPhase
    node: str = ""
    installation: str = ""
    workload: str = ""
    attempt: int = 0
    rank: int = 0
    created_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    reason: str = ""
    deleting: bool = False
    cpu_milli: int = 0
    memory_mib: int = 0
    resources: tuple[tuple[str, int], ...] = ()
    caught: CaughtPod | None = None


@dataclass(frozen=True, slots=True)
class PodRequest:
    """A pod to be born gated. `name` is deterministic ({workload}-{attempt}-{rank}), so that a
    second request for it is a no-op. `resources` are extended resources with their counts, `pins`
    the certain devices that it is to have;
    `tolerates` is the key of the taint that keeps others off its node, if that has one.

    `subdomain` names the gang's headless service, "" for a single pod. `grace_s` is the time from
    SIGTERM to SIGKILL whoever deletes it; with `notice` it can read what `give_notice` tells it.
    `priority` is one of PRIORITIES. `consumes` is the request that its node was asked for by.
    """

    namespace: str
    name: str
    workload: str
    attempt: int
    rank: int
    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    cpu_milli: int
    memory_mib: int
    resources: tuple[tuple[str, int], ...] = ()
    run_time_limit_s: int | None = None
    subdomain: str = ""
    grace_s: int = 30
    notice: bool = False
    tolerates: str = NVIDIA_GPU
    priority: str = "normal"
    pins: tuple[Pin, ...] = ()
    consumes: Consumed | None = None


class Change(StrEnum):
    UPSERT = "upsert"
    DELETE = "delete"  # `report` is the last state seen
    BOOKMARK = "bookmark"  # nothing changed; `report` is None


@dataclass(frozen=True, slots=True)
class Listing[Report]:
    """A whole list at one resourceVersion, from which a watch may begin. `left_out` says of each
    object that makes no sense, and is not among the items, its name and why."""

    items: tuple[Report, ...]
    resource_version: str
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WatchEvent[Report]:
    change: Change
    report: Report | None
    resource_version: str


@dataclass(frozen=True, slots=True)
class ClusterVersion:
    version: str
    simulated: bool


class Verdict(StrEnum):
    """Of one thing that Berth needs of a cluster, or of all of them: the worst."""

    WORKS = "works"
    WARNING = "warning"  # it works, and something should be changed all the same
    FAILS = "fails"


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """`said` is for people: of what does not work, or only with a warning, what to change."""

    name: str
    verdict: Verdict
    said: str


@dataclass(frozen=True, slots=True)
class MigConfigs:
    """The names of all ways to cut a node that a cluster's MIG managers know after one was told
    there. `wrote`: that one was not there, or was another, so they see it a while later."""

    known: frozenset[str]
    wrote: bool


class ClusterPort(AutoscalingPort, ClaimingPort, ExposurePort, InspectionPort, Protocol):
    """One cluster. Instances may be used by several threads; make them after a fork, not
    before."""

    def probe(self) -> Iterator[ProbeStep]:
        """What of all that Berth needs there works, each step once it was tried. Nothing is left
        behind. A failure is a step, never raised."""
        ...

    def version(self) -> ClusterVersion: ...

    def list_nodes(self) -> Listing[NodeReport]: ...

    def list_resource_slices(self) -> Listing[ResourceSliceReport]:
        """What drivers publish of devices. Raises ClusterError(NOT_FOUND) where the cluster knows
        no such thing (resource.k8s.io/v1), FORBIDDEN where Berth may not ask."""
        ...

    def watch_resource_slices(
        self, *, resource_version: str
    ) -> AbstractContextManager[Iterator[WatchEvent[ResourceSliceReport]]]:
        """As `watch_nodes`."""
        ...

    def list_device_claims(self) -> Listing[DeviceClaimReport]:
        """Ours and foreign ones. Raises as `list_resource_slices`."""
        ...

    def watch_device_claims(
        self, *, resource_version: str
    ) -> AbstractContextManager[Iterator[WatchEvent[DeviceClaimReport]]]: ...

    def list_pods(self) -> Listing[PodReport]:
        """Ours and foreign ones."""
        ...

    def watch_nodes(
        self, *, resource_version: str
    ) -> AbstractContextManager[Iterator[WatchEvent[NodeReport]]]:
        """Changes after that version until the server or a read time-out ends the stream.

        Raises ClusterError(EXPIRED) when the version is too old: list again.
        """
        ...

    def watch_pods(
        self, *, resource_version: str
    ) -> AbstractContextManager[Iterator[WatchEvent[PodReport]]]: ...

    def confine(self, *, wanted: Confinement, repair: Repair = Repair.ALL) -> tuple[Drift, ...]:
        """Make the namespace, or leave it, as it should be, and tell what was not so. Raises
        ClusterError(CONFLICT), with nothing changed, where it, or an object of that name in it, is
        somebody else's."""
        ...

    def owns_namespace(self, *, namespace: str) -> bool: ...  # it is there and has our label

    def ensure_service(self, *, namespace: str, name: str, workload: str, attempt: int) -> None:
        """The headless service of one attempt's gang, for its rendezvous names. Another of that
        name raises ClusterError(CONFLICT); contention that passes is SERVER, here and for pods."""
        ...

    def delete_service(self, *, namespace: str, name: str, workload: str, attempt: int) -> None:
        """Gone already, or another of that name: nothing to do, no error."""
        ...

    def create_pod(self, *, request: PodRequest) -> PodReport:
        """The pod, born gated, and then the claim of its pins, which goes when it goes. What is
        there already with the same labels and spec hash is left as it is; another of that name
        raises ClusterError(CONFLICT)."""
        ...

    def read_owner(self, *, namespace: str, owner: OwnerRef) -> OwnerReport | None:
        """Who is at the top of those who control `owner`, None when that itself is gone. What is
        of no known kind, or may not be read, is at the top itself."""
        ...

    def adopt_pod(self, *, pod: PodReport, workload: str, attempt: int, rank: int) -> PodReport:
        """Give a caught pod the labels of a placement, in one patch bound to the uid and version
        of `pod`. Raises as `open_gate`."""
        ...

    def open_gate(
        self, *, namespace: str, name: str, uid: str, resource_version: str, hostname: str
    ) -> PodReport:
        """Pin the pod to the node and remove the gate, in one patch bound to uid and version.

        Raises ClusterError(CONFLICT) when either differs (409, or 422 for the uid), NOT_FOUND when
        it is gone.
        """
        ...

    def read_pod(self, *, namespace: str, name: str) -> PodReport | None: ...

    def give_notice(self, *, namespace: str, name: str, uid: str, until: datetime) -> None:
        """Tell the pod until when it may run. Gone already, or another pod of that name: nothing
        to do, no error."""
        ...

    def delete_pod(
        self, *, namespace: str, name: str, uid: str, grace_s: int, resource_version: str = ""
    ) -> None:
        """Ask for its end. Gone already, another pod of that name, or one that is no longer at
        `resource_version` (where that is given): nothing to do, no error."""
        ...

    def read_node(self, *, name: str) -> NodeReport | None: ...

    def write_mig_config(
        self, *, config: str, cuts: Sequence[Mapping[str, int]], keep: Collection[str]
    ) -> MigConfigs:
        """Make a way to cut a node known to the cluster's MIG managers: of each of its devices how
        many slices of which profile, {} for a whole one.

        Ways of this installation that are neither it nor in `keep` are taken away. Raises
        ClusterError(NOT_FOUND) where the config map is not there.
        """
        ...

    def cordon(self, *, node: NodeReport, recut: str) -> None:
        """Nothing new starts on it, for that recut. As the next two, it raises
        ClusterError(CONFLICT) when the node is no longer as the report has it."""
        ...

    def uncordon(self, *, node: NodeReport) -> None: ...  # it is as before `cordon`

    def cut(self, *, node: NodeReport, config: str) -> None:
        """Have its MIG manager cut it in that way; what it said before is wiped out. It stops
        whoever uses a device there, so nobody may."""
        ...

    def close(self) -> None: ...
