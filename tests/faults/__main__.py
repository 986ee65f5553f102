"""`python -m tests.faults`: plays the whole matrix, prints it as it came out and, where all is
well, writes it, and under it that it did."""

import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.bench.report import commit

# Not imported: that takes Django, which pytest sets up.
PLAYED = Path(__file__).with_name("test_matrix.py")


class _Outcomes:
    """Which cells failed, of those that were played."""

    def __init__(self) -> None:
        self.failed: set[str] = set()
        self.played: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        cell = report.nodeid.partition("[")[2].removesuffix("]")
        if report.when == "call" or report.failed:
            self.played.add(cell)
        if report.failed:
            self.failed.add(cell)


def main() -> int:
    outcomes, began_at, of = _Outcomes(), datetime.now(UTC), commit()
    began_s = time.monotonic()
    code = pytest.main(["-q", "-n", "0", str(PLAYED), *sys.argv[1:]], [outcomes])
    took_s = round(time.monotonic() - began_s)
    from tests.faults.table import MATRIX, cells, run, text  # once pytest has set Django up

    everything = {str(cell) for cell in cells()}
    print(text(failed=outcomes.failed | (everything - outcomes.played)))
    if code == 0 and outcomes.played == everything:
        MATRIX.write_text(text() + run(began_at=began_at, commit=of, took_s=took_s))
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
