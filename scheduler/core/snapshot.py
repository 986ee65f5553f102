"""The frozen input of a plan: what exists, who may use how much, who waits, who holds.

Tuples are in any order: the plan must not depend on it. Times are whole seconds since the epoch.
"""

from dataclasses import dataclass
from enum import StrEnum

from scheduler.core.plan import Landing
from scheduler.core.rates import RateView
from scheduler.core.submitted import ArrayView, TurnView
from scheduler.core.units import (
    NOBODY,
    ONE_MILLI,
    BudgetId,
    ClusterId,
    CohortId,
    DeviceId,
    DeviceSpan,
    FlavorId,
    NodeId,
    PlacementId,
    PodSetId,
    ProjectId,
    Span,
    UserId,
    WorkloadId,
)
from scheduler.core.waits import GateView, GatheringView, StraysView, UnmetView

SCHEMA = 18
"""Raised with every change of these types, so that a stored snapshot says how to be read."""


class Placing(StrEnum):
    """On which of the nodes that have room pods of a flavor go."""

    PACK = "pack"  # least left over first: large pods find empty nodes
    SPREAD = "spread"  # most free first: one lost node takes little with it


class FlavorKind(StrEnum):
    WHOLE = "whole"  # whole devices of a model
    MIG = "mig"  # slices of one MIG profile of a model
    SHARE = "share"  # thousandths of a device of a model
    CPU = "cpu"  # work without a device; amounts are thousandths of a core
    MODEL = "model"  # a quota over all of a model; its unit is a seventh of a device


class Isolation(StrEnum):
    """What keeps a share's neighbours apart."""

    NONE = "none"  # time-slicing: no memory or fault isolation
    MEMORY = "memory"  # MPS or HAMi: memory limits, shared faults
    HARDWARE = "hardware"  # MIG, or a whole device


@dataclass(frozen=True, slots=True)
class FlavorView:
    """`model` is its devices' stock (ADR 0094), "" for CPU; `profile` is of MIG, e.g. `1g.10gb`.
    Whole devices and cores alone are spread. `memory_mib`: of a device or slice; 0: unknown."""

    id: FlavorId
    name: str
    kind: FlavorKind
    model: str = ""
    profile: str = ""
    isolation: Isolation = Isolation.HARDWARE
    placing: Placing = Placing.PACK
    memory_mib: int = 0


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
    """One device, `model` as its flavors have it. `shares` names the isolation that its shares
    give, None when it can't be shared; each of them takes whole ones of its `replicas`, 1 to 1000.
    One that is not `usable` (sick, or of a pool that is held) takes nothing new."""

    id: DeviceId
    ordinal: int
    model: str
    mode: DeviceMode = DeviceMode.WHOLE
    slices: tuple[SliceView, ...] = ()
    shares: Isolation | None = None
    usable: bool = True
    replicas: int = ONE_MILLI


@dataclass(frozen=True, slots=True)
class NodeView:
    """One machine. cpu_milli and memory_mib are allocatable, less what foreign pods hold; of its
    devices they hold `foreign`. `topology` has a value for each of the snapshot's levels, the
    outermost first: ("zone-a", "", "rack-3"). "" is unknown, () is nothing known. `counted`: which
    of its devices a pod has is not told; who holds one that is lost has one of the others."""

    id: NodeId
    name: str
    cpu_milli: int
    memory_mib: int
    devices: tuple[DeviceView, ...] = ()
    usable: bool = True
    topology: tuple[str, ...] = ()
    foreign: tuple[DeviceSpan, ...] = ()
    counted: bool = False


@dataclass(frozen=True, slots=True)
class ComingView:
    """Nodes of a node pool that are not there: `count` can come, each like `node`, of which
    `making_count` are being made. One takes `start_s` as a rule, None is not known."""

    id: str
    name: str
    node: NodeView
    count: int
    making_count: int = 0
    start_s: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """`usable` is False while it is degraded, lost or held: it takes nothing new. `held`: it
    would, were its queue open. Of `held_models` the pool is held: no device of them is usable."""

    id: ClusterId
    name: str
    nodes: tuple[NodeView, ...]
    usable: bool = True
    held: bool = False
    held_models: tuple[str, ...] = ()
    coming: tuple[ComingView, ...] = ()


@dataclass(frozen=True, slots=True)
class QuotaView:
    """None for a limit means unlimited (borrow all that is lent; lend everything unused). From
    `enforce_at` on what is held beyond nominal + borrowing limit is taken back; None leaves it to
    end by itself."""

    flavor: FlavorId
    nominal_milli: int
    borrowing_limit_milli: int | None = None
    lending_limit_milli: int | None = None
    enforce_at: int | None = None


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
class PastView:
    """What a project has used of a flavor, over all clusters, by now halved for each half-life
    since then: thousandths of the flavor times seconds."""

    flavor: FlavorId
    milli_s: int


@dataclass(frozen=True, slots=True)
class CapsView:
    """The most that runs at once, in workloads: of a project, of each user in it; None is no cap.
    `user_gpus_milli`: thousandths of devices, of all flavors; slices and shares count as parts."""

    running: int | None = None
    user_running: int | None = None
    user_gpus_milli: int | None = None


@dataclass(frozen=True, slots=True)
class QueueView:
    """A project's queue. Usage is not stored: it follows from `Snapshot.holding`; `past` is what
    was used before. `held_by` names who of itself and those above it is held: while any is,
    nothing of it starts. `caps` None has none. No workload of it is evicted before it has run for
    `min_run_time_s`. What is idle for `idle_timeout_s`, None is for ever, is freed,
    `idle_warning_s` after it was told at the soonest. It accepts no less than `least_isolation`
    between neighbours."""

    project: ProjectId
    cohort: CohortId | None = None
    weight: int = 1
    quotas: tuple[QuotaView, ...] = ()
    past: tuple[PastView, ...] = ()
    held_by: tuple[str, ...] = ()
    caps: CapsView | None = None
    min_run_time_s: int = 0
    idle_timeout_s: int | None = None
    idle_warning_s: int = 0
    least_isolation: Isolation = Isolation.NONE

    @property
    def held(self) -> bool:
        return bool(self.held_by)


@dataclass(frozen=True, slots=True)
class TopologyView:
    """All pods of a workload in one domain of a level of the snapshot: they have to be, or had
    better be. Of a level that the snapshot lacks there are no domains."""

    level: str
    required: bool


@dataclass(frozen=True, slots=True)
class SetTopologyView:
    """The same of the pods of one pod set: of all of them, or of each `group_size` that follow
    one another, in a domain for each group. A set in groups is not elastic, and `group_size`
    divides its count. `pod_set` is its name, for who reads why it does not fit."""

    level: str
    required: bool
    pod_set: str
    group_size: int | None = None


@dataclass(frozen=True, slots=True)
class PodSetView:
    """`count` like pods, of which `min_count` start together or none does; those beyond come and
    go while the others run.

    gpu_count 0 is CPU-only work (its flavors are of kind CPU). gpu_milli is 1000, or, with
    gpu_count 1 and SHARE flavors, the thousandths of one device; with `gpu_memory_mib` it is the
    least part of one, of each flavor another, that has that memory (`portions`). `flavors` are
    accepted in that order, or with `any_order` each as gladly as the others; but none that
    isolates less than `least_isolation`. `topology` binds its pods within what binds all pods of
    the workload.
    """

    id: PodSetId
    count: int
    min_count: int
    cpu_milli: int
    memory_mib: int
    gpu_count: int
    gpu_milli: int
    flavors: tuple[FlavorId, ...]
    topology: SetTopologyView | None = None
    gpu_memory_mib: int | None = None
    least_isolation: Isolation = Isolation.NONE
    any_order: bool = False


@dataclass(frozen=True, slots=True)
class PendingView:
    """`clusters` empty accepts any cluster. `not_before` holds a retry back until then, 0 none.

    `user` is its submitter where its project has caps of users. `topology` None: anywhere.
    `array` is the one it belongs to, where that has a cap. `waits_for` None: for nobody's end;
    `gate` None: for nobody's word; `gathering` None: for no pods of its own; `strays` None: no pod
    of it runs that nobody knows. `turn` None: it queues as what it is.
    """

    id: WorkloadId
    project: ProjectId
    priority: int
    preemptible: bool
    submitted_at: int
    pod_sets: tuple[PodSetView, ...]
    run_time_limit_s: int | None = None
    clusters: tuple[ClusterId, ...] = ()
    not_before: int = 0
    user: UserId = NOBODY
    topology: TopologyView | None = None
    array: ArrayView | None = None
    waits_for: UnmetView | None = None
    gate: GateView | None = None
    turn: TurnView | None = None
    gathering: GatheringView | None = None
    strays: StraysView | None = None


@dataclass(frozen=True, slots=True)
class HeldView:
    """One pod's placement that still holds capacity (its release has not been seen).

    `rank` is the pod's in its attempt. `leaving`: it was told to go, while others of its workload
    stay.
    """

    id: PlacementId
    pod_set: PodSetId
    node: NodeId
    flavor: FlavorId
    amount_milli: int
    cpu_milli: int
    memory_mib: int
    spans: tuple[DeviceSpan, ...] = ()
    rank: int = 0
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class HoldingView:
    """A workload that holds placements. `releasing`: they are on their way back already.

    `checkpointed_at` is when it last told that its work was saved, in any run. `pod_sets`,
    `clusters` and `topology` are what it asks for when it queues again; without pod sets it won't.
    `moved_at` is when it was last stopped to start elsewhere at once, which it asks for by
    `move_to_better`, for an earlier flavor. All its devices are seen unused since `idle_since`,
    None if one is used or not measured; it was told at `idle_warned_at`. `ahead_of`: see `Admit`.
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
    user: UserId = NOBODY
    checkpointed_at: int | None = None
    topology: TopologyView | None = None
    array: ArrayView | None = None
    moved_at: int | None = None
    move_to_better: bool = False
    idle_since: int | None = None
    idle_warned_at: int | None = None
    ahead_of: tuple[WorkloadId, ...] = ()


@dataclass(frozen=True, slots=True)
class ReservationView:
    """An amount of a flavor that is kept for a project, or a cohort with all below it (one of the
    two is set), in [starts_at, ends_at). Before `binds_at` work without a run-time limit may still
    start on it: nobody knows when that ends."""

    project: ProjectId | None
    flavor: FlavorId
    amount_milli: int
    starts_at: int
    ends_at: int
    binds_at: int = 0
    cohort: CohortId | None = None


@dataclass(frozen=True, slots=True)
class BudgetView:
    """What a project, or a cohort with all below it, may use of devices before `ends_at`, and has
    used by now: thousandths of a device times seconds.

    One of `project` and `cohort` is set; `name` is what people call it. `safe`: what starts is
    covered to the end that it declares. `hard`: once it is used up, what holds devices is stopped.
    """

    id: BudgetId
    name: str
    limit_milli_s: int
    used_milli_s: int
    ends_at: int
    project: ProjectId | None = None
    cohort: CohortId | None = None
    safe: bool = False
    hard: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`levels` names the levels of the topology, the outermost first. `landings` are those of
    plans before that are still to come. `rates` are () where all clusters charge the same."""

    at: int
    flavors: tuple[FlavorView, ...]
    clusters: tuple[ClusterView, ...]
    queues: tuple[QueueView, ...]
    pending: tuple[PendingView, ...] = ()
    holding: tuple[HoldingView, ...] = ()
    cohorts: tuple[CohortView, ...] = ()
    schema: int = SCHEMA
    reservations: tuple[ReservationView, ...] = ()
    levels: tuple[str, ...] = ()
    landings: tuple[Landing, ...] = ()
    budgets: tuple[BudgetView, ...] = ()
    rates: tuple[RateView, ...] = ()
