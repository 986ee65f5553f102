"""Kubernetes quantities as whole numbers, for the simulated scheduler."""

import re
from fractions import Fraction
from functools import lru_cache

_GRAMMAR = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)(m|k|[MGTPE]|[KMGTPE]i|)")
_SCALES = {"": Fraction(1), "m": Fraction(1, 1000)}
for _power, _letter in enumerate("kMGTPE", 1):
    _SCALES[_letter] = Fraction(1000) ** _power
    _SCALES[f"{_letter.upper()}i"] = Fraction(1024) ** _power


@lru_cache(maxsize=4096)
def amount(resource: str, text: str) -> int:
    """Thousandths of a core, bytes of memory, pieces of anything else. Raises ValueError."""
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise ValueError(
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    value = Fraction(match[1]) * _SCALES[match[2]]
    if resource == "cpu":
        value *= 1000
    elif resource not in ("memory", "ephemeral-storage") and value.denominator != 1:
        raise ValueError("must be an integer")
    return -(-value.numerator // value.denominator)
