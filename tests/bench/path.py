"""`make bench-path`: the whole path's throughput, latency and start, as a table and as
tests/bench/results/path.json.

    python -m tests.bench.path [--only replay|latency|demo] [--trace DIR]
"""

import argparse
from collections.abc import Callable
from pathlib import Path

from tests.bench import demo_start, latency, replay
from tests.bench.report import RESULTS, Figures

PARTS = ("demo", "latency", "replay")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.path", description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="may be repeated")
    parser.add_argument("--trace", type=Path, default=replay.TRACE, help="the openb trace")
    parser.add_argument("--json", type=Path, default=RESULTS / "path.json", help="written here")
    options = parser.parse_args()
    chosen = options.only or PARTS
    if "replay" in chosen and not (options.trace / "README.md").exists():
        parser.error(f"there is no trace in {options.trace}; name its folder with --trace")
    take: dict[str, Callable[[Figures], None]] = {
        "demo": demo_start.take,
        "latency": latency.take,
        "replay": lambda figures: replay.take(figures, options.trace.absolute()),
    }
    figures = Figures()
    for part in PARTS:
        if part in chosen:
            take[part](figures)
    print(figures.table())
    figures.write(options.json)


if __name__ == "__main__":
    main()
