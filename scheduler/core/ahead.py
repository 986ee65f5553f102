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
from scheduler.core.quota import Book
from scheduler.core.request import Option, Request
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
        request_of: Callable[[PendingView], Request],
        begun: Begun,
        leaving: Collection[UnitId],
    ) -> None:
        """`begun` start in this plan, and who is `leaving` is gone before all others."""
        self._snapshot = snapshot
        self._memory = memory
        self._backfill = backfill
        self._admission = admission
        self._request_of = request_of
        self._begun = begun
        self._leaving = leaving
        self._known: dict[ProjectId, int | None] = {}

    def short(self, left: Iterable[Left]) -> list[PendingView]:
        """Of those the ones that may go ahead of whom something is kept."""
        room = self._backfill.shadow
        kept = set(self._admission.kept)
        if self._begun.is_full or (room is None if self._backfill.keeps else not kept):
            return []
        waiting = {id for of in left if room or of.first.project in kept for id in of.ids}
        return [
            pending
            for pending in self._snapshot.pending
            if pending.run_time_limit_s
            and pending.id in waiting
            and (not room or self._snapshot.at + pending.run_time_limit_s <= room)
            and (pending.project not in kept or self._is_in_time(pending))
        ]

    def _is_in_time(self, pending: PendingView) -> bool:
        """Whether it ends before anybody who has quota kept in its project may start."""
        project = pending.project
        if project not in self._known:
            self._known[project] = self._quota_back(project)
        by, limit_s = self._known[project], pending.run_time_limit_s
        return by is not None and limit_s is not None and self._snapshot.at + limit_s <= by

    def _quota_back(self, project: ProjectId) -> int | None:
        """When the first of those has its quota, once what the project runs has ended; None when
        nobody knows."""
        of = self._admission.kept.of(project)
        found = []
        for pending in {kept.pending.id: kept.pending for kept in of.values()}.values():
            options = [
                option
                for option in self._request_of(pending).options
                if all(
                    flavor in of and of[flavor].pending.id == pending.id
                    for flavor, asked in option.needs
                    if asked
                )
            ]
            found.append(self._back_for(pending, options))
        known = [at for at in found if at is not None]
        return min(known) if len(known) == len(found) else None

    def _back_for(self, pending: PendingView, options: Sequence[Option]) -> int | None:
        def has_quota() -> bool:
            of = self._admission
            return any(of.has_quota(pending=pending, option=option) for option in options)

        if has_quota():  # room is what it lacks
            starts = {keep.workload: keep.starts_at for keep in self._backfill.keeps}
            return starts.get(pending.id)
        gone, runs = self._runs(pending.project)
        back: int | None = self._snapshot.at + 1
        with ExitStack() as stack:
            now, *later = (draft.book for draft in self._admission.drafts)
            stack.enter_context(now.given_back(project=pending.project, holders=gone))
            for run in runs:
                if has_quota():
                    break
                back = None if run.ends_late else run.ends_at
                for book in (now, *later):
                    stack.enter_context(
                        book.given_back(project=pending.project, holders=run.holders)
                    )
            return back if has_quota() else None

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
    short: Sequence[PendingView],
    request_of: Callable[[PendingView], Request],
    whole: Admission,
    shares: Shares,
    begun: Begun,
    book: Book,
) -> set[WorkloadId]:
    """Start what there is room for in `whole`, the fleet with what is kept; in the order of a
    plan, so that neither a guarantee nor a share counts for less there. Charged in `book` too."""
    started = set[WorkloadId]()
    heads = Heads(pending=short, request_of=request_of, shares=shares)
    for tier in tiers(book.cohorts):
        whole.begin(tier=tier)
        heads.reopen()
        while not begun.is_full and (pending := heads.next()) is not None:
            admit = whole.start(pending=pending, request=heads.request_of(pending))
            if admit is None:
                heads.close()
                continue
            started.add(pending.id)
            begun.add(pending, admit)
            for place in admit.places:
                book.charge(
                    project=pending.project, flavor=place.flavor, amount_milli=place.amount_milli
                )
    return started
