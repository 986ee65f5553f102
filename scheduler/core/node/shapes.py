"""What a packing sees of a node, of a pod and of a place: no ids, small whole numbers."""

from typing import Final, NamedTuple

from scheduler.core.units import ONE_MILLI

ANY_MODEL: Final = (1 << 62) - 1

LARGEST: Final = 1 << 36
"""Above it are no cores (`_milli`), no memory (MiB): products stay below 2^62."""

MOST_DEVICES: Final = 64

MOST_MODELS: Final = 62

LEADING_BITS: Final = 3


class Node(NamedTuple):
    """`free`: thousandths per device. `model` is a number below 62, the bit in Shape.models."""

    cpu_milli: int
    memory_mib: int
    model: int
    free: tuple[int, ...]


class Shape(NamedTuple):
    """What a pod asks for: `gpus` whole devices, or `gpu_milli` of one, or no device."""

    cpu_milli: int
    memory_mib: int
    gpus: int = 0
    gpu_milli: int = ONE_MILLI
    models: int = ANY_MODEL

    @property
    def possible(self) -> bool:
        """Whether its quantities are such as a node could have."""
        part = self.gpus == 1 and 0 < self.gpu_milli < ONE_MILLI
        return (
            0 <= self.cpu_milli < LARGEST
            and 0 <= self.memory_mib < LARGEST
            and 0 <= self.gpus <= MOST_DEVICES
            and (self.gpu_milli == ONE_MILLI or part)
            and 0 <= self.models <= ANY_MODEL
        )

    @property
    def kind(self) -> "Shape":
        """The least that is told apart from it."""
        return self._replace(
            cpu_milli=_leading(self.cpu_milli), memory_mib=_leading(self.memory_mib)
        )


class Seat(NamedTuple):
    """The rank of a node, and devices by their number on it."""

    node: int
    devices: tuple[int, ...]


def _leading(quantity: int) -> int:
    low = max(0, quantity.bit_length() - LEADING_BITS)
    return quantity >> low << low
