"""Quota that is kept in a project for its own work that has waited long, beside what comes later.

Only from work of the same project that stands behind it in the queue, and does not end by its own
limit before enough is back: what others may borrow is as much as before. `quota_guard` decides
for whom it is kept.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from scheduler.core.admitting.order import place_in_queue
from scheduler.core.bounds.limits import because
from scheduler.core.reasons import Reason, ReasonCode
from scheduler.core.request import Option
from scheduler.core.snapshot import FlavorView, PendingView
from scheduler.core.units import FlavorId, ProjectId

LEAVES_IN_S = 900
"""So long who is evicted may take to leave, by notice and grace, and be seen gone."""


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

    def is_for(self, pending: PendingView, amounts: Mapping[FlavorId, int]) -> bool:
        """Whether just these are kept for it."""
        of = self.of(pending.project).items()
        return amounts == {f: kept.amount for f, kept in of if kept.pending.id == pending.id}

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
        return 0 if self._ends_in_time(pending, kept) else kept.amount

    def _ends_in_time(self, pending: PendingView, kept: Kept, *, after_s: int = 0) -> bool:
        """Should it start so much later."""
        if not pending.run_time_limit_s or kept.back_at is None:
            return False
        return self._at + after_s + pending.run_time_limit_s <= kept.back_at

    def is_any_ahead(self, pending: PendingView, option: Option) -> bool:
        """Whether any of what the option needs is kept for one who stands before it."""
        return any(self.ahead(pending, flavor) for flavor, _ in option.needs)

    def may_evict(self, pending: PendingView, option: Option) -> bool:
        """Whether quota will not be kept from it either once those have left who go for it."""
        kept = (self.ahead(pending, flavor) for flavor, _ in option.needs)
        return not any(
            each is not None
            and self._ends_in_time(pending, each)
            and not self._ends_in_time(pending, each, after_s=LEAVES_IN_S)
            for each in kept
        )

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
