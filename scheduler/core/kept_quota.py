"""Quota that is kept in a project for its own work that has waited long, beside what comes later.

Only from work of the same project that stands behind it in the queue, and does not end by its own
limit before enough is back: what others may borrow is as much as before. `quota_guard` decides
for whom it is kept.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from scheduler.core.limits import because
from scheduler.core.order import place_in_queue
from scheduler.core.reasons import Reason, ReasonCode
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import FlavorView, PendingView
from scheduler.core.units import FlavorId, ProjectId


class Kept(NamedTuple):
    """So many thousandths, for the one who waits; `back_at` is when it has its quota at the
    latest, None when nobody knows."""

    pending: PendingView
    amount: int
    back_at: int | None


class KeptQuota:
    """By project and flavor, for one workload each."""

    def __init__(self, *, at: int) -> None:
        self._at = at
        self._of: dict[ProjectId, dict[FlavorId, Kept]] = {}

    def __iter__(self) -> Iterator[ProjectId]:
        """The projects in which something is kept."""
        return iter(self._of)

    def keep(
        self, pending: PendingView, amounts: Mapping[FlavorId, int], *, back_at: int | None
    ) -> None:
        """For it, and nothing else; those for whom any of that was kept, who stand behind it, have
        nothing more."""
        of = self.of(pending.project)
        for each in [pending, *(of[flavor].pending for flavor in amounts if flavor in of)]:
            self.drop(each)
        if amounts:
            of = self._of.setdefault(pending.project, {})
            of |= {flavor: Kept(pending, amount, back_at) for flavor, amount in amounts.items()}

    def drop(self, pending: PendingView) -> None:
        """Nothing is kept for it."""
        left = {f: k for f, k in self.of(pending.project).items() if k.pending.id != pending.id}
        self._of.pop(pending.project, None)
        if left:
            self._of[pending.project] = left

    def of(self, project: ProjectId) -> Mapping[FlavorId, Kept]:
        """What is kept in the project."""
        return self._of.get(project, {})

    def ahead(self, pending: PendingView, flavor: FlavorId) -> Kept | None:
        """What is kept for one who stands before it."""
        kept = self.of(pending.project).get(flavor)
        if kept is None or place_in_queue(pending) <= place_in_queue(kept.pending):
            return None
        return kept

    def amount(self, pending: PendingView, flavor: FlavorId) -> int:
        """How much is kept from it: 0 unless it stands behind the one for whom, and may end after
        that one has its quota."""
        kept = self.ahead(pending, flavor)
        if kept is None:
            return 0
        limit_s, back_at = pending.run_time_limit_s, kept.back_at
        if limit_s and back_at is not None and self._at + limit_s <= back_at:
            return 0
        return kept.amount

    def back_in_s(self, pending: PendingView, request: Request) -> int | None:
        """In how many seconds the last of what is kept from it is back; None when nothing is kept
        from it, or nobody knows of any."""
        flavors = {flavor for option in request.options for flavor, _ in option.needs}
        kept = self.of(pending.project)
        times = [
            kept[flavor].back_at
            for flavor in flavors
            if flavor in kept and self.amount(pending, flavor)
        ]
        return max((at - self._at for at in times if at is not None), default=None)

    def why_not(
        self,
        *,
        pending: PendingView,
        option: Option,
        left: Callable[[ProjectId, FlavorId], int | None],
        flavors: Mapping[FlavorId, FlavorView],
    ) -> Reason | None:
        """That of what its project has `left` of a flavor too much is kept from it; None when
        enough is for the least start, or nothing is kept."""
        for flavor, asked in option.needs:
            kept = self.amount(pending, flavor)
            available = left(pending.project, flavor) or 0 if kept else 0
            if kept and available - kept < asked:
                return because(
                    ReasonCode.QUOTA_KEPT,
                    asked_milli=asked,
                    available_milli=max(0, available),
                    flavor=flavors[flavor].name,
                    kept_milli=kept,
                )
        return None
