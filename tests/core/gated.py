"""Gates of random fleets, and of the work that tests of them write down."""

from dataclasses import replace
from random import Random

from scheduler.core.snapshot import PendingView, Snapshot
from scheduler.core.waits import GateView
from tests.core.build import AT

DATA = GateView("data", "ada", AT - 60)


def gated(pick: Random, of: Snapshot) -> Snapshot:
    """With some work that waits for a gate."""

    def gate() -> GateView | None:
        return DATA if pick.random() < 0.05 else None

    return replace(of, pending=tuple(behind(p, gate()) for p in of.pending))


def behind(pending: PendingView, gate: GateView | None = DATA) -> PendingView:
    """The same, which waits for that gate."""
    return replace(pending, gate=gate)
