"""`make bench-web`: what pages and API cost a large installation, as a table and as
tests/bench/results/web.json.

    python -m tests.bench.web [--seconds N] [--json FILE]

1,000 projects in a tree of 111 tenants, with 100,000 workloads that wait. Each list page is read
once by somebody with a role in the whole fleet: its queries, and how long it takes. Then the web
server, as an installation runs it, is asked by 8 clients without a pause between their requests.
Last, what row-level security would cost the same pages (ADR 0117).
"""

import argparse
from pathlib import Path

from tests.bench.report import RESULTS, Figures
from tests.bench.servers import servers


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.web", description=__doc__)
    parser.add_argument("--seconds", type=int, default=30, help="that the clients ask for")
    parser.add_argument("--json", type=Path, default=RESULTS / "web.json", help="written here")
    options = parser.parse_args()
    figures = Figures()
    with servers("web"):
        from tests.bench import asking  # Django has to know the servers before

        asking.take(figures, seconds=options.seconds)
    print(figures.table())
    figures.write(options.json)


if __name__ == "__main__":
    main()
