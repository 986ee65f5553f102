"""The frozen input of a plan: what exists, who may use how much, who waits, who holds.

Tuples are in any order: the plan must not depend on it. Times are whole seconds since the epoch.
"""

from dataclasses import dataclass
from enum import StrEnum

from scheduler.core.units import (
    ClusterId,
    CohortId,
    DeviceId,
    FlavorId,
    NodeId,
    PlacementId,
    PodSetId,
    ProjectId,
    Span,
    WorkloadId,
)

SCHEMA = 3
"""Raised with every change of these types, so that a stored snapshot says how to be read."""


class FlavorKind(StrEnum):
    WHOLE = "whole"  # whole devices of a model
    MIG = "mig"  # slices of one MIG profile of a model
    SHARE = "share"  # thousandths of a device of a model
    CPU = "cpu"  # work without a device; amounts are thousandths of a core


class Isolation(StrEnum):
    """What keeps a share's neighbours apart."""

    NONE = "none"  # time-slicing: no memory or fault isolation
    MEMORY = "memory"  # MPS or HAMi: memory limits, shared faults
    HARDWARE = "hardware"  # MIG, or a whole device


@dataclass(frozen=True, slots=True)
class FlavorView:
    """`model` is "" for CPU; `profile` is set for MIG only, e.g. `1g.10gb`."""

    id: FlavorId
    name: str
    kind: FlavorKind
    model: str = ""
    profile: str = ""
    isolation: Isolation = Isolation.HARDWARE


class DeviceMode(StrEnum):
    WHOLE = "whole"  # given whole or in shares; axis 0..1000
    MIG_STATIC = "mig-static"  # slices as `slices` says, no others; axis 0..8
    MIG_DYNAMIC = "mig-dynamic"  # slices are made on demand at any legal start; axis 0..8


@dataclass(frozen=True, slots=True)
class SliceView:
    profile: str
    span: Span


@dataclass(frozen=True, slots=True)
class DeviceView:
    """One device. `shares` names the isolation that its shares give, None when it can't be shared.

    A device that is not `usable` (sick, or gone from allocatable) takes nothing new.
    """

    id: DeviceId
    ordinal: int
    model: str
    mode: DeviceMode = DeviceMode.WHOLE
    slices: tuple[SliceView, ...] = ()
    shares: Isolation | None = None
    usable: bool = True


@dataclass(frozen=True, slots=True)
class NodeView:
    """One machine. cpu_milli and memory_mib are allocatable, less what foreign pods hold."""

    id: NodeId
    name: str
    cpu_milli: int
    memory_mib: int
    devices: tuple[DeviceView, ...] = ()
    usable: bool = True


@dataclass(frozen=True, slots=True)
class ClusterView:
    """`usable` is False while it is degraded, lost or draining: it takes nothing new."""

    id: ClusterId
    name: str
    nodes: tuple[NodeView, ...]
    usable: bool = True


@dataclass(frozen=True, slots=True)
class QuotaView:
    """None for a limit means unlimited (borrow anything that is lent; lend everything unused)."""

    flavor: FlavorId
    nominal_milli: int
    borrowing_limit_milli: int | None = None
    lending_limit_milli: int | None = None


@dataclass(frozen=True, slots=True)
class CohortView:
    """A tenant or department: projects and cohorts that lend to each other. No parent: the fleet.

    Its quotas add to those of its members; their limits bound what crosses its edge.
    """

    id: CohortId
    parent: CohortId | None = None
    weight: int = 1
    quotas: tuple[QuotaView, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueView:
    """A project's queue. Usage is not stored: it follows from `Snapshot.holding`."""

    project: ProjectId
    cohort: CohortId | None = None
    weight: int = 1
    quotas: tuple[QuotaView, ...] = ()


@dataclass(frozen=True, slots=True)
class PodSetView:
    """`count` like pods, of which `min_count` start together or none does.

    gpu_count 0 is CPU-only work (its flavors are of kind CPU). gpu_milli is 1000, or, with
    gpu_count 1 and SHARE flavors, the thousandths of one device. `flavors` are accepted in that
    order.
    """

    id: PodSetId
    count: int
    min_count: int
    cpu_milli: int
    memory_mib: int
    gpu_count: int
    gpu_milli: int
    flavors: tuple[FlavorId, ...]


@dataclass(frozen=True, slots=True)
class PendingView:
    """`clusters` empty accepts any cluster. `not_before` holds a retry back until then."""

    id: WorkloadId
    project: ProjectId
    priority: int
    preemptible: bool
    submitted_at: int
    pod_sets: tuple[PodSetView, ...]
    run_time_limit_s: int | None = None
    clusters: tuple[ClusterId, ...] = ()
    not_before: int = 0


@dataclass(frozen=True, slots=True)
class HeldView:
    """One pod's placement that still holds capacity (its release has not been seen)."""

    id: PlacementId
    pod_set: PodSetId
    node: NodeId
    flavor: FlavorId
    amount_milli: int
    cpu_milli: int
    memory_mib: int
    spans: tuple[tuple[DeviceId, Span], ...] = ()


@dataclass(frozen=True, slots=True)
class HoldingView:
    """A workload that holds placements. `releasing`: they are on their way back already.

    `pod_sets` and `clusters` are what it asks for when it queues again; without pod sets it won't.
    """

    id: WorkloadId
    project: ProjectId
    cluster: ClusterId
    priority: int
    preemptible: bool
    admitted_at: int
    placements: tuple[HeldView, ...]
    started_at: int | None = None
    run_time_limit_s: int | None = None
    releasing: bool = False
    pod_sets: tuple[PodSetView, ...] = ()
    clusters: tuple[ClusterId, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    at: int
    flavors: tuple[FlavorView, ...]
    clusters: tuple[ClusterView, ...]
    queues: tuple[QueueView, ...]
    pending: tuple[PendingView, ...] = ()
    holding: tuple[HoldingView, ...] = ()
    cohorts: tuple[CohortView, ...] = ()
    schema: int = SCHEMA
