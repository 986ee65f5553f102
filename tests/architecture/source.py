"""The tree's Python files, parsed once: what the rules of this folder look at."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("controlplane", "tenants", "scheduler", "clusters")


@cache
def python_files(*folders: str) -> tuple[Path, ...]:
    """Files below these folders of the tree; without any, all that is ours, tests too."""
    below = folders or (*PACKAGES, "tests")
    found = {file for folder in below for file in (ROOT / folder).rglob("*.py")}
    return tuple(sorted(found | ({ROOT / "manage.py"} if not folders else set())))


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(), filename=str(file))


def name_of(file: Path) -> str:
    """As a reader of the tree writes it: `scheduler/core/quota/quota.py`."""
    return file.relative_to(ROOT).as_posix()


def place(file: Path, node: ast.AST) -> str:
    return f"{name_of(file)}:{getattr(node, 'lineno', 0)}"


def nodes(*folders: str, but: frozenset[str] = frozenset()) -> Iterator[tuple[Path, ast.AST]]:
    """Every node of the files below these folders, except those files named in `but`."""
    for file in python_files(*folders):
        if name_of(file) not in but:
            for node in ast.walk(tree(file)):
                yield file, node
