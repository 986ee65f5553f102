"""Workloads, where they run, and what was decided: one aggregate a file."""

from scheduler.models.check import InvariantCheck
from scheduler.models.cycle import CycleInput, CycleRecord, SchedulerLease
from scheduler.models.estimate import Estimate
from scheduler.models.operation import Operation, OperationKind
from scheduler.models.placement import (
    Attempt,
    AttemptOutcome,
    Leftover,
    Placement,
    PlacementSpan,
)
from scheduler.models.workload import PodSet, PodSetFlavor, Workload, WorkloadEvent

__all__ = [
    "Attempt",
    "AttemptOutcome",
    "CycleInput",
    "CycleRecord",
    "Estimate",
    "InvariantCheck",
    "Leftover",
    "Operation",
    "OperationKind",
    "Placement",
    "PlacementSpan",
    "PodSet",
    "PodSetFlavor",
    "SchedulerLease",
    "Workload",
    "WorkloadEvent",
]
