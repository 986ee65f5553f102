"""All figures of the core, and Kueue's baseline through the path: what `make bench-core` runs.

    python -m tests.bench.core [--variants] [--json FILE]
    TRACE=FILE python -m tests.bench.core

Each bench has options of its own when it is run alone.
"""

import argparse
from pathlib import Path

from tests.bench import kueue, kueue_path, mig, packing, persist, reclaim, scale
from tests.bench.report import RESULTS, Figures, Goal

GOALS = {
    "full_cycle_100k_x_10k_s": Goal(at_most=1),
    "steady_cycle_1pct_s": Goal(at_most=0.1),
    "full_cycle_100k_x_10k_peak_mib": Goal(at_most=1536),
    "kueue_baseline_core_per_s": Goal(at_least=20_000),
    "kueue_baseline_path_per_s": Goal(at_least=150),
    "kueue_baseline_small_mean_wait_s": Goal(at_most=55),
    "kueue_baseline_path_cpu_ms": Goal(at_most=36),
    "reclaim_100x8_on_1000_nodes_s": Goal(at_most=0.5),
    "reclaim_100x8_on_1000_nodes_lost_over_least": Goal(at_most=1),
    "openb_default_alloc_130_pct": Goal(at_least=95.4),
    "openb_default_alloc_130_pct_batch": Goal(at_least=97),
    "openb_default_decisions_per_s": Goal(at_least=20_000),
    "openb_default_above_fgd_pct": Goal(at_least=0),
    "mig_uniform_berth_above_published_points": Goal(at_least=0),
    "mig_many_small_berth_above_published_points": Goal(at_least=0),
    "mig_many_big_berth_above_published_points": Goal(at_least=0),
    "mig_bimodal_berth_above_published_points": Goal(at_least=0),
    "mig_mean_reshape_above_published_points": Goal(at_least=1.5),
    "persist_mixed_s": Goal(at_most=0.5),
}
"""On two cores. What small work can wait at least is in ADR 0047."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.core", description=__doc__)
    parser.add_argument("--variants", action="store_true", help="all pod lists of the folder")
    parser.add_argument("--json", type=Path, default=RESULTS / "core.json", help="written here")
    options = parser.parse_args()
    try:
        paths = packing.lists(variants=options.variants)
    except (FileNotFoundError, packing.BadList) as error:
        parser.error(str(error))
    figures = Figures()
    scale.take(
        figures, pending=scale.PENDING, nodes=scale.NODES, queues=scale.QUEUES, runs=scale.RUNS
    )
    scale.grow(figures)
    packing.take(figures, paths)
    mig.take(figures)
    reclaim.take(figures, reclaim.SIZES, reclaim.RUNS)
    kueue.take(figures)
    persist.take(figures)
    figures.write(options.json)
    kueue_path.take(figures)  # in real time: what goes wrong there costs no figure of the core
    figures.write(options.json)
    print(figures.against(GOALS))


if __name__ == "__main__":
    main()
