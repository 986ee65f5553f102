"""What keeps those apart who share a device, and the least of it that work accepts."""

from scheduler.core.snapshot import Isolation

_ORDER = (Isolation.NONE, Isolation.MEMORY, Isolation.HARDWARE)


def is_enough(*, given: Isolation, least: Isolation) -> bool:
    """Whether it keeps neighbours as far apart as that, or farther."""
    return _ORDER.index(given) >= _ORDER.index(least)


def stricter(one: Isolation, other: Isolation) -> Isolation:
    """The one that keeps them farther apart."""
    return max(one, other, key=_ORDER.index)
