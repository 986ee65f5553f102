"""Workloads, where they run, and what was decided: one aggregate a file."""

from scheduler.models.check import InvariantCheck
from scheduler.models.confinement import Confinement
from scheduler.models.cycle import CycleInput, CycleRecord, SchedulerLease
from scheduler.models.defragmentation import Defragmentation
from scheduler.models.dependency import Dependency, DependencyKind, OnUnmet
from scheduler.models.estimate import Estimate
from scheduler.models.gate import Gate, GateState
from scheduler.models.idleness import Idleness
from scheduler.models.inspection import Inspection
from scheduler.models.kept import KeptRoom
from scheduler.models.landing import Landing
from scheduler.models.node_ask import AskState, NodeAsk, request_name
from scheduler.models.operation import Operation, OperationKind
from scheduler.models.origin import CaughtPod, Origin
from scheduler.models.placement import (
    Attempt,
    AttemptOutcome,
    Leftover,
    Placement,
    PlacementSpan,
)
from scheduler.models.pool import PoolSample
from scheduler.models.recut import Recut, RecutMode, RecutState
from scheduler.models.stray import Stray
from scheduler.models.told import Told
from scheduler.models.workload import (
    LIVE,
    PodSet,
    PodSetFlavor,
    Workload,
    WorkloadArray,
    WorkloadEvent,
)

__all__ = [
    "LIVE",
    "AskState",
    "Attempt",
    "AttemptOutcome",
    "CaughtPod",
    "Confinement",
    "CycleInput",
    "CycleRecord",
    "Defragmentation",
    "Dependency",
    "DependencyKind",
    "Estimate",
    "Gate",
    "GateState",
    "Idleness",
    "Inspection",
    "InvariantCheck",
    "KeptRoom",
    "Landing",
    "Leftover",
    "NodeAsk",
    "OnUnmet",
    "Operation",
    "OperationKind",
    "Origin",
    "Placement",
    "PlacementSpan",
    "PodSet",
    "PodSetFlavor",
    "PoolSample",
    "Recut",
    "RecutMode",
    "RecutState",
    "SchedulerLease",
    "Stray",
    "Told",
    "Workload",
    "WorkloadArray",
    "WorkloadEvent",
    "request_name",
]
