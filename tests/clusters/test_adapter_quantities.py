"""Quantities of Kubernetes as whole, bounded numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.adapters.kubernetes.quantities import BadQuantity, mebibytes, milli, pieces

pytestmark = pytest.mark.part_simulator


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", 1000), ("1500m", 1500), ("0.5", 500), ("2e3", 2_000_000), ("100u", 0), ("+1", 1000)],
)
def test_cpu_is_counted_in_thousandths(text: str, expected: int) -> None:
    assert milli(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1Gi", 1024), ("1048576", 1), ("1G", 953), ("128974848", 123), ("1.5Gi", 1536), ("1Ki", 0)],
)
def test_memory_is_counted_in_mebibytes(text: str, expected: int) -> None:
    assert mebibytes(text) == expected


def test_what_a_pod_asks_for_is_rounded_up() -> None:
    assert (milli("100u", up=True), mebibytes("1Ki", up=True)) == (1, 1)


@pytest.mark.parametrize(
    "text",
    ["", "m", "1 Gi", "1e999", "0x10", "\u0661", "NaN", "1Zi", "--1", "1e", "1kk", "9" * 40],
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(BadQuantity):
        pieces(text)


@given(st.text(max_size=30))
def test_any_text_is_a_bounded_number_or_refused(text: str) -> None:
    try:
        value = milli(text)
    except BadQuantity:
        return
    assert 0 <= value < 2**31
