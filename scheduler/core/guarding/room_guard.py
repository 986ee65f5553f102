"""For whom room is kept (ADR 0020): who has waited for `guard_s`, has quota, and fits nowhere.

Not for one that has quota which is kept for another only because it ends in time: so may others
that come after it, and use it up until its room is there.
"""

from collections.abc import Callable, Collection, Sequence

from scheduler.core.admitting.admission import Admission
from scheduler.core.admitting.begun import Begun
from scheduler.core.evicting.preempt import Evictions
from scheduler.core.guarding.backfill import Backfill
from scheduler.core.guarding.quota_guard import QuotaGuard
from scheduler.core.held.victims import UnitId
from scheduler.core.plan import Keep
from scheduler.core.reasons import Reason
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import PendingView


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
        pending: PendingView,
        request: Request,
        options: Sequence[Option],
        leaving: Callable[[], Collection[UnitId]],
    ) -> Keep | Reason | None:
        """What it gets first with one of `options`, those of the round; None when it has not
        waited so long, room is not what it lacks, or is never had. Why, when a reservation would
        lack it then. Who is `leaving` is gone before all others."""
        if not self._backfill.may_keep(pending=pending, request=request):
            return None
        of = self._admission
        full = [option for option in options if of.is_full(option=option)]
        lawful = [
            option
            for option in full
            if of.has_quota(pending=pending, option=option)
            and not self._has_what_is_kept(pending, option)
        ]
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
            leaving=leaving(),
            drafts=(of.draft, *what_ifs),
        )
        if isinstance(kept, Keep):
            if by is not None:
                by.candidates.spare(self._backfill.counted_on)
            self._guard.keep_beside(kept=kept, pending=pending)
        return kept

    def _has_what_is_kept(self, pending: PendingView, option: Option) -> bool:
        of = self._admission
        for flavor, asked in option.needs:
            kept = of.kept.ahead(pending, flavor)
            available = of.available(pending.project, flavor) or 0
            if kept is not None and available - kept.amount < asked:
                return True
        return False
