"""Gates of random fleets, and of the work that tests of them write down."""

from dataclasses import replace
from random import Random

from scheduler.core.snapshot import PendingView, Snapshot
from scheduler.core.waits import GateView, GatheringView
from tests.core.build import AT

DATA = GateView("data", "ada", AT - 60)


def gated(pick: Random, of: Snapshot) -> Snapshot:
    """With some work that waits for a gate, and some whose pods are not all there."""

    def waits(pending: PendingView) -> PendingView:
        of = pick.random()
        if of < 0.02:
            return replace(pending, gathering=GatheringView(1, 4))
        return behind(pending, DATA if of < 0.07 else None)

    return replace(of, pending=tuple(waits(p) for p in of.pending))


def behind(pending: PendingView, gate: GateView | None = DATA) -> PendingView:
    """The same, which waits for that gate."""
    return replace(pending, gate=gate)
