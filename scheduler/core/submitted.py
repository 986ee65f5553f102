"""How a workload was submitted: as one of many, and as who it queues."""

from dataclasses import dataclass

from scheduler.core.units import ArrayId, WorkloadId


@dataclass(frozen=True, slots=True)
class ArrayView:
    """Workloads that were submitted as one, of which at most so many hold placements at once."""

    id: ArrayId
    most_at_once: int


@dataclass(frozen=True, slots=True)
class TurnView:
    """The submission as which a workload queues that was reordered: when that was, and of whom, in
    its project. Those of a project exchange theirs, so that no two that wait have the same."""

    submitted_at: int
    of: WorkloadId
