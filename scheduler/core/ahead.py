"""Who may use room that is kept for others until they start: what ends before by its own limit."""

from collections.abc import Callable, Sequence

from scheduler.core.admission import Admission
from scheduler.core.begun import Begun
from scheduler.core.guarantees import tiers
from scheduler.core.order import Heads
from scheduler.core.quota import Book
from scheduler.core.request import Request
from scheduler.core.share import Shares
from scheduler.core.snapshot import PendingView
from scheduler.core.units import WorkloadId


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
