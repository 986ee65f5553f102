"""The frozen output of a plan: decisions only. The shell applies them; nothing here acts."""

from dataclasses import dataclass

from scheduler.core.reasons import FaultKind, PreemptRule, Reason, ReasonCode, Subject
from scheduler.core.units import (
    ClusterId,
    DeviceId,
    FlavorId,
    NodeId,
    PlacementId,
    PodSetId,
    Span,
    WorkloadId,
)


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
    """Take back all placements of `victim`; `preemptor` is planned once their release is seen. Who
    moves to better flavors is its own. By the rule QUOTA it is for nobody, NO_WORKLOAD."""

    victim: WorkloadId
    preemptor: WorkloadId
    rule: PreemptRule


@dataclass(frozen=True, slots=True)
class Shrink:
    """Take back these placements of `victim`, which runs on with its least at least. Else as
    Preempt."""

    victim: WorkloadId
    placements: tuple[PlacementId, ...]
    preemptor: WorkloadId
    rule: PreemptRule


@dataclass(frozen=True, slots=True)
class Grow:
    """Give a workload that runs these places too, all of them or none.

    Their ranks count from 0: the pods get the next ones of its attempt in that order.
    """

    workload: WorkloadId
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Landing:
    """Where a workload starts next, before anybody else: it is moved, or others are for it.

    `since` is when that was decided; the places are kept until it has started, for a while.
    """

    workload: WorkloadId
    cluster: ClusterId
    places: tuple[Place, ...]
    since: int


@dataclass(frozen=True, slots=True)
class Hold:
    """Not now, and why: all whom a plan tells the same, class after class."""

    workloads: tuple[WorkloadId, ...]
    reason: Reason


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """A contradiction in the snapshot: what is wrong with `id`, and where, in one sentence."""

    kind: FaultKind
    subject: Subject
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Keep:
    """`places` are kept for a workload that waits. By `starts_at` all of them are free, and it
    starts if it still has the quota; None when something without a run-time limit has to end
    before. `idle_milli`: thousandths of devices that are free now and wait with it."""

    workload: WorkloadId
    starts_at: int | None
    places: tuple[Place, ...]
    idle_milli: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """Each pending workload of the snapshot stands in exactly one Admit or one Hold.

    `faults` are ascending; the plan is one for the rest. `landings` are all that are still to
    come after it; each of the snapshot's that is not among them is over. `frees` are taken back
    because their devices lie idle, for nobody in particular, and do not queue again.
    """

    admits: tuple[Admit, ...] = ()
    preempts: tuple[Preempt, ...] = ()
    holds: tuple[Hold, ...] = ()
    faults: tuple[Fault, ...] = ()
    keeps: tuple[Keep, ...] = ()
    landings: tuple[Landing, ...] = ()
    shrinks: tuple[Shrink, ...] = ()
    grows: tuple[Grow, ...] = ()
    frees: tuple[WorkloadId, ...] = ()

    def stopped(self, landings: tuple[Landing, ...]) -> "Plan":
        """The same while nothing may start: what would is held for that alone, and the `landings`
        of before are kept."""
        would = tuple(admit.workload for admit in self.admits)
        held = Hold(would, Reason(ReasonCode.ADMISSION_STOPPED))
        return Plan(holds=(*self.holds, held), faults=self.faults, landings=landings)

    def reasons(self) -> dict[WorkloadId, Reason]:
        """Why each that waits does."""
        return {id: hold.reason for hold in self.holds for id in hold.workloads}

    def decision(self, workload: WorkloadId) -> Admit | Hold:
        """What becomes of a workload that waits; a hold is of it alone."""
        reason = self.reasons().get(workload)
        if reason is not None:
            return Hold((workload,), reason)
        return next(admit for admit in self.admits if admit.workload == workload)
