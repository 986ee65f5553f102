"""The conventions of CONTRIBUTING.md that a program can check; an exception has a reason."""

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGES, ROOT, name_of, nodes, place, python_files

LONGEST = 400  # lines
LONG = 300
TRANSITION = "scheduler/services/transition.py"

# Where a broad `except Exception` is right though it is no task and no command.
BROAD_EXCEPTS = {
    "clusters/services/probing.py": "a failure of Berth's own is logged, and ends the probe",
    "controlplane/kernel/hints.py": "a hint is only latency: no fault of the broker counts",
    "scheduler/loop/catching/catch.py": "a group that breaks is logged, refused; the others go on",
    "scheduler/loop/preparing/defrag.py": "one that fails is told, ended; the cycle goes on",
    "scheduler/loop/watching/readers.py": "the edge of a reading thread; the writer raises it",
    "tenants/services/apart.py": "a row that fails is logged, and due again; the others go on",
}
# Where a query's keyword comes from a variable.
COMPUTED_FILTERS = {
    "tenants/access.py": "the path is a constant of the model's class, not of the request",
    "scheduler/selectors/queues.py": "the counts are constants of the module",
}
# Where the environment is read outside the settings.
ENVIRONMENT = {
    "controlplane/asgi.py": "names the settings module",
    "controlplane/celery.py": "names the settings module",
    "controlplane/cli/audit.py": "names the settings module",
    "controlplane/cli/client.py": "a user's machine has no settings of the installation",
    "controlplane/cli/login.py": "where a user's machine keeps settings",
    "controlplane/demo/access.py": "the demo's parent process tells its child",
    "controlplane/demo/bootstrap.py": "the demo's parent process tells its child",
    "controlplane/demo/run.py": "the demo's children inherit the rest",
    "controlplane/demo/terminal.py": "NO_COLOR is for every program",
    "controlplane/embedded/backing.py": "decides what to start before there are settings",
    "controlplane/kernel/clock.py": "the demo's accelerated clock; nothing for an operator",
    "controlplane/kernel/crash.py": "the crash harness; nothing for an operator",
    "controlplane/management/commands/verify.py": "its programs inherit the environment",
    "controlplane/trace/run.py": "its children inherit the rest, as the demo's do",
    "clusters/simulator/server.py": "the simulator runs without Django",
}

_QUERIES = {"filter", "exclude", "get", "update", "order_by", "annotate", "aggregate", "alias"}
_SETS_STATE = re.compile(
    r'update\s+(only\s+)?"?scheduler_workload"?\s(?:(?!\bwhere\b|\bfrom\b).)*?\bset\b'
    r'(?:(?!\bwhere\b|\bfrom\s+unnest\b).)*?(?<![.\w])"?state"?\s*=',
    re.IGNORECASE | re.DOTALL,
)


def _root_name(node: ast.AST) -> str:
    """`Cluster` of `Cluster.objects.filter(...)`, `node` of `node.cluster`."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "id", "")


def moves_a_workload(node: ast.AST) -> bool:
    """Whether it writes a `state` that may be a workload's. Others: a cluster's, a gate's, a
    recut's, an ask's."""
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(
            isinstance(part, ast.Attribute)
            and part.attr == "state"
            and "cluster" not in ast.unparse(part.value).lower()
            and ast.unparse(part.value) != "self"
            for target in targets
            for part in ast.walk(target)
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
        name = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
        constants = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
        if name in {"update", "aupdate"}:
            by_state = any(keyword.arg == "state" for keyword in node.keywords)
            return by_state and _root_name(node.func) not in {
                "Cluster",
                "Gate",
                "NodeAsk",
                "Recut",
            }
        if name in {"bulk_update", "abulk_update", "setattr"}:
            return "state" in constants and _root_name(node.func) != "Cluster"
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return bool(_SETS_STATE.search(node.value))
    if isinstance(node, ast.JoinedStr):
        parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
        return bool(_SETS_STATE.search(" ".join(str(part) for part in parts)))
    return False


def computes_a_filter(node: ast.AST) -> bool:
    """`filter(**anything)`, unless it is a dict whose keys are written there."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    if node.func.attr == "get" and node.args:
        return False  # a dict's or an HTTP client's: a queryset's takes keywords only
    return node.func.attr in _QUERIES and any(
        keyword.arg is None and not _written_out(keyword.value) for keyword in node.keywords
    )


def _written_out(node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp):
        return _written_out(node.body) and _written_out(node.orelse)
    return isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys)


def catches_too_much(node: ast.AST) -> bool:
    """A bare `except` or one of (Base)Exception that does not raise what it caught again."""
    if not isinstance(node, ast.ExceptHandler):
        return False
    caught = ast.unparse(node.type) if node.type else "BaseException"
    broad = re.search(r"\b(Base)?Exception\b", caught)
    return bool(broad) and not (isinstance(node.body[-1], ast.Raise) and not node.body[-1].exc)


def reads_the_environment(node: ast.AST) -> bool:
    return (
        ast.unparse(node) in {"os.environ", "os.getenv"}
        if isinstance(node, ast.Attribute)
        else False
    )


def _is_an_edge(file: Path) -> bool:
    return file.name == "tasks.py" or "management/commands" in name_of(file)


def _excused(found: Iterator[tuple[Path, ast.AST]], excuses: Mapping[str, str]) -> list[str]:
    """The places without an excuse, and the excuses that nothing needs any more."""
    hits = list(found)
    wrong = [place(file, node) for file, node in hits if name_of(file) not in excuses]
    stale = set(excuses) - {name_of(file) for file, _ in hits}
    return wrong + [f"{name}: its exception is not needed" for name in sorted(stale)]


def test_only_transition_changes_a_workloads_state() -> None:
    found = (each for each in nodes(*PACKAGES) if moves_a_workload(each[1]))
    assert _excused(found, {TRANSITION: "the one place"}) == []


def test_no_query_takes_its_keywords_from_a_variable() -> None:
    """Names from a request would reach any column of any table (Django CVE-2025-64459)."""
    found = (each for each in nodes(*PACKAGES) if computes_a_filter(each[1]))
    assert _excused(found, COMPUTED_FILTERS) == []


def test_broad_excepts_are_at_the_edges_only() -> None:
    found = (
        (file, node)
        for file, node in nodes(*PACKAGES)
        if not _is_an_edge(file) and catches_too_much(node)
    )
    assert _excused(found, BROAD_EXCEPTS) == []


def test_the_environment_is_read_in_the_settings() -> None:
    found = (
        (file, node)
        for file, node in nodes(*PACKAGES)
        if "controlplane/settings/" not in name_of(file) and reads_the_environment(node)
    )
    assert _excused(found, ENVIRONMENT) == []


def test_no_file_is_longer_than_a_sitting() -> None:
    lengths = {name_of(file): len(file.read_text().splitlines()) for file in python_files()}
    written = {name: lines for name, lines in lengths.items() if "/migrations/" not in name}
    if long := {name: lines for name, lines in written.items() if lines > LONG}:
        warnings.warn(f"over {LONG} lines: {long}", stacklevel=1)
    assert {name: lines for name, lines in written.items() if lines > LONGEST} == {}


def test_every_exception_is_of_a_file_that_exists() -> None:
    for name in {*BROAD_EXCEPTS, *COMPUTED_FILTERS, *ENVIRONMENT, TRANSITION}:
        assert (ROOT / name).is_file(), name


def _sees(rule: str, line: str) -> bool:
    return any(globals()[rule](node) for node in ast.walk(ast.parse(line)))


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("moves_a_workload", "workload.state = State.RUNNING"),
        ("moves_a_workload", "a, placement.workload.state = 1, 2"),
        ("moves_a_workload", "Workload.objects.filter(id=1).update(state='RUNNING')"),
        ("moves_a_workload", "queryset.update(version=2, state=after)"),
        ("moves_a_workload", "Workload.objects.bulk_update(rows, ['state'])"),
        ("moves_a_workload", "setattr(workload, 'state', 'RUNNING')"),
        ("moves_a_workload", "cursor.execute('UPDATE scheduler_workload SET state = %s')"),
        (
            "moves_a_workload",
            "SQL = 'update \"scheduler_workload\" w\\nset x = 1, state = s.after'",
        ),
        ("moves_a_workload", "SQL = f'UPDATE scheduler_workload SET {column} = 1, state = 2'"),
        ("computes_a_filter", "Workload.objects.filter(**request.GET.dict())"),
        ("computes_a_filter", "queryset.exclude(**{key: value})"),
        ("catches_too_much", "try:\n  f()\nexcept Exception:\n  pass"),
        ("catches_too_much", "try:\n  f()\nexcept:\n  pass"),
        ("catches_too_much", "try:\n  f()\nexcept (ValueError, BaseException) as e:\n  g(e)"),
        ("reads_the_environment", "x = os.environ['BERTH_X']"),
        ("reads_the_environment", "x = os.getenv('BERTH_X')"),
    ],
)
def test_the_rule_sees(rule: str, line: str) -> None:
    assert _sees(rule, line)


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("moves_a_workload", "cluster.state = ClusterState.LOST"),
        ("moves_a_workload", "Cluster.objects.filter(id=1).update(state='lost')"),
        ("moves_a_workload", "state = workload.state"),
        ("moves_a_workload", "SQL = 'UPDATE scheduler_workload SET x = 1 WHERE state = 2'"),
        ("moves_a_workload", "SQL = 'UPDATE scheduler_workloadevent SET state = 1'"),
        ("moves_a_workload", "SQL = 'UPDATE scheduler_workload w SET x = 1 WHERE w.state = 2'"),
        ("computes_a_filter", "queryset.filter(**({'name': name} if name else {}))"),
        ("catches_too_much", "try:\n  f()\nexcept BaseException:\n  g()\n  raise"),
        ("catches_too_much", "try:\n  f()\nexcept ValueError:\n  pass"),
    ],
)
def test_the_rule_lets_pass(rule: str, line: str) -> None:
    assert not _sees(rule, line)
