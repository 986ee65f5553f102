"""Whether a pod that asks for no device sees some all the same: what a port is asked and tells."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ExposureReport:
    """The pod that looks. Once it has `ended`, `saw` is a line for each device it saw, () for
    none; None where it gave no answer that could be read, which `why` explains as far as it is
    known. Before, `why` is what it waits for, if anything. `node` is where it was placed, if it
    was."""

    uid: str
    ended: bool
    saw: tuple[str, ...] | None = None
    why: str = ""
    node: str = ""


class ExposurePort(Protocol):
    """A part of `ClusterPort`. There is one such pod in a cluster at most."""

    def start_exposure_probe(self, *, hostname: str, tolerates: str, image: str) -> str:
        """Make it, for the node of that kubernetes.io/hostname and in spite of a taint of that
        key; its uid. Raises ClusterError(CONFLICT) while there is one."""
        ...

    def read_exposure_probe(self) -> ExposureReport | None:
        """None when there is none."""
        ...

    def end_exposure_probe(self, *, uid: str) -> None:
        """Take it away. Gone already, or another by now: nothing to do, no error."""
        ...
