"""`make matrix`: asks every route as everybody, and says what was asked and what of it was wrong.

    python -m tests.api

Without arguments, and where nothing was wrong, it writes tests/bench/results/matrix.json. A cell
is the answer to one who asks one method of one route; in test_foreign.py it is two answers, which
have to be alike.
"""

import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.bench.report import RESULTS, Figures

PARTS = (
    "access_matrix", "fleet_members", "elsewhere", "foreign", "tokens_of_all",
    "back_office_routes",
)  # fmt: skip
PLANTED = "test_it_notices_"


class _Counts:
    """Rows, cells and wrong cells by test; planted holes, and those that were noticed."""

    def __init__(self) -> None:
        self.by_test: dict[str, Counter[str]] = {}
        self.planted: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call":
            return
        file, _, name = report.nodeid.partition("[")[0].partition("::")
        told = {key: int(str(value)) for key, value in report.user_properties}
        if name.startswith(PLANTED):
            self.planted.update(planted=1, noticed=int(report.passed))
        elif told:
            test = f"{Path(file).stem.removeprefix('test_')}: {name.removeprefix('test_')}"
            self.by_test.setdefault(test, Counter()).update(rows=1, **told)


def main() -> int:
    counts = _Counts()
    files = [str(Path(__file__).with_name(f"test_{part}.py")) for part in PARTS]
    code = pytest.main([*files, *sys.argv[1:]], [counts])
    from tests.api.test_access_matrix import ROWS, routes  # once pytest has set Django up

    whole = sum(counts.by_test.values(), Counter())
    print(f"{'':<66}{'rows':>8}{'cells':>8}{'wrong':>8}")
    for test, of in sorted(counts.by_test.items()):
        print(f"{test.replace('_', ' '):<66}{of['rows']:>8}{of['cells']:>8}{of['wrong']:>8}")
    figures = Figures()
    for name, value in {
        "routes": len(set(routes())),
        "methods": len(ROWS),
        **{f"{test}, cells": of["cells"] for test, of in sorted(counts.by_test.items())},
        "cells": whole["cells"],
        "wrong cells": whole["wrong"],
        "planted holes": counts.planted["planted"],
        "planted holes noticed": counts.planted["noticed"],
    }.items():
        figures.add(name, value, "count")
    print(figures.table())
    if code == 0 and len(sys.argv) == 1:  # all of it
        figures.write(RESULTS / "matrix.json")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
