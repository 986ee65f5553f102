"""The documents name what is there: ARCHITECTURE.md's tree, README.md's settings."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.source import PACKAGES, ROOT, tree

_ROW = re.compile(r"^\|\s*`([A-Z][A-Z0-9_]+)`\s*\|", re.MULTILINE)
_READERS = {
    "choice",
    "words",
    "integer",
    "flag",
    "keys",
    "levels",
    "mailers",
    "namespaced",
    "networks",
    "origin",
    "database",
    "oidc.providers",
    "saml.providers",
}
_NAME = re.compile(r"^[^,]+/$|^[^\s]+\.[a-z]+$|/…$")
_PLAIN = {"dev", "Makefile", "LICENSE"}
# Every app has these; a map that repeats them helps nobody.
_UNNAMED = {"__init__.py", "__pycache__", "apps.py", "migrations"}


def settings_read() -> set[str]:
    """The variables that controlplane/settings reads, by its readers or by os.environ."""
    found = set()
    for file in (ROOT / "controlplane/settings").glob("*.py"):
        for node in ast.walk(tree(file)):
            name: ast.expr | None = None
            if isinstance(node, ast.Call) and node.args:
                function = ast.unparse(node.func)
                if function in _READERS or function in {"os.environ.get", "os.getenv"}:
                    name = node.args[0]
            elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
                name = node.slice
            if isinstance(name, ast.Constant):
                found.add(str(name.value))
    return found


def drawn(text: str) -> Iterator[str]:
    """The paths of the first code block that draws the tree, folders with a slash at their end.

    A line is indentation, names, and after two spaces or more what they are for. A line indented
    below a folder is inside it. `{a,b}.py` is two names; from `<` or `…` on a name is only a
    pattern, and its folder counts.
    """
    folders: list[tuple[int, str]] = []
    for line in _drawing(text).splitlines():
        indent = len(line) - len(line.lstrip())
        words = _names(line.strip())
        if not words:
            continue  # an empty line, or more of what the line before is for
        while folders and folders[-1][0] >= indent:
            folders.pop()
        inside = folders[-1][1] if folders else ""
        names = [inside + name for word in words for name in expanded(word)]
        yield from (re.split(r"[<…]", name)[0] for name in names)
        if names[-1].endswith("/"):
            folders.append((indent, names[-1]))


def _names(line: str) -> list[str]:
    """The names a line begins with: everything up to the first column that isn't names only."""
    found: list[str] = []
    for column in re.split(r" {2,}", line):
        words = column.split()
        if not all(_NAME.search(word) or word in _PLAIN for word in words):
            break
        found += words
    return found


def expanded(word: str) -> list[str]:
    """`{a,b}.py` → `a.py`, `b.py`."""
    if not (braces := re.search(r"\{([^{}]*)\}", word)):
        return [word]
    start, end = word[: braces.start()], word[braces.end() :]
    return [name for part in braces[1].split(",") for name in expanded(start + part + end)]


def _drawing(text: str) -> str:
    blocks: list[str] = re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return next(block for block in blocks if "controlplane/" in block)


def test_readme_lists_every_setting_and_no_other() -> None:
    listed = set(_ROW.findall((ROOT / "README.md").read_text()))
    assert sorted(settings_read() - listed) == [], "read, but not in README.md"
    assert sorted(listed - settings_read()) == [], "in README.md, but never read"


def test_everything_in_the_drawn_tree_exists() -> None:
    paths = list(drawn((ROOT / "ARCHITECTURE.md").read_text()))
    assert len(paths) > 30
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_each_module_at_the_top_of_a_package_and_each_folder_of_tests_is_drawn() -> None:
    paths = list(drawn((ROOT / "ARCHITECTURE.md").read_text()))
    there = {
        f"{package}/{child.name}"
        for package in PACKAGES
        for child in (ROOT / package).iterdir()
        if child.name not in _UNNAMED and (child.suffix == ".py" or any(child.glob("*.py")))
    } | {
        f"tests/{folder.name}"
        for folder in (ROOT / "tests").iterdir()
        if folder.name not in _UNNAMED and folder.is_dir()
    }
    for within in ("scheduler/core", "scheduler/loop"):
        there |= {f"{within}/{init.parent.name}" for init in ROOT.glob(f"{within}/*/__init__.py")}
    missing = [
        name for name in there if not any(f"{path}/".startswith(f"{name}/") for path in paths)
    ]
    assert sorted(missing) == []


@pytest.mark.parametrize("packages", ["scheduler/core/*", "scheduler/loop", "scheduler/loop/*"])
def test_each_package_of_core_and_loop_says_in_which_order_to_read_it(packages: str) -> None:
    found = sorted(ROOT.glob(f"{packages}/__init__.py"))
    assert found
    for package in found:
        _, _, order = (ast.get_docstring(ast.parse(package.read_text())) or "").partition(
            "Reading order: "
        )
        inside = (*package.parent.glob("[!_]*.py"), *package.parent.glob("*/__init__.py"))
        there = {file.parent.name if file.stem == "__init__" else file.stem for file in inside}
        named = {name.split()[0] for name in re.split(r"[,;]", order.strip(".\n"))}
        assert named - {"which"} == there, package.parent.name


def test_the_reader_of_the_tree_sees_what_is_drawn() -> None:
    text = """
```text
README.md  manage.py  dev
controlplane/           shared
  urls.py celery.py     wiring, and no more than
                        two words, of it
  settings/{base,dev}.py    from the environment
  kernel/               below all
    ids.py              keys
  portal/…              pages
templates/<app>/<noun>_<view>.html   pages
```
"""
    assert list(drawn(text)) == [
        "README.md",
        "manage.py",
        "dev",
        "controlplane/",
        "controlplane/urls.py",
        "controlplane/celery.py",
        "controlplane/settings/base.py",
        "controlplane/settings/dev.py",
        "controlplane/kernel/",
        "controlplane/kernel/ids.py",
        "controlplane/portal/",
        "templates/",
    ]


def test_the_reader_of_settings_sees_every_way_to_read_one() -> None:
    assert {"DATABASE_URL", "REDIS_URL", "BERTH_SECRET_KEY", "BERTH_CYCLE_S"} <= settings_read()
