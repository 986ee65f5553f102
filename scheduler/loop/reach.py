"""Calls to one cluster, which may be away."""

from collections.abc import Callable

from clusters.port import ClusterError, Fault


class Reach:
    """After the first call that could not reach the cluster, the others fail at once: each would
    be waited for."""

    def __init__(self) -> None:
        self._away: ClusterError | None = None

    @property
    def reached(self) -> bool:
        return self._away is None

    def call[T](self, asked: Callable[[], T]) -> T:
        """What it answers. Raises ClusterError."""
        if self._away is not None:
            raise self._away
        try:
            return asked()
        except ClusterError as error:
            if error.fault is Fault.UNREACHABLE:
                self._away = error
            raise
