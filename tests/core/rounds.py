"""Plan after plan, each carried out before the next: what is there then, and who evicted whom."""

from collections import defaultdict
from dataclasses import replace

from scheduler.core.plan import Plan
from scheduler.core.simulating import carried
from scheduler.core.snapshot import Snapshot


def carried_out(of: Snapshot, made: Plan) -> tuple[Snapshot, bool]:
    """A minute later, and whether anything changed."""
    then, changed = carried.carried_out(of, made)
    return replace(then, at=of.at + 60), changed


class Evicted:
    """By whom each was evicted, in all plans so far."""

    def __init__(self) -> None:
        self._by: dict[str, set[str]] = defaultdict(set)

    def no_ring_with(self, made: Plan) -> bool:
        """Whether nobody of it evicts who evicted it, or who evicted that one, and so on."""
        for preempt in made.preempts:
            self._by[preempt.victim].add(preempt.preemptor)
        return all(p.victim not in self._up(p.preemptor) for p in made.preempts)

    def _up(self, workload: str) -> set[str]:
        found: set[str] = set()
        ahead = [workload]
        while ahead:
            new = self._by[ahead.pop()] - found
            found |= new
            ahead += new
        return found
