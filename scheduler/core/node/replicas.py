"""A shared device as its node offers it: in like replicas, of which a share takes whole ones.

A replica is 1000 // replicas thousandths wide. What is left where they do not divide 1000, the
last thousandths of the device, is of no share: so shares fit as long as there are replicas for
them, neither more nor fewer. With 1000 replicas a share takes what it asks for.
"""

from scheduler.core.units import ONE_MILLI


def width_milli(*, replicas: int) -> int:
    """Of one replica, in thousandths of the device."""
    return ONE_MILLI // replicas


def taken_milli(*, asked_milli: int, replicas: int) -> int:
    """What a share takes of a device, of which it asks for so much."""
    return -(-asked_milli * replicas // ONE_MILLI) * width_milli(replicas=replicas)


def largest_milli(*, bits: int, replicas: int) -> int:
    """The most that a share may ask for of a device with these thousandths in use; 0 for none."""
    width = width_milli(replicas=replicas)
    free = replicas - -(-bits.bit_count() // width)
    return max(0, free) * ONE_MILLI // replicas


def unshared(*, replicas: int) -> int:
    """The thousandths, as bits, that are of no replica."""
    end = replicas * width_milli(replicas=replicas)
    return ((1 << ONE_MILLI - end) - 1) << end
