"""How long one plan takes over a large fleet, and how that grows.

    python -m tests.bench.scale [--pending N] [--nodes N] [--queues N] [--runs N] [--table]

The first cycle finds an empty fleet and decides on everything, with a reason for all that
waits. The steady one comes after it: what was started runs, one workload in a hundred has
ended, as many have come, and one node in a hundred has gone. It is planned with a memory of the
plan before and, to compare, from the snapshot alone. One core; seconds are of processor time,
the best of some runs. Memory in MiB is the most that a process of its own needs for the first
cycle, the snapshot included.
"""

import argparse
import gc
import resource
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

from scheduler.core.cycle import plan
from scheduler.core.memory import Memory
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.simulating.carried import started_by
from scheduler.core.snapshot import Snapshot
from scheduler.core.units import ONE_MILLI
from tests.bench.fleet import fleet, waiting, with_limits
from tests.bench.report import RESULTS, Figures

ALL = Policy(max_admits=10**9)
DEFAULTS = replace(ALL, guard_s=1800, consolidation_budget_milli_s=3600 * ONE_MILLI)
"""The guard and the consolidation budget of a new installation besides."""
PENDING, NODES, QUEUES, RUNS = 100_000, 10_000, 1_000, 3
SIZES = (1_000, 10_000, 100_000), (100, 1_000, 10_000)
PART = 100


def running(of: Snapshot, made: Plan) -> Snapshot:
    """The plan carried out."""
    asked = {pending.id: pending for pending in of.pending}
    holding = tuple(started_by(admit, asked[admit.workload], at=of.at) for admit in made.admits)
    waits = made.reasons()
    left = tuple(pending for pending in of.pending if pending.id in waits)
    return replace(of, pending=left, holding=(*of.holding, *holding))


def later(of: Snapshot, queues: int, *, seed: int = 2) -> Snapshot:
    """A hundredth of the work has ended and come, a hundredth of the nodes has gone."""
    random = Random(seed)
    ended = set(random.sample(range(len(of.holding)), len(of.holding) // PART))
    come = range(seed * 10**6, seed * 10**6 + len(of.pending) // PART)
    new = tuple(replace(waiting(random, i, queues), submitted_at=of.at) for i in come)
    cluster = of.clusters[0]
    gone = set(random.sample(range(len(cluster.nodes)), len(cluster.nodes) // PART))
    nodes = tuple(
        replace(node, usable=False) if i in gone else node for i, node in enumerate(cluster.nodes)
    )
    return replace(
        of,
        at=of.at + 5,
        pending=(*of.pending, *new),
        holding=tuple(held for i, held in enumerate(of.holding) if i not in ended),
        clusters=(replace(cluster, nodes=nodes),),
    )


def timed(
    of: Snapshot, runs: int, *, after: Snapshot | None = None, policy: Policy = ALL
) -> tuple[float, Plan]:
    """The best of some runs, each with a memory of the plan `after` that snapshot, if one is
    given."""
    seconds = []
    for _ in range(runs):
        memory = Memory()
        if after is not None:
            plan(after, policy, memory)
        gc.collect()  # what was made before; a scheduler has the time between two plans
        start = time.process_time()
        made = plan(of, policy, memory)
        seconds.append(time.process_time() - start)
    return min(seconds), made


def take(figures: Figures, *, pending: int, nodes: int, queues: int, runs: int) -> None:
    """The first cycle, the steady one, and what they need."""
    # First: a process begins with its parent's peak.
    peak_mib = _peak_mib(pending, nodes, queues)
    timed(fleet(pending=1000, nodes=10, queues=10), 1)  # compiled code is loaded
    of = fleet(pending=pending, nodes=nodes, queues=queues)
    seconds, made = timed(of, runs)
    pods = sum(len(admit.places) for admit in made.admits)
    reasons = Counter(reason.code.value for reason in made.reasons().values())
    print(f"{pending:,} pending, {nodes:,} nodes, {queues:,} queues: {seconds:.2f} s")
    print(f"  {len(made.admits):,} start with {pods:,} pods; others wait: {dict(reasons)}")
    before = running(of, made)
    next_one = later(before, queues)
    steady, next_plan = timed(next_one, runs, after=before)
    anew, same = timed(next_one, 1)
    if same != next_plan:
        raise SystemExit("the plan with a memory is not the one without")
    print(f"  the next cycle: {steady:.2f} s, {len(same.admits):,} start; anew: {anew:.2f} s")
    guarded, steady_guarded = _by_defaults(of, queues, runs)
    print(f"  by the defaults of an installation: {guarded:.2f} s, next {steady_guarded:.2f} s")
    limited, steady_limited = _by_defaults(with_limits(of), queues, runs)
    print(f"  with limits and half of it new: {limited:.2f} s, next {steady_limited:.2f} s")
    name = f"{_short(pending)}_x_{_short(nodes)}"
    figures.add(f"full_cycle_{name}_s", seconds, "s")
    figures.add(f"full_cycle_{name}_defaults_s", guarded, "s")
    figures.add("steady_cycle_1pct_defaults_s", steady_guarded, "s")
    figures.add(f"full_cycle_{name}_limits_s", limited, "s")
    figures.add("steady_cycle_1pct_limits_s", steady_limited, "s")
    figures.add(f"full_cycle_{name}_decided_per_s", pending / seconds, "/s")
    figures.add(f"full_cycle_{name}_pods_per_s", pods / seconds, "/s")
    figures.add("steady_cycle_1pct_s", steady, "s")
    figures.add("steady_cycle_1pct_anew_s", anew, "s")
    figures.add(f"full_cycle_{name}_peak_mib", peak_mib, "MiB")


def _by_defaults(of: Snapshot, queues: int, runs: int) -> tuple[float, float]:
    """Seconds of the first and the next plan by DEFAULTS."""
    first, made = timed(of, runs, policy=DEFAULTS)
    before = running(of, made)
    steady, _ = timed(later(before, queues), runs, after=before, policy=DEFAULTS)
    return first, steady


def grow(figures: Figures) -> None:
    """Seconds of a first cycle, by pending work and nodes."""
    print(f"{'pending':>9}" + "".join(f"{nodes:>11,} nodes" for nodes in SIZES[1]))
    for pending in SIZES[0]:
        row = f"{pending:9,}"
        for nodes in SIZES[1]:
            of = fleet(pending=pending, nodes=nodes, queues=max(10, pending // 100))
            seconds, _ = timed(of, 2)
            row += f"{seconds:15.3f} s"
            figures.add(f"cycle_{_short(pending)}_x_{_short(nodes)}_grown_s", seconds, "s")
        print(row, flush=True)


def _short(count: int) -> str:
    return f"{count // 1000}k" if count >= 1000 and count % 1000 == 0 else str(count)


def _peak_mib(pending: int, nodes: int, queues: int) -> float:
    command = [sys.executable, "-m", "tests.bench.scale", "--peak"]
    sizes = ["--pending", str(pending), "--nodes", str(nodes), "--queues", str(queues)]
    done = subprocess.run([*command, *sizes], check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__)
    parser.add_argument("--pending", type=int, default=PENDING)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--queues", type=int, default=QUEUES)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--table", action="store_true", help="how it grows, too")
    parser.add_argument("--peak", action="store_true", help="print the memory one plan needs")
    parser.add_argument("--json", type=Path, default=RESULTS / "core.json", help="written here")
    options = parser.parse_args()
    sizes = {"pending": options.pending, "nodes": options.nodes, "queues": options.queues}
    if options.peak:
        plan(fleet(**sizes), ALL)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    figures = Figures()
    take(figures, **sizes, runs=options.runs)
    if options.table:
        grow(figures)
    figures.write(options.json)


if __name__ == "__main__":
    main()
