"""How many devices, or slices, all that waits and all that runs asks for: by what it accepts."""

from collections.abc import Iterable, Mapping
from itertools import chain

from scheduler.core.snapshot import HoldingView, PendingView, Snapshot
from scheduler.core.units import FlavorId

type _Asking = Iterable[PendingView | HoldingView]


class Demand:
    """That of one snapshot, then of the next (`follow`)."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._counts: dict[tuple[FlavorId, ...], int] = {}
        self.follow(gone=(), come=chain(snapshot.pending, snapshot.holding))

    def follow(self, *, gone: _Asking, come: _Asking) -> None:
        """Those have gone that were there, and others have come."""
        counts = self._counts
        for sign, some in ((-1, gone), (1, come)):
            for pod_set in chain.from_iterable(of.pod_sets for of in some):
                so_far = counts.get(pod_set.flavors, 0)
                counts[pod_set.flavors] = so_far + sign * pod_set.count * pod_set.gpu_count

    @property
    def counts(self) -> Mapping[tuple[FlavorId, ...], int]:
        """By the flavors that pods accept, in their order."""
        return self._counts
