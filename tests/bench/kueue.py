"""Kueue's own baseline, test/performance/scheduler/configs/baseline, with Berth in Kueue's place.

    python -m tests.bench.kueue [--path] [--json FILE]

5 cohorts of 6 queues, each with 20 units and up to 100 borrowed; who came back takes its own
again, and higher priority goes before lower in a queue. Each queue gets 350 small workloads, 100
medium and 50 large: 15,000 in all, which 600 units can't run in less than 66 s. A unit is a core,
as in Kueue's own files, and a workload one pod. Kueue places nothing, so the nodes here have more
cores than the quotas give, and quota alone decides.

The core alone: a plan each 0.2 s of a clock that is only counted, on a snapshot of that moment;
who is evicted waits again at the next. Timed are the plans, in processor time, the best of some
runs. `--path` measures the whole path instead (`kueue_path.py`): real processes, in real time.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from scheduler.core.compiled import compiled
from scheduler.core.cycle import plan
from scheduler.core.memory import Memory
from scheduler.core.plan import Admit
from scheduler.core.policy import Policy
from scheduler.core.snapshot import (
    ClusterView,
    CohortView,
    FlavorKind,
    FlavorView,
    HeldView,
    HoldingView,
    NodeView,
    PendingView,
    PodSetView,
    QueueView,
    QuotaView,
    Snapshot,
)
from scheduler.core.units import (
    ONE_MILLI,
    ClusterId,
    CohortId,
    FlavorId,
    NodeId,
    PlacementId,
    PodSetId,
    ProjectId,
    WorkloadId,
)
from tests.bench.report import RESULTS, Figures

COHORTS, QUEUES = 5, 6
NOMINAL, BORROWED = 20, 100
NODES, CORES = 8, 128
MEMORY_MIB = 64
CYCLE_MS = 200
RUNS = 3
_CPU = FlavorId("cpu")


class Kind(NamedTuple):
    """One class of the generator: how many a queue, and when; times in milliseconds."""

    name: str
    workloads: int
    every_ms: int
    units: int
    runs_ms: int
    priority: int
    priority_class: str


KINDS = (
    Kind("small", 350, 100, 1, 200, 50, "low"),
    Kind("medium", 100, 500, 5, 500, 100, "normal"),
    Kind("large", 50, 1200, 20, 1000, 200, "high"),
)
"""Priorities as Kueue's and, for the whole path, the class that stands for it."""


class Arrival(NamedTuple):
    at_ms: int
    queue: int
    kind: Kind
    name: str


def arrivals() -> list[Arrival]:
    """All 15,000 in order of time. Queue `q` is of cohort `q % COHORTS`."""
    found = [
        Arrival(index * kind.every_ms, queue, kind, f"{kind.name}-{queue}-{index}")
        for kind in KINDS
        for index in range(kind.workloads)
        for queue in range(COHORTS * QUEUES)
    ]
    return sorted(found)


class Baseline:
    """The baseline on a counted clock, one plan after the other."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.plans = self.evictions = self.now_ms = 0
        self.waits_ms: dict[str, list[int]] = defaultdict(list)
        self._coming = arrivals()[::-1]
        self._by_id = {WorkloadId(each.name): each for each in self._coming}
        self._views: dict[WorkloadId, PendingView] = {}
        self._pending: dict[WorkloadId, PendingView] = {}
        self._holding: dict[WorkloadId, tuple[int, HoldingView]] = {}
        self._admitted: set[WorkloadId] = set()
        self.idle = _snapshot()
        self._memory = Memory()

    def run(self) -> None:
        """Until all have ended."""
        while self._coming or self._pending or self._holding:
            self._pass()
            if self._pending:
                self._plan()
            self.now_ms += CYCLE_MS

    def _pass(self) -> None:
        """What the clock brings: ends, room of those who were evicted, arrivals."""
        for id, (ends_ms, view) in list(self._holding.items()):
            if ends_ms <= self.now_ms or view.releasing:
                del self._holding[id]
                if view.releasing:
                    self._pending[id] = self._views[id]
        while self._coming and self._coming[-1].at_ms <= self.now_ms:
            waits = _pending(self._coming.pop())
            self._views[waits.id] = self._pending[waits.id] = waits

    def _plan(self) -> None:
        snapshot = replace(
            self.idle,
            at=self.now_ms // 1000,
            pending=tuple(self._pending.values()),
            holding=tuple(view for _, view in self._holding.values()),
        )
        began = time.process_time()
        made = plan(snapshot, Policy(), self._memory)
        self.seconds += time.process_time() - began
        self.plans += 1
        for preempt in made.preempts:
            ends_ms, victim = self._holding[preempt.victim]
            self._holding[preempt.victim] = ends_ms, replace(victim, releasing=True)
        self.evictions += len(made.preempts)
        for admit in made.admits:
            self._start(admit, self._pending.pop(admit.workload))

    def _start(self, admit: Admit, pending: PendingView) -> None:
        arrival = self._by_id[admit.workload]
        if admit.workload not in self._admitted:
            self._admitted.add(admit.workload)
            self.waits_ms[arrival.kind.name].append(self.now_ms - arrival.at_ms)
        now_s = self.now_ms // 1000
        view = HoldingView(
            pending.id,
            pending.project,
            admit.cluster,
            pending.priority,
            pending.preemptible,
            now_s,
            tuple(
                HeldView(
                    PlacementId(f"{pending.id}/{place.rank}"),
                    place.pod_set,
                    place.node,
                    place.flavor,
                    place.amount_milli,
                    place.cpu_milli,
                    place.memory_mib,
                )
                for place in admit.places
            ),
            started_at=now_s,
            pod_sets=pending.pod_sets,
        )
        self._holding[pending.id] = self.now_ms + arrival.kind.runs_ms, view


def _pending(arrival: Arrival) -> PendingView:
    milli = arrival.kind.units * ONE_MILLI
    pod_set = PodSetView(PodSetId(arrival.name), 1, 1, milli, MEMORY_MIB, 0, ONE_MILLI, (_CPU,))
    return PendingView(
        WorkloadId(arrival.name),
        ProjectId(f"queue-{arrival.queue}"),
        arrival.kind.priority,
        preemptible=True,
        submitted_at=arrival.at_ms // 1000,
        pod_sets=(pod_set,),
    )


def _snapshot() -> Snapshot:
    """Nobody waits and nothing runs. Nothing crosses the edge of a cohort."""
    return Snapshot(
        at=0,
        flavors=(FlavorView(_CPU, "cpu", FlavorKind.CPU),),
        clusters=(ClusterView(ClusterId("kueue"), "kueue", tuple(_nodes())),),
        queues=tuple(
            QueueView(
                ProjectId(f"queue-{queue}"),
                CohortId(f"cohort-{queue % COHORTS}"),
                quotas=(QuotaView(_CPU, NOMINAL * ONE_MILLI, BORROWED * ONE_MILLI),),
            )
            for queue in range(COHORTS * QUEUES)
        ),
        cohorts=tuple(
            CohortView(CohortId(f"cohort-{index}"), quotas=(QuotaView(_CPU, 0, 0, 0),))
            for index in range(COHORTS)
        ),
    )


def _nodes() -> Iterator[NodeView]:
    for index in range(NODES):
        yield NodeView(NodeId(f"n{index}"), f"n{index}", CORES * ONE_MILLI, CORES * 1024)


def _played() -> Baseline:
    baseline = Baseline()
    baseline.run()
    return baseline


def take(figures: Figures) -> None:
    """The core alone."""
    compiled("sweep.sweep")
    baseline = min((_played() for _ in range(RUNS)), key=lambda each: each.seconds)
    admitted = sum(map(len, baseline.waits_ms.values()))
    figures.add("kueue_baseline_core_per_s", admitted / baseline.seconds, "1/s")
    figures.add("kueue_baseline_core_plans", baseline.plans, "plans")
    figures.add("kueue_baseline_core_evictions", baseline.evictions, "evictions")
    figures.add("kueue_baseline_core_length_s", baseline.now_ms / 1000, "s")
    for name, waits in baseline.waits_ms.items():
        figures.add(f"kueue_baseline_core_{name}_mean_wait_s", fmean(waits) / 1000, "s")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.kueue", description=__doc__)
    parser.add_argument("--path", action="store_true", help="the whole path, in real time")
    parser.add_argument("--json", type=Path, default=RESULTS / "core.json", help="written here")
    options = parser.parse_args()
    figures = Figures()
    if options.path:
        from tests.bench import kueue_path  # which takes the generator from here

        kueue_path.take(figures)
    else:
        take(figures)
    print(figures.table())
    figures.write(options.json)


if __name__ == "__main__":
    main()
