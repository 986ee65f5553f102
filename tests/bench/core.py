"""All figures of the core, and Kueue's baseline through the path: what `make bench-core` runs.

    python -m tests.bench.core [--variants] [--json FILE]
    TRACE=FILE python -m tests.bench.core

Each bench has options of its own when it is run alone.
"""

import argparse
from pathlib import Path

from tests.bench import kueue, kueue_path, mig, packing, persist, reclaim, scale
from tests.bench.report import RESULTS, Figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.core", description=__doc__)
    parser.add_argument("--variants", action="store_true", help="all pod lists of the folder")
    parser.add_argument("--json", type=Path, default=RESULTS / "core.json", help="written here")
    options = parser.parse_args()
    try:
        paths = packing.lists(variants=options.variants)
    except FileNotFoundError as error:
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


if __name__ == "__main__":
    main()
