"""Whose guarantee work runs on, and who gives that back.

The law is that of Kueue's hierarchical preemption (`pkg/scheduler/preemption/classical/
hierarchical_preemption.go`), with YuniKorn's for the victim (`docs/design/preemption`). In the
terms of `quota`: what is guaranteed to a member of the tree is its capacity, so its own nominal
and what its children are guaranteed and lend.

  Guarantor: of the project and those above it below the fleet, the nearest that, with what is
  asked, uses no more than its capacity of each flavor. Who has none borrows.
  Reclaim: work that has a guarantor may evict work of a project outside of it, when that project
  and each member above it are over capacity, up to below the nearest that is above both. Each of
  them stays at capacity at least. What others of the same plan evict is not counted on: who is
  evicted may be back first, and have that guarantee.

What was reclaimed has a guarantor above both, if any, and so one that is higher in the tree. So
work goes by tiers: first what its project has itself, then what deeper members guarantee, last
what is borrowed. Then nobody comes before the one for whom it was evicted.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from scheduler.core.quota.cohorts import FLEET, Cohorts
from scheduler.core.quota.quota import Book
from scheduler.core.units import FlavorId, ProjectId

OWN: Final = 1 << 20
"""The tier of what a project has itself: deeper than any tree."""
BORROWED: Final = 0
_NOTHING: Mapping[FlavorId, int] = {}

type Needs = Iterable[tuple[FlavorId, int]]


def tiers(cohorts: Cohorts) -> Sequence[int]:
    """All of them in their order: OWN, the depths of those above projects, BORROWED."""
    deepest = max((len(cohorts.paths[n]) for n in cohorts.number.values()), default=1)
    return OWN, *range(deepest - 1, BORROWED, -1), BORROWED


def tier_of(cohorts: Cohorts, *, project: ProjectId, guarantor: int) -> int:
    """That of work of the project; FLEET stands for no guarantor."""
    own = guarantor != FLEET and guarantor == cohorts.number.get(project)
    return OWN if own else len(cohorts.paths[guarantor])


def tier(book: Book, *, project: ProjectId, needs: Needs) -> int:
    """That of work of the project that asks for so much, as things stand in the book."""
    by = guarantor(book, project=project, needs=needs)
    return tier_of(book.cohorts, project=project, guarantor=by)


def of_round(tier: int, *, cohorts: Cohorts, project: ProjectId) -> int:
    """The project, or the one above it that is no deeper in the tree than those of the tier; FLEET
    when that is BORROWED."""
    path = cohorts.paths[cohorts.number.get(project, FLEET)][:tier]
    return path[-1] if path else FLEET


def guarantor(
    book: Book,
    *,
    project: ProjectId,
    needs: Needs,
    gives_way: Mapping[FlavorId, int] = _NOTHING,
    below: int = FLEET,
) -> int:
    """The member's number; FLEET when nobody `below` that one guarantees the project so much more
    of each flavor, were `gives_way` of its use gone."""
    number = book.cohorts.number.get(project, FLEET)
    rooms = [
        [room - asked for room in ledger.rooms(number, gives_way=gives_way.get(flavor, 0))]
        for flavor, asked in needs
        for ledger in (book.ledger(flavor),)
    ]
    return first(book.cohorts, number, rooms, below)


def gives(cohorts: Cohorts, *, project: ProjectId, to: ProjectId) -> tuple[int, tuple[int, ...]]:
    """The nearest member above both, and those of the project's own path below it."""
    theirs = cohorts.paths[cohorts.number.get(to, FLEET)]
    path = cohorts.paths[cohorts.number.get(project, FLEET)]
    above = FLEET
    for nth, (mine, other) in enumerate(zip(path, theirs, strict=False)):
        if mine != other:
            return above, path[nth:]
        above = mine
    return above, path[len(theirs) :]


def first(
    cohorts: Cohorts, number: int, rooms: Sequence[Sequence[int]], below: int = FLEET
) -> int:
    """The nearest member from that one upwards where there is room of every flavor; FLEET when
    there is none `below` that one. `rooms` has a list for each flavor, by members upwards."""
    for nth, member in enumerate(reversed(cohorts.paths[number])):
        if member <= below:
            break
        if all(of[nth] >= 0 for of in rooms):
            return member
    return FLEET
