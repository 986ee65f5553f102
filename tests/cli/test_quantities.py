"""Kubernetes quantities, exactly."""

from fractions import Fraction

import pytest

from controlplane.cli.quantities import cpu_milli, memory_mib, quantity

pytestmark = pytest.mark.part_web


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("2", Fraction(2)),
        (2, Fraction(2)),
        (0.5, Fraction(1, 2)),
        ("500m", Fraction(1, 2)),
        ("16Gi", Fraction(16 * 1024**3)),
        ("1.5G", Fraction(1_500_000_000)),
        ("2e3", Fraction(2000)),
        ("1E", Fraction(10**18)),
        (10**30, Fraction(10**30)),
        (1e30, Fraction(10**30)),
        ("-1Gi", Fraction(-(1024**3))),
    ],
)
def test_it_reads_what_kubernetes_reads(text: str | int | float, amount: Fraction) -> None:
    assert quantity(text) == amount


@pytest.mark.parametrize(
    "text", ["", "--1", "+1", "1.", ".5", "1e999", "5 Gi", "Gi", "0x10", "1_000", "nan", "٣", "1K"]
)
def test_it_refuses_the_rest(text: str) -> None:
    assert quantity(text) is None


def test_it_rounds_up() -> None:
    assert cpu_milli(Fraction(1, 3)) == 334
    assert memory_mib(Fraction(1)) == 1
    assert memory_mib(Fraction(1024**3)) == 1024
