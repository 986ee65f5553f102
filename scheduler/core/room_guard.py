"""For whom room is kept (ADR 0020): who has waited for `guard_s`, has quota, and fits nowhere.

Of requests that are alike the first in the queue that has waited so long, whoever newer stands
before it: that one may still be first, but smaller work that comes later may not.
"""

from collections.abc import Callable, Collection

from scheduler.core.admission import Admission
from scheduler.core.backfill import Backfill
from scheduler.core.begun import Begun
from scheduler.core.plan import Keep
from scheduler.core.preempt import Evictions
from scheduler.core.quota_guard import QuotaGuard
from scheduler.core.reasons import Reason
from scheduler.core.request import Request
from scheduler.core.snapshot import PendingView
from scheduler.core.victims import UnitId


class RoomGuard:
    """Keeps room in the drafts of one plan, in all by which it goes."""

    def __init__(
        self,
        *,
        backfill: Backfill,
        guard: QuotaGuard,
        admission: Admission,
        evictions: Evictions | None,
        begun: Begun,
    ) -> None:
        self._backfill = backfill
        self._guard = guard
        self._admission = admission
        self._evictions = evictions
        self._begun = begun

    def keep(
        self,
        *,
        first_since: Callable[[int], PendingView | None],
        request: Request,
        leaving: Collection[UnitId],
    ) -> Keep | Reason | None:
        """For the first of the like of who did not start what that gets first; None when nobody
        has waited, room is not what it lacks, or is never had. Why, when a reservation would lack
        it then. Who is `leaving` is gone before all others."""
        pending, of = first_since(self._backfill.waited_since), self._admission
        if pending is None or not self._backfill.may_keep(pending=pending, request=request):
            return None
        options = of.of_tier(pending=pending, request=request)
        full = [option for option in options if of.is_full(option=option)]
        lawful = [option for option in full if of.has_quota(pending=pending, option=option)]
        if not lawful:
            return None
        by = self._evictions
        what_ifs = () if by is None or by.idle else by.drafts()
        kept = self._backfill.keep(
            pending=pending,
            request=request,
            options=lawful,
            started=self._begun.admits,
            promised=by.promised if by else (),
            leaving=leaving,
            drafts=(of.draft, *what_ifs),
        )
        if isinstance(kept, Keep):
            if by is not None:
                by.candidates.spare(self._backfill.counted_on)
            self._guard.keep_beside(kept=kept, pending=pending)
        return kept
