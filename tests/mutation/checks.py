"""The score of a small tree that mutmut really changes. Run by `make mutate`, with its mutmut."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.mutants import Change, Score, change, results, scores

CODE = "def total(a: int, b: int) -> int:\n    return a + b\n"
NOTICES = "from one.{module} import total\n\ndef test_it() -> None:\n    assert total(2, 3) == 5\n"
BLIND = "from one.{module} import total\n\ndef test_it() -> None:\n    total(2, 3)\n"
CONFIG = """
[tool.mutmut]
source_paths = ["one"]
pytest_add_cli_args = ["-p", "no:django", "-p", "no:playwright", "-p", "no:xdist"]
"""


def tree(root: Path, **tests: str) -> None:
    """A module for each keyword, and what tests it."""
    (root / "pyproject.toml").write_text(CONFIG)
    for folder in "one", "tests":
        (root / folder).mkdir()
        (root / folder / "__init__.py").touch()
    for module, test in tests.items():
        (root / "one" / f"{module}.py").write_text(CODE)
        (root / "tests" / f"test_{module}.py").write_text(test.format(module=module))


def test_a_change_counts_as_killed_where_a_test_fails_with_it(tmp_path: Path) -> None:
    tree(tmp_path, kept=NOTICES, lost=BLIND)
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", "1"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    found = results(root=tmp_path)
    assert scores(found) == {"kept": Score(1, 1), "lost": Score(1, 0)}
    (survivor,) = (mutant for mutant in found if not mutant.is_killed)
    expected = Change("lost", "return a + b", "return a - b")
    assert change(survivor, root=tmp_path) == expected


def test_a_tree_without_results_has_no_score(tmp_path: Path) -> None:
    tree(tmp_path)
    with pytest.raises(ValueError, match="no results"):
        results(root=tmp_path)


def test_the_score_is_in_percent() -> None:
    assert Score(mutants=8, killed=7).percent == 87.5
