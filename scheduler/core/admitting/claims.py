"""Who waits ahead in a project: guarantees are used in the order of its queue.

While work of some priority waits for hardware within a guarantee, less urgent work of its project
has none for the same hardware: else whom it evicted, or may evict, would be ahead of it by being
smaller.
"""

from collections.abc import Iterable

from scheduler.core.quota.guarantees import BORROWED
from scheduler.core.request import Option
from scheduler.core.snapshot import FlavorView, PendingView
from scheduler.core.units import ProjectId

ANY = "*"
"""Stands for every model: work without devices waits for cores, which any work may hold."""

type Claim = dict[str, int]
"""Of a project: by model, ANY, or "" for cores alone, the priority of what waits ahead."""


class Claims:
    """Those of one plan, round after round."""

    def __init__(self) -> None:
        self._now: dict[ProjectId, Claim] = {}
        self._before: dict[ProjectId, Claim] = {}

    def begin(self, *, tier: int) -> None:
        """A round of the tier. Who waits ahead is found anew; not for what borrows, which has no
        guarantees: it goes by what the round before found."""
        if tier == BORROWED:
            return
        for project, claim in self._now.items():
            before = self.before(project)
            for model, priority in claim.items():
                before[model] = max(priority, before.get(model, priority))
        self._now.clear()

    def clear(self) -> None:
        """Capacity has come free: nobody is known to wait."""
        self._now.clear()
        self._before.clear()

    def here(self, project: ProjectId) -> Claim:
        """In this round. A sweep tells it of what it has found, and is told."""
        return self._now.setdefault(project, {})

    def before(self, project: ProjectId) -> Claim:
        """In rounds before whose claims are no more those of this one. As `here`."""
        return self._before.setdefault(project, {})

    def add(self, pending: PendingView, flavors: Iterable[FlavorView]) -> None:
        """It waits for them. The most urgent of a project comes first, and stays."""
        for flavor in flavors:
            for model in (flavor.model, ANY):
                self.here(pending.project).setdefault(model, pending.priority)

    def is_behind(self, pending: PendingView, option: Option) -> bool:
        """Whether more urgent work of its project waits for the same hardware."""
        return _is_behind(self._now.get(pending.project), pending, option)

    def was_behind(self, pending: PendingView, option: Option) -> bool:
        """Whether it did in a round before, of those in `before`."""
        return _is_behind(self._before.get(pending.project), pending, option)


def _is_behind(claim: Claim | None, pending: PendingView, option: Option) -> bool:
    if not claim:
        return False
    # Pods without devices hold cores that any pod may wait for, and the other way round.
    models = {flavor.model or ANY for flavor in option.flavors} | {""}
    ahead = (claim.get(model) for model in models)
    return any(priority is not None and priority > pending.priority for priority in ahead)
