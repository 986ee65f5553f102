"""Kueue's baseline through the whole of Berth: REST, PostgreSQL, Celery, a simulated cluster.

Processes of their own, as `make demo` starts them. Workloads come at the generator's own times;
what came due in a project within `WINDOW_S` is one request, and each wait counts from when the
generator had the workload due, to when it was first admitted. The simulated pods run the
generator's run times from the moment they are bound, as Kueue's runner has it. Cohorts are
tenants. `cpu_ms` is the processor time of Berth and its servers for one workload; the simulated
cluster, which stands for another's machines, is counted apart.

What must not live here: what happens beside the processes (`kueue_steps.py`).
"""

import json

from tests.bench import apart
from tests.bench.kueue import CORES, NODES
from tests.bench.report import Figures

NAMES = {"small_mean_wait_s": "kueue_baseline_small_mean_wait_s"}
"""Figures whose names do not begin as those of the path do."""
CLUSTER = "kueue"
_POOL = {"name": "cpu", "count": NODES, "cpu_milli": CORES * 1000, "memory_mib": CORES * 1024} | {
    "pods": 1000
}


def take(figures: Figures) -> None:
    """Start Berth apart, submit, wait for the end, add the figures. Raises SystemExit when it
    went wrong."""
    with apart.folder(CLUSTER) as folder:
        layout = folder / "nodes.json"
        layout.write_text(json.dumps([_POOL]))
        report = apart.Apart(
            folder=folder,
            cluster=CLUSTER,
            layout=layout,
            bootstrap="tests.bench.kueue_seed",
            steps="tests.bench.kueue_steps",
            plan={},
            environ={},
        ).run()
    for name, (value, unit) in report.items():
        figures.add(NAMES.get(name, f"kueue_baseline_path_{name}"), value, unit)
