"""`python -m tests.faults`: plays the whole matrix, prints it as it came out and, where all is
well, writes it."""

import sys
from pathlib import Path

import pytest

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
    outcomes = _Outcomes()
    code = pytest.main(["-q", "-n", "0", str(PLAYED), *sys.argv[1:]], [outcomes])
    from tests.faults.table import MATRIX, cells, text  # once pytest has set Django up

    everything = {str(cell) for cell in cells()}
    print(text(failed=outcomes.failed | (everything - outcomes.played)))
    if code == 0 and outcomes.played == everything:
        MATRIX.write_text(text())
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
