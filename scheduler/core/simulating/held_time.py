"""What projects hold over time, and how much of that is borrowed: beyond their own nominal.

Exact, in thousandths times whole seconds: what ends between two looks is held until it ends.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduler.core.quota.equivalents import Parts
from scheduler.core.snapshot import HoldingView, Snapshot
from scheduler.core.units import ClusterId, FlavorId, ProjectId


@dataclass(frozen=True, slots=True)
class Use:
    """Of one project, in thousandths of flavors times seconds, without zeros. `used_milli_s` is
    what its pods hold; `borrowed_milli_s` is what is beyond its nominal of all that it is charged,
    of quotas over all of a model too."""

    used_milli_s: Mapping[tuple[FlavorId, ClusterId], int]
    borrowed_milli_s: Mapping[FlavorId, int]


class HeldTime:
    """Summed up while a fleet goes through time; its quotas do not change."""

    def __init__(self, fleet: Snapshot) -> None:
        self._parts = Parts(flavors=fleet.flavors, queues=fleet.queues)
        self._nominal = {
            (queue.project, quota.flavor): quota.nominal_milli
            for queue in fleet.queues
            for quota in queue.quotas
        }
        self._used = defaultdict[ProjectId, defaultdict[tuple[FlavorId, ClusterId], int]](
            lambda: defaultdict(int)
        )
        self._borrowed = defaultdict[ProjectId, defaultdict[FlavorId, int]](
            lambda: defaultdict(int)
        )

    def add(self, runs: Iterable[tuple[HoldingView, int]], *, since: int) -> None:
        """All that is held from `since` on, each until the moment beside it, no earlier one."""
        charged = defaultdict[tuple[ProjectId, FlavorId], list[tuple[int, int]]](list)
        for held, until in runs:
            used = self._used[held.project]
            for place in held.placements:
                used[place.flavor, held.cluster] += place.amount_milli * (until - since)
            for flavor, milli in self._parts.sums(holding=held).items():
                charged[held.project, flavor].append((until, milli))
        for (project, flavor), ends in charged.items():
            nominal_milli = self._nominal.get((project, flavor), 0)
            self._borrowed[project][flavor] += _beyond(nominal_milli, ends, since)

    def of(self, project: ProjectId) -> Use:
        return Use(_some(self._used[project]), _some(self._borrowed[project]))


def _beyond(nominal_milli: int, ends: Sequence[tuple[int, int]], since: int) -> int:
    """Held beyond so much until all of it has ended; it becomes less with each end."""
    beyond_milli = sum(milli for _, milli in ends) - nominal_milli
    found = 0
    for until, milli in sorted(ends):
        if beyond_milli <= 0:
            break
        found += beyond_milli * (until - since)
        beyond_milli -= milli
        since = until
    return found


def _some[K](found: Mapping[K, int]) -> Mapping[K, int]:
    return {key: milli_s for key, milli_s in found.items() if milli_s}
