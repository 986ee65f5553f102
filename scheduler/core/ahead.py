"""Who may use room that is kept for others until they start: what ends before by its own limit."""

from collections.abc import Callable, Iterable

from scheduler.core.admission import Admission
from scheduler.core.begun import Begun
from scheduler.core.order import place_in_queue
from scheduler.core.quota import Book
from scheduler.core.request import Request
from scheduler.core.snapshot import PendingView
from scheduler.core.units import WorkloadId


def go_ahead(
    *,
    short: Iterable[PendingView],
    request_of: Callable[[PendingView], Request],
    whole: Admission,
    begun: Begun,
    book: Book,
) -> set[WorkloadId]:
    """Start what there is room for in `whole`, the fleet with what is kept; each class once, in
    order. Charged in `book` too."""
    started, stuck = set(), set()
    for pending in sorted(short, key=place_in_queue):
        request = request_of(pending)
        if begun.is_full:
            break
        like = pending.project, pending.user, pending.array, request
        if like in stuck:
            continue
        admit = whole.start(pending=pending, request=request)
        if admit is None:
            stuck.add(like)
            continue
        started.add(pending.id)
        begun.add(pending, admit)
        for place in admit.places:
            book.charge(
                project=pending.project, flavor=place.flavor, amount_milli=place.amount_milli
            )
    return started
