"""No float is counted with where devices, quota, time used or money is: a quotient, a fraction in
decimal notation or the type itself stands only where this says why it may."""

import ast

import pytest

from tests.architecture.source import name_of, nodes, place

FOLDERS = ("scheduler/core", "tenants/models", "tenants/services", "tenants/selectors")
MODULES = frozenset({
    "scheduler/loop/measuring/meter.py", "scheduler/selectors/accrual.py",
    "scheduler/selectors/budgets.py",
})  # fmt: skip
MAY = {
    "scheduler/core/laws/budgets.py": "a fraction told in words",
    "scheduler/core/explaining/change.py": "memory told in words",
    "scheduler/core/node/prices.py": "quotients of Fractions",
    "scheduler/core/reasons.py": "memory told in words",
    "scheduler/core/wording.py": "memory told in words",
    "scheduler/loop/measuring/meter.py": "how fast the demo's clock goes",
    "scheduler/selectors/accrual.py": "a quotient of a Decimal",
    "scheduler/selectors/budgets.py": "a moment of the future",
    "tenants/selectors/past.py": "weights of past days, rounded to integers before any is used",
    "tenants/services/reservations.py": "a quotient of a Decimal, told in words",
}


def floats(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(op=ast.Div()) | ast.AugAssign(op=ast.Div()) | ast.Constant(value=float()):
            return True
        case ast.Name(id="float"):
            return True
    return False


def test_floats_stand_only_where_nothing_is_counted() -> None:
    found = {
        name_of(file): place(file, node)
        for file, node in nodes(*FOLDERS, "scheduler/loop", "scheduler/selectors")
        if (name_of(file).startswith(FOLDERS) or name_of(file) in MODULES) and floats(node)
    }
    assert {file: where for file, where in found.items() if file not in MAY} == {}
    assert set(found) == set(MAY)


@pytest.mark.parametrize("line", ["milli / 1000", "milli /= 2", "0.5", "float(milli)", "x: float"])
def test_the_rule_sees(line: str) -> None:
    assert any(floats(node) for node in ast.walk(ast.parse(line)))


@pytest.mark.parametrize("line", ["milli // 1000", "5", "Fraction(1, 2)"])
def test_the_rule_lets_pass(line: str) -> None:
    assert not any(floats(node) for node in ast.walk(ast.parse(line)))
