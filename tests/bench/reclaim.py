"""How fast one gang reclaims its quota from a full fleet, and what work that loses.

    python -m tests.bench.reclaim [--nodes 100 200 500 1000] [--runs 5] [--json FILE]

KAI-Scheduler's fixture (`BenchmarkReclaimLargeJobs`): N nodes of 8 GPUs, full of 8 N jobs of one
GPU that belong to a project which borrows; a gang of N/10 pods of 8 GPUs asks for what is its own.
Seconds are processor time of `plan` on a snapshot that is there, the best of some runs after a
first. The jobs have run for up to a day, drawn at random. Lost are GPUs x seconds run; beside them
the least possible, since each pod needs a whole node: the N/10 nodes where least is lost. Then, on
the same fleet, as many workloads of one GPU each as one plan evicts for.
"""

import argparse
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from scheduler.core.cycle import plan
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import (
    ClusterView,
    DeviceView,
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
    WHOLE_DEVICE,
    ClusterId,
    DeviceId,
    FlavorId,
    NodeId,
    PlacementId,
    PodSetId,
    ProjectId,
    WorkloadId,
)
from tests.bench.report import RESULTS, Figures

GPUS = 8
DAY_S = 86_400
AT = 1_000_000_000
H100 = FlavorView(FlavorId("h100"), "h100", FlavorKind.WHOLE, "H100")
CLUSTER = ClusterId("c")
SIZES = (100, 200, 500, 1000)
RUNS = 5


class Outcome(NamedTuple):
    """`lost_s` and `least_s` in GPU-seconds."""

    seconds: float
    victims: int
    lost_s: int
    least_s: int


def gang(nodes: int, *, seed: int = 42) -> Snapshot:
    """The fixture: a tenth of the fleet is asked back, by one gang."""
    pods = nodes // 10
    return _full(nodes, seed=seed, pending=(_asks("gang", pods=pods, gpus=GPUS),))


def singles(nodes: int, *, count: int, seed: int = 42) -> Snapshot:
    """As many workloads of one GPU each instead; none is another's like: their cores differ."""
    pending = (_asks(f"one{i:03}", pods=1, gpus=1, cores=i + 1) for i in range(count))
    return _full(nodes, seed=seed, pending=tuple(pending))


def _asks(name: str, *, pods: int, gpus: int, cores: int = 0) -> PendingView:
    pod_set = PodSetView(PodSetId(name), pods, pods, cores, 0, gpus, ONE_MILLI, (H100.id,))
    return PendingView(WorkloadId(name), ProjectId("owner"), 0, True, AT, (pod_set,))


def _full(nodes: int, *, seed: int, pending: tuple[PendingView, ...]) -> Snapshot:
    chance = random.Random(seed)
    own = nodes // 10 * GPUS * ONE_MILLI
    quotas = {"owner": own, "borrower": nodes * GPUS * ONE_MILLI - own}
    return Snapshot(
        at=AT,
        flavors=(H100,),
        clusters=(ClusterView(CLUSTER, "c", tuple(_node(n) for n in range(nodes))),),
        queues=tuple(
            QueueView(ProjectId(project), quotas=(QuotaView(H100.id, milli),))
            for project, milli in quotas.items()
        ),
        pending=pending,
        holding=tuple(
            _job(n, gpu, chance.randrange(DAY_S)) for n in range(nodes) for gpu in range(GPUS)
        ),
    )


def _node(n: int) -> NodeView:
    devices = tuple(DeviceView(DeviceId(f"n{n:05}/{g}"), g, "H100") for g in range(GPUS))
    return NodeView(NodeId(f"n{n:05}"), f"n{n:05}", 128_000, 1 << 20, devices, counted=True)


def _job(n: int, gpu: int, run_s: int) -> HoldingView:
    name = f"job{n:05}-{gpu}"
    placement = HeldView(
        PlacementId(name),
        PodSetId(name),
        NodeId(f"n{n:05}"),
        H100.id,
        ONE_MILLI,
        0,
        0,
        ((DeviceId(f"n{n:05}/{gpu}"), WHOLE_DEVICE),),
    )
    began_at = AT - run_s
    return HoldingView(
        WorkloadId(name), ProjectId("borrower"), CLUSTER, 0, True, began_at, (placement,), began_at
    )


def lost_s(of: Snapshot, made: Plan) -> int:
    """GPU-seconds of the plan's victims, which have one GPU each."""
    evicted = {preempt.victim for preempt in made.preempts}
    return sum(_run_s(of, held) for held in of.holding if held.id in evicted)


def least_s(of: Snapshot) -> int:
    """GPU-seconds that any way to free whole nodes for the gang loses at least."""
    on: dict[NodeId, int] = {}
    for held in of.holding:
        node = held.placements[0].node
        on[node] = on.get(node, 0) + _run_s(of, held)
    pods = sum(pod_set.count for waiting in of.pending for pod_set in waiting.pod_sets)
    return sum(sorted(on.values())[:pods])


def _run_s(of: Snapshot, held: HoldingView) -> int:
    return of.at - (held.started_at or of.at)


def timed(of: Snapshot, *, runs: int) -> tuple[float, Plan]:
    """The best of some runs after a first one, and the plan."""
    made = plan(of, Policy())
    seconds = []
    for _ in range(runs):
        start = time.process_time()
        plan(of, Policy())
        seconds.append(time.process_time() - start)
    return min(seconds), made


def reclaim(nodes: int, *, runs: int = RUNS) -> Outcome:
    of = gang(nodes)
    seconds, made = timed(of, runs=runs)
    return Outcome(seconds, len(made.preempts), lost_s(of, made), least_s(of))


def take(figures: Figures, sizes: Sequence[int], runs: int) -> None:
    """The table, a line for each size, and its figures."""
    print(f"{'nodes':>6} {'s':>8} {'victims':>8} {'GPU-h lost':>11} {'least':>9}")
    for nodes in sizes:
        found = reclaim(nodes, runs=runs)
        print(
            f"{nodes:6} {found.seconds:8.3f} {found.victims:8}"
            f" {found.lost_s / 3600:11,.1f} {found.least_s / 3600:9,.1f}",
            flush=True,
        )
        name = f"reclaim_{nodes // 10}x{GPUS}_on_{nodes}_nodes"
        figures.add(f"{name}_s", found.seconds, "s")
        figures.add(f"{name}_lost_over_least", found.lost_s / found.least_s, "")
        count = Policy().max_preemptors
        seconds, made = timed(singles(nodes, count=count), runs=runs)
        print(f"{nodes:6} {seconds:8.3f} {len(made.preempts):8}  for one GPU each")
        figures.add(f"reclaim_{count}x1_on_{nodes}_nodes_s", seconds, "s")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.reclaim", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--json", type=Path, default=RESULTS / "core.json", help="written here")
    options = parser.parse_args()
    figures = Figures()
    take(figures, options.nodes, options.runs)
    figures.write(options.json)


if __name__ == "__main__":
    main()
