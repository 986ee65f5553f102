"""openb at 130 % of arrivals through the whole of Berth: how full the GPUs get as more is asked.

    python -m tests.bench.curve [--seed 42] [--json FILE] [--picture FILE]

The arrivals of `packing.py`, in their order, are submitted through REST in batches of 2.5 % of the
GPUs, by one project; PostgreSQL, Celery's cycles, dispatch, the watcher and a simulated cluster of
the 1,213 nodes do the rest. After each batch one waits until every workload either runs or has
been told why it waits. Nothing ends, and each task takes its models in one order, as a user names
flavors.

The protocol is not quite FGD's: there what does not fit is dropped, here it stays in the queue, as
it does in life, counts among what is expected, and may start later; and one plan sees a batch.
"""

import argparse
import csv
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from controlplane.trace.fleet import CLUSTER
from scheduler.core.node.shapes import Shape
from tests.bench import apart, packing
from tests.bench.curve_picture import Line, Point, drawn, published
from tests.bench.replay import TRACE
from tests.bench.report import RESULTS, Figures

PODS = TRACE / "openb_pod_list_default.csv.gz"
SEED = 42
TOLD = 2
"""Every so many points are figures."""


def take(figures: Figures, *, seed: int) -> Line:
    """Start Berth apart, submit, add the figures; the curve. Raises SystemExit when it went
    wrong."""
    on = packing.cluster()
    shapes = packing.arrivals(packing.tasks(PODS, on.models), milli=on.milli, seed=seed)
    with apart.folder("curve") as folder:
        pods = folder / "pods.csv"
        write(pods, shapes, sorted(on.models))
        nodes = TRACE / packing.NODES
        found = apart.Apart(
            folder=folder,
            cluster=CLUSTER,
            layout=nodes,
            bootstrap="controlplane.trace.bootstrap",
            steps="tests.bench.curve_steps",
            plan={"nodes": str(nodes), "pods": str(pods)},
            # Where nothing ends, room that is kept for who has waited long stays empty.
            environ={"BERTH_GUARD_S": "0"},
        ).run()
    points = [Point(*point) for point in found["points"]]
    for point in points[TOLD - 1 :: TOLD]:
        figures.add(f"openb_path_alloc_{round(point.arrived_pct)}_pct", point.alloc_pct, "%")
    for name, (value, unit) in found["figures"].items():
        figures.add(f"openb_path_{name}", value, unit)
    return Line("Berth", [Point(0.0, 0.0), *points])


def write(path: Path, shapes: Sequence[Shape], models: Sequence[str]) -> None:
    """As a pod list whose names keep the order; what takes any model names them all."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec"))
        for number, shape in enumerate(shapes):
            accepted = [name for i, name in enumerate(models) if shape.models >> i & 1]
            writer.writerow((f"openb-{number:06}", *shape[:4], "|".join(accepted)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.curve", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="which more tasks, in which order")
    parser.add_argument("--json", type=Path, default=RESULTS / "core.json", help="written here")
    parser.add_argument("--picture", type=Path, default=RESULTS / "openb_curve.svg")
    options = parser.parse_args()
    if not PODS.exists():
        parser.error(f"there is no {PODS}")
    figures = Figures()
    curve = take(figures, seed=options.seed)
    beside = published((TRACE / "fgd_published_alloc.csv").read_text())
    day = datetime.now(UTC).date()
    options.picture.write_text(drawn([curve, *beside], seed=options.seed, day=day))
    print(figures.table())
    figures.write(options.json)


if __name__ == "__main__":
    main()
