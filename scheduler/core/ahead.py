"""Who may use room that is kept for others until they start: what ends before by its own limit."""

from collections.abc import Callable, Iterable, Sequence

from scheduler.core.admission import Admission
from scheduler.core.begun import Begun
from scheduler.core.guarantees import tiers
from scheduler.core.order import Heads, Left
from scheduler.core.quota import Book
from scheduler.core.request import Request
from scheduler.core.share import Shares
from scheduler.core.snapshot import PendingView, Snapshot
from scheduler.core.units import WorkloadId


def go_ahead(
    *,
    snapshot: Snapshot,
    shadow: int | None,
    left: Callable[[], Iterable[Left]],
    whole: Callable[[], Admission],
    book: Book,
    request_of: Callable[[PendingView], Request],
    shares: Shares,
    begun: Begun,
) -> set[WorkloadId]:
    """Start, of what is `left`, what ends by the shadow time, in the `whole` fleet, with the room
    that is kept. They are charged in the book of the fleet without that, too."""
    if shadow is None or begun.is_full:
        return set()
    ends = [
        pending
        for pending in snapshot.pending
        if pending.run_time_limit_s and snapshot.at + pending.run_time_limit_s <= shadow
    ]
    waiting = {id for of in left() for id in of.ids} if ends else set()
    short = [pending for pending in ends if pending.id in waiting]
    if not short:
        return set()
    started = _start(short, whole(), request_of, shares, begun)
    for pending, admit in begun.admits:
        for place in admit.places if pending.id in started else ():
            amount = place.amount_milli
            book.charge(project=pending.project, flavor=place.flavor, amount_milli=amount)
    return started


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
