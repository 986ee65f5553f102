"""Kubernetes quantities ("1500m", "2Gi", "1e3") as whole numbers. Pure; hostile text is refused.

Source of the grammar: apimachinery pkg/api/resource. Results are bounded, so that no report can
carry a number that the database would refuse.
"""

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache

LARGEST = 2**31 - 1
_GRAMMAR = re.compile(r"([+-]?[0-9]{0,18}(?:\.[0-9]{0,9})?)([a-zA-Z]{0,2}|[eE][+-]?[0-9]{1,2})")
_SUFFIXES = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{
        name: Decimal(1000) ** power
        for power, name in enumerate(("k", "M", "G", "T", "P", "E"), 1)
    },
    **{
        name: Decimal(1024) ** power
        for power, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)
    },
}
_MIB = Decimal(1024 * 1024)


class BadQuantity(ValueError):
    """The text is no quantity, is negative, or is larger than anything real."""


@lru_cache(maxsize=4096)
def parse(text: str) -> Decimal:
    """The value of a quantity, in its base unit (cores, bytes, pieces)."""
    match = _GRAMMAR.fullmatch(text)
    number, suffix = match.groups() if match else ("", "")
    if not any(character.isdigit() for character in number):
        raise BadQuantity(f"{text[:40]!r} is no quantity")
    scale = _SUFFIXES.get(suffix)
    if scale is None:
        if suffix[0] not in "eE" or len(suffix) == 1:
            raise BadQuantity(f"{text[:40]!r} is no quantity")
        scale = Decimal(10) ** int(suffix[1:])
    value = Decimal(number) * scale
    if value < 0:
        raise BadQuantity(f"{text[:40]!r} is negative")
    return value


def _whole(value: Decimal, rounding: str) -> int:
    if value > LARGEST:
        raise BadQuantity("a quantity is larger than anything real")
    return int(value.to_integral_value(rounding=rounding))


@lru_cache(maxsize=4096)
def milli(text: str, *, up: bool = False) -> int:
    """Thousandths; what is left over is dropped, or counted as one more with `up`."""
    return _whole(parse(text) * 1000, ROUND_CEILING if up else ROUND_FLOOR)


@lru_cache(maxsize=4096)
def mebibytes(text: str, *, up: bool = False) -> int:
    return _whole(parse(text) / _MIB, ROUND_CEILING if up else ROUND_FLOOR)


@lru_cache(maxsize=4096)
def pieces(text: str) -> int:
    """How many of something that can't be split."""
    return _whole(parse(text), ROUND_FLOOR)
