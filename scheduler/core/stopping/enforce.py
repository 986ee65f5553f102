"""Quotas that are enforced: what is held beyond one, and may be stopped, gives way.

A quota that was lowered below its use takes nothing back by itself. From its `enforce_at` on, what
is held beyond nominal + borrowing limit goes, least harm first (`victims`): nobody without whom it
would be kept as well, and nothing that may not be preempted but the pods beyond its least. Least
run times protect from others, not from this. It comes before all else in a plan, the rest of which
is made as if the victims had been told to go.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from scheduler.core.held.elastic import staying, surplus
from scheduler.core.held.shrinks import gives_way
from scheduler.core.held.victims import Held, UnitId, Victim
from scheduler.core.plan import Plan, Preempt, Shrink
from scheduler.core.quota.cohorts import FLEET
from scheduler.core.quota.ledger import Ledger
from scheduler.core.quota.quota import Book
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import CohortView, HoldingView, QueueView, QuotaView, Snapshot
from scheduler.core.units import NO_WORKLOAD, CohortId, FlavorId, ProjectId

MOST_VICTIMS = 500
"""Of one plan, so that what carries it out stays short: the next one takes the rest."""

type Owner = ProjectId | CohortId


@dataclass(frozen=True, slots=True)
class Enforced:
    """Who goes, least harm first. `over_milli` is by how much more is held than the enforced
    quotas allow, in the sum of them, and `stays_milli` what of that nobody gives back."""

    victims: tuple[Victim, ...] = ()
    over_milli: int = 0
    stays_milli: int = 0


def enforce(snapshot: Snapshot) -> tuple[Snapshot, "Cuts"]:
    """The snapshot with those on their way back who go now, and who they are; `snapshot` itself
    when nobody does."""
    return sent_off(snapshot, found(snapshot).victims)


def sent_off(snapshot: Snapshot, victims: Iterable[Victim]) -> tuple[Snapshot, "Cuts"]:
    """The snapshot with the first MOST_VICTIMS of these on their way back, for nobody, and who
    they are; `snapshot` itself where there are none."""
    preempts, shrinks = gives_way(preemptor=NO_WORKLOAD, victims=islice(victims, MOST_VICTIMS))
    cuts = Cuts(tuple(preempts), tuple(shrinks))
    if not preempts and not shrinks:
        return snapshot, cuts
    gone = {preempt.victim for preempt in preempts}
    pods = {pod for shrink in shrinks for pod in shrink.placements}
    holding = (
        replace(held, releasing=True)
        if held.id in gone
        else _leaving(held, [p.id in pods for p in held.placements])
        for held in snapshot.holding
    )
    return replace(snapshot, holding=tuple(holding)), cuts


@dataclass(frozen=True, slots=True)
class Cuts:
    """Who goes for nobody, as a plan tells it."""

    preempts: tuple[Preempt, ...]
    shrinks: tuple[Shrink, ...]

    def before(self, made: Plan) -> Plan:
        """The plan with them first."""
        if not self.preempts and not self.shrinks:
            return made
        return replace(
            made,
            preempts=(*self.preempts, *made.preempts),
            shrinks=(*self.shrinks, *made.shrinks),
        )


def found(snapshot: Snapshot) -> Enforced:
    """Who goes, and by how much more is held than may be; of a snapshot without faults."""
    if not any(_is_due(quota, snapshot.at) for _, quota in _quotas(snapshot)):
        return Enforced()
    return _Search(snapshot).run()


def would_go(snapshot: Snapshot, owner: Owner, quota: QuotaView) -> Enforced:
    """As `found`, if that project's or cohort's quota were `quota`, enforced now, and no other
    was."""
    return found(lowered(snapshot, owner, quota))


def lowered(snapshot: Snapshot, owner: Owner, quota: QuotaView) -> Snapshot:
    """The same with that quota of the project or cohort, and of all of them it alone enforced."""

    def others[V: (QueueView, CohortView)](of: V, id: Owner) -> V:
        kept = [replace(each, enforce_at=None) for each in of.quotas]
        if id == owner:
            kept = [each for each in kept if each.flavor != quota.flavor]
            kept.append(replace(quota, enforce_at=snapshot.at))
        return replace(of, quotas=tuple(kept))

    return replace(
        snapshot,
        queues=tuple(others(queue, queue.project) for queue in snapshot.queues),
        cohorts=tuple(others(cohort, cohort.id) for cohort in snapshot.cohorts),
    )


def kept(snapshot: Snapshot) -> list[tuple[Owner, QuotaView]]:
    """The quotas with an `enforce_at`, whenever that is, of which no more is held than they allow,
    counting what is on its way back: nothing is to be enforced of them any more."""
    marked = [each for each in _quotas(snapshot) if each[1].enforce_at is not None]
    if not marked:
        return []
    book = _book(snapshot)
    for held in snapshot.holding:
        for placement in held.placements:
            _charge(book, held, 1, placement.flavor, placement.amount_milli)
    return [
        (owner, quota)
        for owner, quota in marked
        if _excess(book.ledger(quota.flavor), book.cohorts.members[owner]) <= 0
    ]


def _quotas(snapshot: Snapshot) -> Iterator[tuple[Owner, QuotaView]]:
    for queue in snapshot.queues:
        for quota in queue.quotas:
            yield queue.project, quota
    for cohort in snapshot.cohorts:
        for quota in cohort.quotas:
            yield cohort.id, quota


def _is_due(quota: QuotaView, at: int) -> bool:
    return quota.enforce_at is not None and quota.enforce_at <= at


def _book(snapshot: Snapshot) -> Book:
    return Book(cohorts=snapshot.cohorts, queues=snapshot.queues, flavors=snapshot.flavors)


def _charge(book: Book, held: HoldingView, sign: int, flavor: FlavorId, amount: int) -> None:
    book.charge(project=held.project, flavor=flavor, amount_milli=sign * amount)


def _excess(ledger: Ledger, number: int) -> int:
    """Held beyond nominal + borrowing limit; negative below it. Without a borrowing limit a quota
    has nothing to be enforced."""
    quota = ledger.quotas[number]
    if quota is None or quota.borrowing_limit_milli is None:
        return 0
    return ledger.over(number) - quota.borrowing_limit_milli


def _leaving(held: HoldingView, goes: Sequence[bool]) -> HoldingView:
    if not any(goes):
        return held
    placements = (
        replace(placement, leaving=True) if gone else placement
        for placement, gone in zip(held.placements, goes, strict=True)
    )
    return replace(held, placements=tuple(placements))


class _Search:
    """Over what stays of the snapshot, in a book of its own."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._book = book = _book(snapshot)
        due = [
            (flavor, number)
            for number, quotas in enumerate(book.cohorts.quotas)
            for flavor, quota in quotas.items()
            if _is_due(quota, snapshot.at)
        ]
        self._due = [(book.ledger(flavor), number) for flavor, number in due]
        self._units: list[Held] = []
        for held in snapshot.holding:
            for placement in staying(held):
                _charge(book, held, 1, placement.flavor, placement.amount_milli)
            path = book.cohorts.paths[book.cohorts.number.get(held.project, FLEET)]
            if any(number in path for _, number in due):
                self._units += _units(held, book)
        for unit in self._units:
            unit.settle(snapshot.at)
        self._units.sort(key=lambda unit: unit.order)
        self._taken: dict[UnitId, Held] = {}

    def run(self) -> Enforced:
        before = self._excesses()
        for unit in self._units:
            if not any(excess > 0 for excess in self._excesses()):
                break
            self._take(unit)
        least = [max(0, excess) for excess in self._excesses()]
        for unit in sorted(self._taken.values(), key=lambda unit: unit.order, reverse=True):
            if not unit.is_whole and unit.is_in(self._taken.keys() - {unit.id}):
                del self._taken[unit.id]  # it goes with its workload
            else:
                self._spare(unit, least)
        return Enforced(
            tuple(Victim.of(unit, PreemptRule.QUOTA) for unit in self._taken.values()),
            over_milli=sum(max(0, excess) for excess in before),
            stays_milli=sum(least),
        )

    def _excesses(self) -> list[int]:
        return [_excess(ledger, number) for ledger, number in self._due]

    def _take(self, unit: Held) -> None:
        """If less is held then of what is held too much of."""
        before = self._excesses()
        self._move(unit, -1)
        if all(was <= max(0, now) for was, now in zip(before, self._excesses(), strict=True)):
            self._move(unit, 1)
            return
        self._taken[unit.id] = unit
        if unit.whole is not None:
            unit.whole.lose(unit)

    def _spare(self, unit: Held, least: Sequence[int]) -> None:
        """Leave it where it is if no more is held then than has to be."""
        self._move(unit, 1)
        if any(now > most for now, most in zip(self._excesses(), least, strict=True)):
            self._move(unit, -1)
            return
        del self._taken[unit.id]
        if unit.whole is not None:
            unit.whole.regain(unit)

    def _move(self, unit: Held, sign: int) -> None:
        for placement in unit.placements:
            _charge(self._book, unit.holding, sign, placement.flavor, placement.amount_milli)


def _units(held: HoldingView, book: Book) -> Iterator[Held]:
    """What may go of it: pods by themselves, and all of it."""
    whole = None
    if held.preemptible and staying(held):
        whole = Held(held, parts=book.parts)
        yield whole
    for pod in surplus(held):
        yield Held(held, parts=book.parts, pod=pod, whole=whole)
