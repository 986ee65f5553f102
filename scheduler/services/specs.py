"""What a user asks for, as values: bounds, defaults and priority classes. No database, no HTTP."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.core.snapshot import TopologyView

PRIORITY_CLASSES: Mapping[str, int] = {"low": -100, "normal": 0, "high": 100, "urgent": 200}

MAX_PODS = 4096
MAX_BATCH_PODS = 4 * MAX_PODS
"""In all workloads of one request: whether they could ever start is tried pod by pod."""
MAX_GPUS_PER_POD = 64
MAX_CPU_MILLI = 4_096_000
MAX_MEMORY_MIB = 64 * 1024 * 1024
MAX_POD_SETS = 16
MAX_ENV = 100
MAX_RUN_TIME_S = 90 * 24 * 3600
MAX_PENDING = 10_000
"""Pending workloads a project may have (reliability 4.6)."""


@dataclass(frozen=True, slots=True)
class PodSetSpec:
    """`flavors` are flavor names, accepted in that order. gpu_count 0 is CPU-only work."""

    name: str
    count: int
    min_count: int
    cpu_milli: int
    memory_mib: int
    gpu_count: int
    gpu_milli: int
    flavors: tuple[str, ...]
    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """`clusters` are names; empty accepts any. run_time_limit_s None is no limit, `topology` None
    anywhere."""

    name: str
    pod_sets: tuple[PodSetSpec, ...]
    priority_class: str = "normal"
    preemptible: bool = True
    run_time_limit_s: int | None = None
    clusters: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    topology: TopologyView | None = None
