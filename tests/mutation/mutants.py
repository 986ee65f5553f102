"""What mutmut did to a tree, and what came of it. Read from what its commands print."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

_RESULT = re.compile(r"^\s*(?P<name>\S+__mutmut_\d+): (?P<status>.+)$", re.MULTILINE)
_NOTICED = {"killed", "timeout"}


class Mutant(NamedTuple):
    """One small change of the code. `name` is what `mutmut show` is asked with."""

    name: str
    status: str

    @property
    def module(self) -> str:
        """Its last part: `quota`."""
        return re.split(r"\.x[ǁ_]", self.name)[0].rpartition(".")[2]

    @property
    def is_killed(self) -> bool:
        """Whether a test failed with it, or did not end."""
        return self.status in _NOTICED


class Change(NamedTuple):
    """The lines that a mutant took out of a module, and those it put there, without indents."""

    module: str
    before: str
    after: str


class Score(NamedTuple):
    """Of one module."""

    mutants: int
    killed: int

    @property
    def percent(self) -> float:
        return 100 * self.killed / self.mutants


def results(*, root: Path) -> list[Mutant]:
    """What the last `mutmut run` in `root` found. ValueError where it found nothing."""
    said = _mutmut(root, "results", "--all", "true")
    found = [Mutant(**line.groupdict()) for line in _RESULT.finditer(said)]
    if not found:
        raise ValueError(f"mutmut has no results in {root}: {said.strip() or 'it said nothing'}")
    return found


def scores(mutants: Iterable[Mutant]) -> Mapping[str, Score]:
    """By module, ascending."""
    mutants = list(mutants)
    made = Counter(mutant.module for mutant in mutants)
    killed = Counter(mutant.module for mutant in mutants if mutant.is_killed)
    return {module: Score(made[module], killed[module]) for module in sorted(made)}


def change(mutant: Mutant, *, root: Path) -> Change:
    """What the mutant is."""
    lines = _mutmut(root, "show", mutant.name).splitlines()
    before, after = (
        " ".join(line[1:].strip() for line in lines if line[:1] == sign and line[:3] != 3 * sign)
        for sign in "-+"
    )
    return Change(mutant.module, before, after)


def _mutmut(root: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "mutmut", *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
