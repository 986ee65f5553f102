"""What a user asks for, as values: bounds, defaults and priority classes. No database, no HTTP."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from scheduler.core.failures import RETRIES, Retries
from scheduler.core.snapshot import FlavorKind, Isolation, SetTopologyView, TopologyView
from scheduler.core.units import ONE_MILLI
from tenants.gating import GateSpec

PRIORITY_CLASSES: Mapping[str, int] = {"low": -100, "normal": 0, "high": 100, "urgent": 200}

MAX_PODS = 4096
MAX_BATCH_PODS = 4 * MAX_PODS
"""In all workloads of one request: whether they could ever start is tried pod by pod."""
MAX_GPUS_PER_POD = 64
MAX_CPU_MILLI = 4_096_000
MAX_MEMORY_MIB = 64 * 1024 * 1024
MAX_DEVICE_MIB = 2**30
MAX_POD_SETS = 16
MAX_ENV = 100
MAX_RUN_TIME_S = 90 * 24 * 3600
MIN_GRACE_S, GRACE_S, MAX_GRACE_S = 1, 30, 3600
"""Never none at all: a program that is killed outright can save nothing."""
MAX_NOTICE_S = 3600
MAX_PENDING = 10_000
"""Pending workloads a project may have (reliability 4.6)."""
MAX_ELEMENTS = MAX_PENDING
MAX_DEPENDENCIES = 20
AFTER: tuple[str, ...] = ("after-success", "after-end", "after-failure")
"""How what is waited for has to end: as `models.DependencyKind`, the usual one first."""


@dataclass(frozen=True, slots=True)
class WishSpec:
    """A whole device with so much memory, 0 any, of one of these vendors, () any."""

    least_memory_mib: int = 0
    vendors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodSetSpec:
    """`flavors` are flavor names, accepted in that order, or with `any_order` in any: that goes
    with named ones alone. gpu_count 0 is CPU-only work.

    With `gpu_memory_mib` a pod gets the least part of one device that has it. No flavor will do
    that isolates less than `least_isolation`.
    With a `wish`, `wished` are the names of those that have it, behind the others, and without
    either those that the project prefers: found when the submission is checked.
    `images_beside` are of its other containers, which only pods that others made have.
    """

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
    wish: WishSpec | None = None
    wished: tuple[str, ...] = ()
    topology: SetTopologyView | None = None
    gpu_memory_mib: int | None = None
    least_isolation: Isolation = Isolation.NONE
    any_order: bool = False
    images_beside: tuple[str, ...] = ()

    @property
    def accepted(self) -> tuple[str, ...]:
        """In order: those that were named, then those that have what is wished."""
        return self.flavors + self.wished

    @property
    def as_preferred(self) -> bool:
        """Whether it accepts what its project prefers, for want of its own word."""
        return not self.flavors and self.wish is None

    @property
    def kind(self) -> FlavorKind:
        return kind_asked(
            gpu_count=self.gpu_count,
            gpu_milli=self.gpu_milli,
            gpu_memory_mib=self.gpu_memory_mib,
        )


def kind_asked(*, gpu_count: int, gpu_milli: int, gpu_memory_mib: int | None) -> FlavorKind:
    """Of what flavors such pods get that name none. A slice is asked for by name alone."""
    if not gpu_count:
        return FlavorKind.CPU
    is_part = gpu_milli != ONE_MILLI or gpu_memory_mib is not None
    return FlavorKind.SHARE if is_part else FlavorKind.WHOLE


ON_UNMET: tuple[str, ...] = ("cancel", "hold")
"""What becomes of who waits in vain: as `models.OnUnmet`, the usual one first."""


@dataclass(frozen=True, slots=True)
class DependencySpec:
    """To be waited for: a workload, or all of an array, or, `by_index`, by each element of an
    array the one of its index in that other array."""

    kind: str
    on: UUID
    is_array: bool = False
    by_index: bool = False
    on_unmet: str = ON_UNMET[0]


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """How many workloads there are of one kind, and how many of them may run at once; None is as
    many as fit."""

    size: int
    most_at_once: int | None = None


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """`clusters` are names; empty accepts any. run_time_limit_s None is no limit, `topology` None
    anywhere. It starts once all of `depends_on` have ended so, and its `gates`, next to
    those of its project, are open. Its pods have `grace_s` from
    SIGTERM to SIGKILL; evicted, it is told `notice_s` before that. With `move_to_better` it is
    stopped, too, to start again on an earlier of its flavors. It starts elsewhere once its cluster
    has been silent for `cluster_loss_requeue_s`; None waits for it. Without a word on its
    `priority_class`, "", it has that of its project's policy. `is_caught`: its pods were made by
    others."""

    name: str
    pod_sets: tuple[PodSetSpec, ...]
    priority_class: str = ""
    preemptible: bool = True
    move_to_better: bool = False
    run_time_limit_s: int | None = None
    clusters: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    topology: TopologyView | None = None
    depends_on: tuple[DependencySpec, ...] = ()
    gates: tuple[GateSpec, ...] = ()
    retries: Retries = RETRIES
    grace_s: int = GRACE_S
    notice_s: int = 0
    cluster_loss_requeue_s: int | None = None
    is_caught: bool = False
