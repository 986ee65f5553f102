"""Who may use what is kept for others until they start: what ends before by its own limit."""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack

from scheduler.core.admission import Admission
from scheduler.core.backfill import Backfill, leaves
from scheduler.core.begun import Begun
from scheduler.core.elastic import staying
from scheduler.core.guarantees import tiers
from scheduler.core.memory import Memory
from scheduler.core.order import Heads, Left
from scheduler.core.quota_guard import QuotaGuard
from scheduler.core.request import Request
from scheduler.core.runs import ORDER, Run
from scheduler.core.share import Shares
from scheduler.core.snapshot import HeldView, PendingView, Snapshot
from scheduler.core.units import ProjectId, WorkloadId
from scheduler.core.victims import UnitId


class Shadows:
    """When those may start at the latest for whom something is kept, by run-time limits: who ends
    by then may use it. Asked once all that waits was decided."""

    def __init__(
        self,
        *,
        snapshot: Snapshot,
        memory: Memory,
        backfill: Backfill,
        admission: Admission,
        guard: QuotaGuard,
        request_of: Callable[[PendingView], Request],
        begun: Begun,
        leaving: Collection[UnitId],
    ) -> None:
        """`begun` start in this plan, and who is `leaving` is gone before all others."""
        self._snapshot = snapshot
        self._memory = memory
        self._backfill = backfill
        self._admission = admission
        self._guard = guard
        self._request_of = request_of
        self._begun = begun
        self._leaving = leaving

    def short(self, left: Iterable[Left]) -> tuple[list[PendingView], list[PendingView]]:
        """Of those the ones that may go ahead on room that is kept, and all that may on quota."""
        of_room, of_quota = list[PendingView](), list[PendingView]()
        room, kept, at = self._backfill.shadow, set(self._admission.kept), self._snapshot.at
        if self._begun.is_full or not (room or kept):
            return of_room, of_quota
        limited = [
            pending
            for pending in self._snapshot.pending
            if pending.run_time_limit_s and (room or pending.project in kept)
        ]
        waiting = {id for of in left for id in of.ids} if limited else set()
        back: dict[ProjectId, int | None] = {}
        for pending in limited:
            if pending.id not in waiting:
                continue
            ends_at, project = at + (pending.run_time_limit_s or 0), pending.project
            if project in kept:
                if project not in back:
                    back[project] = self._quota_back(project)
                by = back[project]
                if by is None or ends_at > by:
                    continue
                of_quota.append(pending)
            if room and ends_at <= room:
                of_room.append(pending)
        return of_room, of_quota

    def _quota_back(self, project: ProjectId) -> int | None:
        """When the first of those has its quota, once what the project runs has ended; None when
        nobody knows."""
        of = self._admission.kept.of(project).values()
        waits = {kept.pending.id: kept.pending for kept in of}.values()
        found = [self._back_for(pending) for pending in waits]
        known = [at for at in found if at is not None]
        return min(known) if len(known) == len(found) else None

    def _back_for(self, pending: PendingView) -> int | None:
        of = self._admission.kept.of(pending.project)
        flavors = {flavor for flavor, kept in of.items() if kept.pending.id == pending.id}
        options = [
            option
            for option in self._request_of(pending).options
            if flavors == {flavor for flavor, asked in option.needs if asked}
        ]

        def is_enough() -> bool:
            return any(self._guard.is_enough(pending=pending, option=o) for o in options)

        if is_enough():  # room is what it lacks
            starts = {keep.workload: keep.starts_at for keep in self._backfill.keeps}
            return starts.get(pending.id)
        gone, runs = self._runs(pending.project)
        back: int | None = self._snapshot.at + 1
        with ExitStack() as stack:
            now, *later = (draft.book for draft in self._admission.drafts)
            stack.enter_context(now.given_back(project=pending.project, holders=gone))
            for run in runs:
                if is_enough():
                    break
                back = None if run.ends_late else run.ends_at
                for book in (now, *later):
                    stack.enter_context(
                        book.given_back(project=pending.project, holders=run.holders)
                    )
            return back if is_enough() else None

    def _runs(self, project: ProjectId) -> tuple[list[HeldView], list[Run]]:
        """What leaves of all that the project holds, and the rest with what it starts, in the
        order in which that ends."""
        at, gone, runs = self._snapshot.at, list[HeldView](), list[Run]()
        for held in self._memory.ends(self._snapshot).held_by(project):
            stays = [p for p in staying(held) if not leaves(held, p, self._leaving)]
            gone += (placement for placement in held.placements if placement not in stays)
            if stays:
                runs.append(Run.of(held, stays, at=at))
        for pending, admit in self._begun.admits:
            if pending.project == project:
                runs.append(Run.begun(pending, admit.places, at=at))
        return gone, sorted(runs, key=ORDER)


def go_ahead(
    *,
    shadows: Shadows,
    left: Iterable[Left],
    whole: Callable[[], Admission],
    beside: Callable[[], Admission],
    request_of: Callable[[PendingView], Request],
    shares: Shares,
    begun: Begun,
) -> set[WorkloadId]:
    """Start what ends in time of what is `left`: on room that is kept, in the `whole` fleet; or,
    where none does, on quota that is, `beside` the room that is kept. What the first starts is
    charged in the second's book too."""
    of_room, of_quota = shadows.short(left)
    if of_room and (started := _start(of_room, whole(), request_of, shares, begun)):
        book = beside().draft.book
        for pending, admit in begun.admits:
            for place in admit.places if pending.id in started else ():
                amount = place.amount_milli
                book.charge(project=pending.project, flavor=place.flavor, amount_milli=amount)
        return started
    return _start(of_quota, beside(), request_of, shares, begun) if of_quota else set()


def _start(
    short: Sequence[PendingView],
    admission: Admission,
    request_of: Callable[[PendingView], Request],
    shares: Shares,
    begun: Begun,
) -> set[WorkloadId]:
    """In the order of a plan, so that neither a guarantee nor a share counts for less here."""
    started = set[WorkloadId]()
    heads = Heads(pending=short, request_of=request_of, shares=shares)
    for tier in tiers(admission.draft.book.cohorts):
        admission.begin(tier=tier)
        heads.reopen()
        while not begun.is_full and (pending := heads.next()) is not None:
            admit = admission.start(pending=pending, request=heads.request_of(pending))
            if admit is None:
                heads.close()
                continue
            started.add(pending.id)
            begun.add(pending, admit)
    return started
