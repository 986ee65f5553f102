"""The matrix is whole, and its page tells it."""

import subprocess
import sys
from collections import Counter

from tests.faults.scene import Kind, Phase
from tests.faults.table import FAULTS, MATRIX, WHY, cells, text


def test_the_page_is_what_the_matrix_says() -> None:
    assert MATRIX.read_text() == text()


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
    command = [sys.executable, "-m", "tests.faults", "--collect-only"]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert f"tests/faults/test_matrix.py: {len(list(cells()))}" in found
    assert MATRIX.stat().st_mtime_ns == before, "nothing was played"
