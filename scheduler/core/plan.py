"""The frozen output of a plan: decisions only. The shell applies them; nothing here acts."""

from dataclasses import dataclass, field
from enum import StrEnum

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


class Verdict(StrEnum):
    """On one cluster."""

    CHOSEN = "chosen"
    FULL = "full"  # asked before the chosen one, or nothing is free: no place for its pods
    NO_MORE = "no-more"  # asked before it too: no more of its pods would start there
    DEARER = "dearer"  # not asked: it is charged more there, or nobody knows yet what
    EMPTIER = "emptier"  # not asked: as dear, but more is free, and stays so for larger work
    UNUSABLE = "unusable"  # takes nothing new: degraded, lost or held
    NOT_ACCEPTED = "not-accepted"  # the workload names others


class PassedFor(StrEnum):
    """Why other flavors, which are as welcome or more, were not taken."""

    LIMIT = "limit"  # a quota, cap or budget does not cover them
    GUARANTEE = "guarantee"  # they are beyond its guarantee, and those taken are within
    ROOM = "room"  # no cluster has room
    RESERVED = "reserved"  # what is free is reserved for others
    PRICE = "price"  # as welcome, and dearer or no cheaper


@dataclass(frozen=True, slots=True)
class Offer:
    """`free_milli`: thousandths of the flavors taken that were free there just before; None of a
    cluster that was not looked at. `nano_per_hour`: what all its pods are charged there, in
    billionths of the currency; None where nobody knows, and where all clusters charge the same."""

    cluster: ClusterId
    verdict: Verdict
    free_milli: int | None = None
    nano_per_hour: int | None = None


@dataclass(frozen=True, slots=True)
class Passed:
    """An option that was not taken: a flavor a pod set."""

    flavors: tuple[FlavorId, ...]
    why: PassedFor


@dataclass(frozen=True, slots=True)
class Choice:
    """`offers`: the chosen cluster first, then those looked at, then the others. `kept`: its
    places were kept for it since an earlier plan, which nothing else is told of then."""

    offers: tuple[Offer, ...] = ()
    passed: tuple[Passed, ...] = ()
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Admit:
    """Start this workload, all of `places` or none, in one cluster. `choice` tells why there; it
    is no part of what is decided, and None where there was nothing to choose. It goes `ahead_of`
    those for whom room is kept, after all rounds, on that room until its limit (`guarding/ahead`).
    """

    workload: WorkloadId
    cluster: ClusterId
    places: tuple[Place, ...]
    choice: Choice | None = field(default=None, compare=False)
    ahead_of: tuple[WorkloadId, ...] = ()


@dataclass(frozen=True, slots=True)
class Preempt:
    """Take back all placements of `victim`; `preemptor` is planned once their release is seen. Who
    moves to better flavors is its own. By the rules QUOTA and BUDGET it is for nobody,
    NO_WORKLOAD."""

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
