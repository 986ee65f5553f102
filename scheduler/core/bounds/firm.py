"""What work that may not be preempted stays within: what it holds, nobody else can want back.

So it takes no nominal that is lent. For one of the members above it below the fleet, or for its
project itself, all that is drawn on the nominal that is the member's own, by this work and by what
others below the member use beyond theirs, is no more than that nominal (`ledger.Ledger.drawn`).
"""

from collections.abc import Sequence

from scheduler.core.fleet.draft import Draft
from scheduler.core.quota.cohorts import FLEET
from scheduler.core.quota.guarantees import Needs, first
from scheduler.core.quota.quota import Book
from scheduler.core.reasons import Reason, ReasonCode
from scheduler.core.request import Option
from scheduler.core.snapshot import PendingView
from scheduler.core.units import FlavorId, ProjectId


def rooms(book: Book, *, project: ProjectId, needs: Needs) -> dict[FlavorId, int] | None:
    """How much more of each flavor it may take, at the nearest member that has as much as it needs
    of all of them; None when there is none."""
    number = book.cohorts.number.get(project, FLEET)
    own = [(flavor, asked, book.ledger(flavor).own_rooms(number)) for flavor, asked in needs]
    lacks = [[room - asked for room in of] for _, asked, of in own]
    found = first(book.cohorts, number, lacks)
    if found == FLEET:
        return None
    nth = len(book.cohorts.paths[number]) - len(book.cohorts.paths[found])
    return {flavor: of[nth] for flavor, _, of in own}


def narrowed(
    spare: dict[FlavorId, int], *, drafts: Sequence[Draft], pending: PendingView, option: Option
) -> dict[FlavorId, int] | None:
    """What of `spare` it may take in each of the drafts; None when that is not enough."""
    for draft in drafts:
        found = rooms(draft.book, project=pending.project, needs=option.needs)
        if found is None:
            return None
        spare = {flavor: min(left, found[flavor]) for flavor, left in spare.items()}
    return spare


def await_own(book: Book, *, pending: PendingView, option: Option) -> None:
    """It was charged, and has to wait until that comes free. Unless it may be preempted, nobody
    below the member whose own that is takes any of it meanwhile: it would be this work's next
    victim, and the one that was evicted for it would start in its place."""
    if pending.preemptible:
        return
    number = book.cohorts.number[pending.project]
    ledgers = [book.ledger(flavor) for flavor, _ in option.needs]
    member = first(book.cohorts, number, [ledger.own_rooms(number) for ledger in ledgers])
    for ledger in ledgers:
        ledger.awaited.add(member)


def most_milli(book: Book, *, pending: PendingView, flavor: FlavorId) -> int | None:
    """The most that such work of the project could hold if nobody else used any, whether it may be
    preempted or not; None without a quota row."""
    ceiling = book.ceiling(project=pending.project, flavor=flavor)
    if ceiling is None or pending.preemptible:
        return ceiling
    return book.guaranteed(project=pending.project, flavor=flavor)


def why_not(*, drafts: Sequence[Draft], pending: PendingView, option: Option) -> Reason | None:
    """Of the flavor of which it lacks most, with the numbers. None where it may be preempted,
    where `narrowed` is not None, and where it has no quota at all of something."""
    if pending.preemptible or narrowed({}, drafts=drafts, pending=pending, option=option) == {}:
        return None
    lacking = []
    for nth, (flavor, asked) in enumerate(option.needs):
        most = most_milli(drafts[0].book, pending=pending, flavor=flavor)
        if most is None:
            return None
        left = min(
            left_milli(draft.book, project=pending.project, flavor=flavor) for draft in drafts
        )
        lacking.append((asked > most, asked - left, -nth, flavor, asked, left, most))
    _, _, _, flavor, asked, left, most = max(lacking)
    numbers: dict[str, int | str] = {
        "asked_milli": asked,
        "available_milli": max(0, left),
        "flavor": drafts[0].flavors[flavor].name,
        "guaranteed_milli": most,
    }
    code = ReasonCode.NEVER_ADMISSIBLE if asked > most else ReasonCode.QUOTA_USED
    return Reason(code, tuple(sorted(numbers.items())))


def left_milli(book: Book, *, project: ProjectId, flavor: FlavorId) -> int:
    """How much more of the flavor alone such work of the project could take; negative where more
    is drawn on what is its own than that."""
    number = book.cohorts.number.get(project, FLEET)
    return max(book.ledger(flavor).own_rooms(number), default=0)
