"""Kubernetes quantities, exactly: "500m", "2", "16Gi", "1.5e3". Pure."""

import re
from fractions import Fraction

_SUFFIXES = {
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{letter: Fraction(1000**power) for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)},
}
_FORM = re.compile(
    r"(-?[0-9]{1,400}(?:\.[0-9]{1,9})?)(?:([mkMGTPE]|[KMGTPE]i)|[eE]\+?([0-9]{1,2}))?"
)
_MIB = 1024 * 1024


def quantity(text: str | int | float) -> Fraction | None:
    """The amount in whole units, None for what is no quantity."""
    found = _FORM.fullmatch(str(text))
    if found is None or isinstance(text, bool):
        return None
    number, suffix, exponent = found.groups()
    return Fraction(number) * (10 ** int(exponent) if exponent else _SUFFIXES[suffix or ""])


def cpu_milli(amount: Fraction) -> int:
    """Thousandths of a core, rounded up."""
    return -int(-amount * 1000 // 1)


def memory_mib(amount: Fraction) -> int:
    """Bytes as MiB, rounded up."""
    return -int(-amount / _MIB // 1)
