"""Ids, spans and amounts: the value types of the core.

An amount of a flavor is an int in thousandths (`_milli`): 1000 is one whole device, one MIG slice
or one CPU core; 250 is a quarter share of a device. Integers only, so sums are exact in any order.
"""

from dataclasses import dataclass
from typing import NewType

ClusterId = NewType("ClusterId", str)
NodeId = NewType("NodeId", str)
DeviceId = NewType("DeviceId", str)
FlavorId = NewType("FlavorId", str)
CohortId = NewType("CohortId", str)
ProjectId = NewType("ProjectId", str)
WorkloadId = NewType("WorkloadId", str)
PodSetId = NewType("PodSetId", str)
PlacementId = NewType("PlacementId", str)
UserId = NewType("UserId", str)
ArrayId = NewType("ArrayId", str)
BudgetId = NewType("BudgetId", str)

NOBODY = UserId("")
"""The user of work whose project has no caps of users."""
NO_WORKLOAD = WorkloadId("")
"""For whom work is evicted that goes for nobody else's sake."""
ONE_MILLI = 1000
"""One whole unit of any flavor."""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """[start, end) on a device's axis.

    The axis of a MIG device counts memory slices, 0 to 8 (NVML's "placement"); the axis of any
    other device counts thousandths of it, 0 to 1000, so that a whole device is Span(0, 1000) and
    shares lie side by side.
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end <= ONE_MILLI:
            raise ValueError(f"not a span: [{self.start}, {self.end})")

    @property
    def width(self) -> int:
        return self.end - self.start


DeviceSpan = tuple[DeviceId, Span]
"""A part of one device. A plain alias: stored snapshots are read by the types of their fields."""

WHOLE_DEVICE = Span(0, ONE_MILLI)
