"""The matrix is whole, and its page tells it."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.faults import __main__ as command
from tests.faults import table
from tests.faults.scene import Kind, Phase
from tests.faults.table import FAULTS, MATRIX, WHY, cells, text

RUN = re.compile(
    r"\nLast played whole on \d{4}-\d\d-\d\d from \d\d:\d\d UTC, at commit \S+:"
    r" \d+ cells in [\d,]+ s\.\n"
)


def test_the_page_is_what_the_matrix_says() -> None:
    page = MATRIX.read_text()
    assert page.startswith(text())
    under = page.removeprefix(text())
    assert under == "" or RUN.fullmatch(under)


@pytest.mark.parametrize("is_whole", [True, False])
def test_the_page_tells_of_a_run_of_every_cell_and_of_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_whole: bool
) -> None:
    """Which takes too long to be run for this: here pytest says what it would."""
    page = tmp_path / "MATRIX.md"

    def play(arguments: list[str], plugins: list[command._Outcomes]) -> int:
        plugins[0].played |= {str(cell) for cell in list(cells())[not is_whole :]}
        return 0

    monkeypatch.setattr(pytest, "main", play)
    monkeypatch.setattr(sys, "argv", ["faults"])
    monkeypatch.setattr(table, "MATRIX", page)
    assert command.main() == 0
    assert page.exists() is is_whole
    if is_whole:
        assert page.read_text().startswith(text())
        assert RUN.fullmatch(page.read_text().removeprefix(text()))


def test_each_phase_that_a_fault_does_not_meet_has_its_reason() -> None:
    assert {key for fault in FAULTS for key in fault.why.values()} == set(WHY)
    assert len(list(cells())) == sum(len(Phase) - len(fault.why) for fault in FAULTS)


def test_each_phase_of_three_cells_strikes_each_kind() -> None:
    count = Counter(cell.phase for cell in cells())
    struck = {(cell.phase, cell.struck) for cell in cells()}
    assert min(count[phase] for phase in Phase) >= len(Kind)
    assert struck >= {(phase, kind) for phase in Phase for kind in Kind}


def test_a_cell_that_failed_is_told() -> None:
    failed = str(next(cells()))
    assert text().count("FAIL") == 0
    assert text(failed=[failed]).count("FAIL") == 1


def test_the_command_finds_every_cell() -> None:
    before = MATRIX.stat().st_mtime_ns
    asked = [sys.executable, "-m", "tests.faults", "--collect-only"]
    found = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    assert f"tests/faults/test_matrix.py: {len(list(cells()))}" in found
    assert MATRIX.stat().st_mtime_ns == before, "nothing was played"
