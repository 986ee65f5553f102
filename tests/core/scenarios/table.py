"""All scenarios and their table: `python -m tests.core.scenarios.table` writes README.md."""

from importlib import import_module
from pathlib import Path

from tests.core.scenarios.scenario import Scenario

HERE = Path(__file__).parent
README = HERE / "README.md"
_HEAD = """# Scenarios of the scheduling core

What Kueue, KAI, Volcano, YuniKorn and Armada document, told again for this scheduler: the idea of
each case is theirs, where the source says, and the words, the picture and the numbers are not.
Where none of them has it, the source is Slurm or Run:ai.
A sentence that begins with "unlike" names what is done otherwise here, on purpose. Sources are
tests, whose names are shortened, KEPs (proposals) and pages of documentation. This table is
written by `python -m tests.core.scenarios.table`; a test compares.

| Subject | Scenario | Source of the behaviour |
|-|-|-|
"""


def scenarios() -> list[tuple[str, Scenario]]:
    """(subject, scenario) in the order of the files."""
    found = []
    for file in sorted(HERE.glob("test_*_scenarios.py")):
        subject = file.stem.removeprefix("test_").removesuffix("_scenarios").replace("_", " ")
        module = import_module(f"{__package__}.{file.stem}")
        found += [(subject, case) for case in module.CASES]
    return found


def text() -> str:
    rows = [f"| {subject} | {case.name} | {case.source} |\n" for subject, case in scenarios()]
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    README.write_text(text())
