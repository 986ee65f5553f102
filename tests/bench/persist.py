"""How long one cycle's decisions on 20,000 waiting workloads take to become rows.

    python -m tests.bench.persist [--runs N] [--json FILE]

A PostgreSQL of its own, with the demo's settings (it waits for the disk), every constraint and
trigger on; 2,500 nodes of eight GPUs, 20 projects, workloads of one GPU. Timed is the loop's own
`apply`, each run on a fresh copy of one seeded database, for three plans: all are held; a tenth is
admitted; all are admitted, for which the limits of one cycle are lifted. The figure is the best
run's; beside it stand the processor time of the scheduler and of its database connection, which a
busy machine does not blur.
"""

import argparse
from pathlib import Path

from tests.bench.report import RESULTS, Figures
from tests.bench.servers import servers

DECISIONS = 20_000
ADMITTED = {"holds": 0, "mixed": DECISIONS // 10, "admits": DECISIONS}
"""How many of them are admitted, by the figure's name."""
RUNS = 3


def take(figures: Figures, runs: int = RUNS) -> None:
    """Add the figures."""
    with servers("persist"):
        from tests.bench import decisions  # needs Django set up

        decisions.seed(workloads=DECISIONS)
        for name, admitted in ADMITTED.items():
            took = min(decisions.apply_once(admitted=admitted) for _ in range(runs))
            figures.add(f"persist_{name}_s", took.wall_s, "s")
            figures.add(f"persist_{name}_python_s", took.python_s, "s")
            figures.add(f"persist_{name}_database_s", took.database_s, "s")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.persist", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each plan; the best counts")
    parser.add_argument("--json", type=Path, default=RESULTS / "core.json", help="written here")
    options = parser.parse_args()
    figures = Figures()
    take(figures, options.runs)
    print(figures.table())
    figures.write(options.json)


if __name__ == "__main__":
    main()
