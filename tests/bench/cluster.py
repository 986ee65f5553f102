"""`make bench-cluster`: what Berth makes of clusters, as a table and as
tests/bench/results/cluster.json.

    python -m tests.bench.cluster [--only writing|reading|slow] [--json FILE]

The exit status is 1 where a goal was missed.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.bench import slow
from tests.bench.report import RESULTS, Figures
from tests.bench.servers import servers


def writing(figures: Figures) -> None:
    with servers("writing"):
        from tests.bench import writing  # needs Django set up
        from tests.kube import binaries
        from tests.kube.control_plane import ControlPlane

        with ControlPlane(binaries.build()) as kube:
            writing.take(figures, kube)


def reading(figures: Figures) -> None:
    with servers("reading"):
        from tests.bench import reading  # as above

        reading.take(figures)


PARTS: dict[str, Callable[[Figures], None]] = {
    "writing": writing,
    "reading": reading,
    "slow": slow.take,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cluster", description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="may be repeated")
    parser.add_argument("--json", type=Path, default=RESULTS / "cluster.json", help="written here")
    options = parser.parse_args()
    parts = options.only or list(PARTS)
    failed = 0
    if len(parts) > 1:  # Django knows the servers of one part, in each process
        for part in parts:
            arguments = ["--only", part, "--json", str(options.json)]
            done = subprocess.run([sys.executable, "-m", "tests.bench.cluster", *arguments])
            failed += done.returncode != 0
        raise SystemExit(min(failed, 1))
    figures = Figures()
    PARTS[parts[0]](figures)
    print(figures.table())
    figures.write(options.json)
    if figures.missed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
