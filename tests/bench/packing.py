"""How full the GPUs of openb get: the score for shared GPUs, by the protocol of FGD.

    python -m tests.bench.packing [--variants] [--seeds 42 43 ..] [--json FILE]
    TRACE=FILE python -m tests.bench.packing

A cluster of 1,213 nodes and 6,212 GPUs; the tasks of a pod list, and as many more drawn from them
as make 130 % of the GPUs, shuffled; one arrival at a time, none leaves, none is moved, none that
does not fit is tried again. The figure is the part of the GPUs that is taken in the end. The score
starts with nothing and learns the mix from the arrivals so far. In the second figure what would
waste much of a GPU may be overtaken by up to `--guard` later arrivals. The third is the planner's:
all tasks wait in one queue in order of arrival, each accepts its models in any order, and one plan
places what fits.
"""

import argparse
import csv
import gzip
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from scheduler.core.cycle import plan
from scheduler.core.node.shapes import ANY_MODEL, Node, Shape
from scheduler.core.policy import Policy
from scheduler.core.snapshot import (
    ClusterView,
    DeviceView,
    FlavorKind,
    FlavorView,
    Isolation,
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
    DeviceId,
    FlavorId,
    NodeId,
    PodSetId,
    ProjectId,
    WorkloadId,
)
from tests.bench.arrivals import Arrivals, asked_milli
from tests.bench.patience import Patience
from tests.bench.replay import TRACE
from tests.bench.report import RESULTS, Figures

PREFIX = "openb_pod_list_"
NODES = "openb_node_list_gpu_node.csv"
_MOST = 1 << 31
"""Of anything that a pod asks for."""
ARRIVED_PCT = 130
SEEDS = range(42, 52)
GUARD = 4096


class Cluster(NamedTuple):
    nodes: tuple[Node, ...]
    models: dict[str, int]

    @property
    def milli(self) -> int:
        return sum(sum(node.free) for node in self.nodes)


class Outcome(NamedTuple):
    """`alloc` in per cent; `seconds` of processor time."""

    alloc: float
    decisions: int
    seconds: float


def cluster(folder: Path = TRACE) -> Cluster:
    """In the order of the nodes' names, by which ties are decided."""
    rows = sorted(_rows(folder / NODES), key=lambda row: row["sn"])
    models = {name: i for i, name in enumerate(sorted({row["model"] for row in rows}))}
    nodes = (
        Node(
            int(row["cpu_milli"]),
            int(row["memory_mib"]),
            models[row["model"]],
            (ONE_MILLI,) * int(row["gpu"]),
        )
        for row in rows
    )
    return Cluster(tuple(nodes), models)


class BadList(ValueError):
    """A list of pods that can't be played, and where it is wrong."""


def tasks(path: Path, models: dict[str, int]) -> list[Shape]:
    """Raises BadList."""
    found = []
    for line, row in enumerate(_rows(path), start=2):
        where = f"{path}, line {line}"
        cpu_milli, memory_mib, gpus = (
            _number(row, name, where, most=_MOST)
            for name in ("cpu_milli", "memory_mib", "num_gpu")
        )
        milli = _number(row, "gpu_milli", where, most=ONE_MILLI) if gpus == 1 else ONE_MILLI
        accepted = (row.get("gpu_spec") or "").split("|")
        mask = sum(1 << models[name] for name in {*accepted} if name in models)
        found.append(
            Shape(
                cpu_milli,
                memory_mib,
                gpus,
                milli,
                mask if accepted != [""] else ANY_MODEL,
            )
        )
    if not any(map(asked_milli, found)):
        raise BadList(f"{path} has no pod that asks for a GPU: there is nothing to play.")
    return found


def _number(row: Mapping[str, str | None], name: str, where: str, *, most: int) -> int:
    text = (row.get(name) or "").strip()
    if not (text.isascii() and text.isdigit() and int(text) <= most):
        told = f"{where}: {name} is {row.get(name)!r}"
        raise BadList(f"{told}; right would be a whole number from 0 to {most}.")
    return int(text)


def arrivals(of: list[Shape], *, milli: int, seed: int) -> list[Shape]:
    """All of them and more drawn from them, shuffled, up to 130 % of `milli`."""
    chance = random.Random(seed)
    most = milli * ARRIVED_PCT // 100
    drawn, asked = list(of), sum(asked_milli(shape) for shape in of)
    while asked < most:
        drawn.append(chance.choice(of))
        asked += asked_milli(drawn[-1])
    chance.shuffle(drawn)
    total = 0
    for i, shape in enumerate(drawn):
        total += asked_milli(shape)
        if total > most:
            return drawn[:i]
    return drawn


def one_at_a_time(on: Cluster, pods: list[Shape]) -> Outcome:
    start, taken = time.process_time(), 0
    nodes = Arrivals(on.nodes)
    for shape in pods:
        nodes.see(shape)
        seat = nodes.best(shape)
        if seat is not None:
            nodes.place(shape, seat)
            taken += asked_milli(shape)
    return Outcome(100 * taken / on.milli, len(pods), time.process_time() - start)


def queued(on: Cluster, pods: list[Shape], guard: int) -> Outcome:
    start, taken = time.process_time(), 0
    queue = Patience(on=Arrivals(on.nodes), guard=guard)
    for shape in pods:
        taken += sum(asked_milli(seated.shape) for seated in queue.arrive(shape))
    taken += sum(asked_milli(seated.shape) for seated in queue.finish())
    return Outcome(100 * taken / on.milli, len(pods), time.process_time() - start)


def planned(on: Cluster, pods: list[Shape]) -> Outcome:
    of = _snapshot(on, pods)
    start = time.process_time()
    made = plan(of, Policy(max_admits=len(pods)))
    seconds = time.process_time() - start
    milli = sum(p.amount_milli for a in made.admits for p in a.places if p.spans)
    return Outcome(100 * milli / on.milli, len(pods), seconds)


def _snapshot(on: Cluster, pods: list[Shape]) -> Snapshot:
    models = sorted(on.models, key=on.models.__getitem__)
    wholes = [FlavorView(FlavorId(f"w{m}"), f"w{m}", FlavorKind.WHOLE, m) for m in models]
    shares = [
        FlavorView(FlavorId(f"s{m}"), f"s{m}", FlavorKind.SHARE, m, isolation=Isolation.MEMORY)
        for m in models
    ]
    cpu = FlavorView(FlavorId("cpu"), "cpu", FlavorKind.CPU)
    flavors = (*wholes, *shares, cpu)
    nodes = (
        NodeView(
            NodeId(f"{rank:06}"),
            f"{rank:06}",
            node.cpu_milli,
            node.memory_mib,
            tuple(
                DeviceView(DeviceId(f"{rank}/{g}"), g, models[node.model], shares=Isolation.MEMORY)
                for g in range(len(node.free))
            ),
        )
        for rank, node in enumerate(on.nodes)
    )
    accepts = {
        shape: (cpu.id,)
        if not shape.gpus
        else tuple(
            flavor.id
            for number, flavor in enumerate(shares if shape.gpu_milli < ONE_MILLI else wholes)
            if shape.models >> number & 1
        )
        for shape in set(pods)
    }
    unlimited = tuple(QuotaView(flavor.id, 1 << 40) for flavor in flavors)
    pending = (
        PendingView(
            WorkloadId(f"{i:06}"),
            ProjectId("p"),
            0,
            True,
            i,
            (PodSetView(PodSetId(f"{i}"), 1, 1, *shape[:4], accepts[shape], any_order=True),),
        )
        for i, shape in enumerate(pods)
    )
    return Snapshot(
        at=len(pods),
        flavors=flavors,
        clusters=(ClusterView(ClusterId("openb"), "openb", tuple(nodes)),),
        queues=(QueueView(ProjectId("p"), quotas=unlimited),),
        pending=tuple(pending),
    )


def published(folder: Path = TRACE) -> dict[tuple[str, str], float]:
    """The allocation at 130 % by (trace, policy)."""
    return {
        (row["trace"].removeprefix(PREFIX), row["policy"]): float(row["alloc_pct"])
        for row in _rows(folder / "fgd_published_alloc.csv")
        if row["arrived_pct"] == str(ARRIVED_PCT)
    }


def lists(*, variants: bool) -> list[Path]:
    """The pod list that TRACE names, else the default one, or all of the folder.

    Raises FileNotFoundError when one of them, or that of the nodes, is not there, and BadList.
    """
    chosen = os.environ.get("TRACE")
    if chosen:
        paths = [Path(chosen)]
    elif variants:
        paths = sorted(TRACE.glob(f"{PREFIX}*.csv*"), key=lambda p: (_name(p) != "default", p))
    else:
        paths = [TRACE / f"{PREFIX}default.csv.gz"]
    for path in (*paths, TRACE / NODES):
        if not path.exists():
            raise FileNotFoundError(f"there is no {path}")
    for path in paths:  # before anything is played for minutes
        tasks(path, {})
    return paths


def take(
    figures: Figures,
    paths: Sequence[Path],
    *,
    seeds: Sequence[int] = SEEDS,
    guard: int = GUARD,
) -> None:
    """The table and the figures of some pod lists."""
    print(
        f"{'GPUs % at 130':<12} {'mean':>7} {'sd':>5} {'least':>7} {'FGD':>7} {'ours-':>6}"
        f" {'above':>6} {'queued':>7} {'per s':>9}"
        f" {'planned':>8} {'per s':>9}"
    )
    for path in paths:
        _take(figures, path, seeds, guard)


def _take(figures: Figures, path: Path, seeds: Sequence[int], guard: int) -> None:
    on = cluster()
    name, of = _name(path), tasks(path, on.models)
    streams = [arrivals(of, milli=on.milli, seed=seed) for seed in seeds]
    one_at_a_time(on, streams[0][:100])  # compiles
    single = [one_at_a_time(on, pods) for pods in streams]
    batch = [queued(on, pods, guard) for pods in streams]
    live = [planned(on, pods) for pods in streams]
    mean, rate = fmean(o.alloc for o in single), _rate(single)
    planner = fmean(o.alloc for o in live)
    spread = stdev(o.alloc for o in single) if len(single) > 1 else 0.0
    fgd = published().get((name, "FGD"))
    beside = f"{fgd:7.2f} {mean - fgd:+6.2f}" if fgd else f"{'-':>7} {'':>6}"
    least = min(o.alloc for o in single)
    above = f"{sum(o.alloc >= fgd for o in single)}/{len(single)}" if fgd else ""
    print(
        f"{name:<12} {mean:7.2f} {spread:5.2f} {least:7.2f} {beside} {above:>6}"
        f" {fmean(o.alloc for o in batch):7.2f} {rate:9,.0f}"
        f" {planner:8.2f} {_rate(live):9,.0f}",
        flush=True,
    )
    figures.add(f"openb_{name}_alloc_{ARRIVED_PCT}_pct", mean, "%")
    figures.add(f"openb_{name}_alloc_{ARRIVED_PCT}_pct_batch", fmean(o.alloc for o in batch), "%")
    figures.add(f"openb_{name}_decisions_per_s", rate, "1/s")
    figures.add(f"openb_{name}_planned_{ARRIVED_PCT}_pct", planner, "%")
    figures.add(f"openb_{name}_planned_per_s", _rate(live), "1/s")
    if fgd:
        figures.add(f"openb_{name}_above_fgd_pct", mean - fgd, "%")
        figures.add(f"openb_{name}_planned_above_fgd_pct", planner - fgd, "%")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.packing", description=__doc__)
    parser.add_argument("--variants", action="store_true", help="all pod lists of the folder")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--guard", type=int, default=GUARD, help="how many may overtake a task")
    parser.add_argument("--json", type=Path, default=RESULTS / "core.json", help="written here")
    options = parser.parse_args()
    try:
        paths = lists(variants=options.variants)
    except (FileNotFoundError, BadList) as error:
        parser.error(str(error))
    figures = Figures()
    take(figures, paths, seeds=options.seeds, guard=options.guard)
    figures.write(options.json)


def _name(path: Path) -> str:
    return path.name.removeprefix(PREFIX).partition(".")[0]


def _rate(outcomes: list[Outcome]) -> float:
    return sum(o.decisions for o in outcomes) / sum(o.seconds for o in outcomes)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        yield from csv.DictReader(lines)


if __name__ == "__main__":
    main()
