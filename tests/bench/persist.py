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
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import django

from controlplane.embedded.backing import Backing
from controlplane.embedded.place import temporary
from controlplane.embedded.process import server_account
from tests.bench.report import RESULTS, Figures

DECISIONS = 20_000
ADMITTED = {"holds": 0, "mixed": DECISIONS // 10, "admits": DECISIONS}
"""How many of them are admitted, by the figure's name."""
RUNS = 3


def take(figures: Figures, runs: int = RUNS) -> None:
    """Add the figures."""
    with _servers():
        from tests.bench import decisions  # needs Django set up

        decisions.seed(workloads=DECISIONS)
        for name, admitted in ADMITTED.items():
            took = min(decisions.apply_once(admitted=admitted) for _ in range(runs))
            figures.add(f"persist_{name}_s", took.wall_s, "s")
            figures.add(f"persist_{name}_python_s", took.python_s, "s")
            figures.add(f"persist_{name}_database_s", took.database_s, "s")


@contextmanager
def _servers() -> Iterator[None]:
    """PostgreSQL and Valkey, with Django set up to use them."""
    scratch, lock = temporary("persist", server_account())
    backing = Backing(data=scratch / "postgres", run=scratch, logs=scratch)
    try:
        backing.start()
        os.environ.update(backing.environ, DJANGO_SETTINGS_MODULE="controlplane.settings.test")
        django.setup()
        yield
    finally:
        backing.stop()
        shutil.rmtree(scratch, ignore_errors=True)
        os.close(lock)


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
