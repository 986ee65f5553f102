"""The frozen output of a plan: decisions only. The shell applies them; nothing here acts."""

from dataclasses import dataclass

from scheduler.core.reasons import PreemptRule, Reason
from scheduler.core.units import ClusterId, DeviceId, FlavorId, NodeId, PodSetId, Span, WorkloadId


@dataclass(frozen=True, slots=True)
class Place:
    """One pod: `rank` counts from 0 over all pod sets of the workload, in their order."""

    pod_set: PodSetId
    rank: int
    node: NodeId
    flavor: FlavorId
    amount_milli: int
    cpu_milli: int
    memory_mib: int
    spans: tuple[tuple[DeviceId, Span], ...] = ()


@dataclass(frozen=True, slots=True)
class Admit:
    """Start this workload, all of `places` or none, in one cluster."""

    workload: WorkloadId
    cluster: ClusterId
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Preempt:
    """Take back all placements of `victim`; `preemptor` is planned once their release is seen."""

    victim: WorkloadId
    preemptor: WorkloadId
    rule: PreemptRule


@dataclass(frozen=True, slots=True)
class Hold:
    """Not now, and why."""

    workload: WorkloadId
    reason: Reason


@dataclass(frozen=True, slots=True)
class Plan:
    """Each pending workload of the snapshot stands in exactly one Admit or one Hold."""

    admits: tuple[Admit, ...] = ()
    preempts: tuple[Preempt, ...] = ()
    holds: tuple[Hold, ...] = ()
