"""Quota that is kept in a project for its own work that has waited long, beside what comes later.

Only from work of the same project that stands behind it in the queue: what others may borrow is as
much as before. `quota_guard` decides for whom it is kept.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from scheduler.core.limits import because
from scheduler.core.order import place_in_queue
from scheduler.core.reasons import Reason, ReasonCode
from scheduler.core.request import Option
from scheduler.core.snapshot import FlavorView, PendingView
from scheduler.core.units import FlavorId, ProjectId, WorkloadId


class Kept(NamedTuple):
    """So many thousandths, for the one who waits."""

    pending: PendingView
    amount: int


class KeptQuota:
    """By project and flavor, for one workload each. What is kept for who waits for its turn is
    found anew in each round (`begin`); what is settled stays."""

    def __init__(self) -> None:
        self._of: dict[ProjectId, dict[FlavorId, Kept]] = {}
        self._settled: set[WorkloadId] = set()

    def __iter__(self) -> Iterator[ProjectId]:
        """The projects in which something is kept."""
        return iter(self._of)

    def begin(self) -> None:
        """Another round: who is not settled will be asked about again."""
        was, self._of = self._of, {}
        for of in was.values():
            for flavor, kept in of.items():
                if kept.pending.id in self._settled:
                    self.keep(kept.pending, [(flavor, kept.amount)])

    def keep(self, pending: PendingView, amounts: Iterable[tuple[FlavorId, int]]) -> None:
        """For it, in the place of those who stand behind it in the queue of its project; what is
        kept for who stands before it stays so."""
        of = self._of.setdefault(pending.project, {})
        for flavor, amount in amounts:
            known = of.get(flavor)
            if known is None or place_in_queue(pending) < place_in_queue(known.pending):
                of[flavor] = Kept(pending, amount)

    def settle(self, pending: PendingView) -> None:
        """It will not be asked about again in this plan: what is kept for it stays so."""
        self._settled.add(pending.id)

    def of(self, project: ProjectId) -> Mapping[FlavorId, Kept]:
        """What is kept in the project."""
        return self._of.get(project, {})

    def amount(self, pending: PendingView, flavor: FlavorId) -> int:
        """How much is kept from it: 0 unless it stands behind the one for whom."""
        kept = self.of(pending.project).get(flavor)
        if kept is None or place_in_queue(pending) <= place_in_queue(kept.pending):
            return 0
        return kept.amount

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
