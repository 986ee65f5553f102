"""How much of a cluster's devices is used: one Protocol and its report. No back end, no Django."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PodUse:
    """How much a pod uses its devices: a number from 0 to 100 for each that was measured."""

    namespace: str
    pod: str
    percents: tuple[float, ...]


class UsePort(Protocol):
    """What measures a cluster's devices."""

    def use(self) -> tuple[PodUse, ...]:
        """Of all pods that are measured, ours and foreign ones, each once."""
        ...

    def close(self) -> None: ...
