"""The scheduling core is pure: the standard library without clock, chance and output."""

import ast
import sys
from collections.abc import Iterator

import pytest

from tests.architecture.source import name_of, nodes, place

# The clock and chance would make a plan unrepeatable; logging is input and output.
IMPURE = {"time", "random", "logging", "secrets", "os", "io"}
IMPURE_CALLS = {"now", "today", "utcnow", "print", "open", "input", "uuid4", "uuid1", "uuid7"}
ALLOWED = (sys.stdlib_module_names - IMPURE) | {"scheduler"}
# Arrays, and compiled code (ADR 0010, ADR 0014). Neither is imported anywhere else in the core.
ARRAYS = {
    "scheduler/core/node/fragmentation.py": {"numpy"},
    "scheduler/core/node/jit.py": {"numba", "numpy"},
    "scheduler/core/sweep/backlog.py": {"numpy"},
    "scheduler/core/sweep/filling.py": {"numpy"},
    "scheduler/core/sweep/hardware.py": {"numpy"},
    "scheduler/core/sweep/queues.py": {"numpy"},
    "scheduler/core/sweep/state.py": {"numba", "numpy"},
    "scheduler/core/sweep/sweep.py": {"numpy"},
    "scheduler/core/sweep/tree.py": {"numpy"},
}


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield node.module or "." * node.level


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return getattr(function, "attr", "") or getattr(function, "id", "")


def test_the_core_imports_only_itself_and_the_pure_part_of_the_standard_library() -> None:
    wrong = [
        f"{place(file, node)} imports {name}"
        for file, node in nodes("scheduler/core")
        for name in _imported(node)
        if name.split(".")[0] not in ALLOWED | ARRAYS.get(name_of(file), set())
        or (name.startswith("scheduler") and not name.startswith("scheduler.core"))
    ]
    assert wrong == []


def test_the_core_reads_no_clock_and_writes_nothing() -> None:
    wrong = [
        f"{place(file, node)} calls {_called(node)}()"
        for file, node in nodes("scheduler/core")
        if _called(node) in IMPURE_CALLS
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("import random", "random"),
        ("from time import monotonic", "time"),
        ("import numpy as np", "numpy"),
        ("from django.db import models", "django"),
        ("from . import quota", "."),
    ],
)
def test_the_rule_sees(line: str, seen: str) -> None:
    (node,) = ast.parse(line).body
    (name,) = _imported(node)
    assert name.split(".")[0] == seen.strip(".")
    assert name.split(".")[0] not in ALLOWED
