"""Who may use what is kept for others until they start: what ends before by its own limit.

From such work no quota is kept, so the first of a class starts in its turn. Here are those that
stand behind a like from which it is kept, and who may use room that is (see also `overtaken`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from scheduler.core.admitting.admission import Admission
from scheduler.core.admitting.begun import Begun
from scheduler.core.admitting.kept_quota import KeptQuota
from scheduler.core.admitting.order import Heads, Left
from scheduler.core.guarding.backfill import Backfill
from scheduler.core.quota.guarantees import tiers
from scheduler.core.quota.share import Shares
from scheduler.core.request import Request
from scheduler.core.snapshot import PendingView, Snapshot
from scheduler.core.units import WorkloadId


def go_ahead(
    *,
    snapshot: Snapshot,
    backfill: Backfill,
    kept: KeptQuota,
    left: Callable[[], Iterable[Left]],
    whole: Callable[[], Admission],
    beside: Callable[[], Admission],
    request_of: Callable[[PendingView], Request],
    shares: Shares,
    begun: Begun,
) -> set[WorkloadId]:
    """Start what ends in time of what is `left`: by the shadow time, on room that is kept, in the
    `whole` fleet; or, where none does, on quota that is, `beside` the room that is kept. What the
    first starts is charged in the second's book too."""
    projects, shadow = set(kept), backfill.shadow
    if begun.is_full or (shadow is None and not projects):
        return set()
    limited = [
        pending
        for pending in snapshot.pending
        if pending.run_time_limit_s and (shadow or pending.project in projects)
    ]
    waiting = {id for of in left() for id in of.ids} if limited else set()
    short = [
        pending
        for pending in limited
        if pending.id in waiting and not _is_kept_from(kept, pending, request_of(pending))
    ]
    of_room = [p for p in short if shadow and snapshot.at + (p.run_time_limit_s or 0) <= shadow]
    ahead_of = tuple(keep.workload for keep in backfill.keeps)
    if of_room and (started := _start(of_room, whole(), request_of, shares, begun, ahead_of)):
        book = beside().draft.book
        for pending, admit in begun.admits:
            for place in admit.places if pending.id in started else ():
                amount = place.amount_milli
                book.charge(project=pending.project, flavor=place.flavor, amount_milli=amount)
        return started
    of_quota = [pending for pending in short if pending.project in projects]
    return _start(of_quota, beside(), request_of, shares, begun) if of_quota else set()


def _is_kept_from(kept: KeptQuota, pending: PendingView, request: Request) -> bool:
    """Whether any quota is that it might use."""
    if not kept.of(pending.project):
        return False
    needs = (flavor for option in request.options for flavor, _ in option.needs)
    return any(kept.amount(pending, flavor) for flavor in needs)


def _start(
    short: Sequence[PendingView],
    admission: Admission,
    request_of: Callable[[PendingView], Request],
    shares: Shares,
    begun: Begun,
    ahead_of: tuple[WorkloadId, ...] = (),
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
            begun.add(pending, replace(admit, ahead_of=ahead_of))
    return started
