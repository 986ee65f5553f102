"""One search for victims: a workload, an option, a cluster.

Greedy: pod by pod the cheapest node (`cheapest`), then quota, then victims that turn out not to be
needed are let go. Whoever reclaims ends within the guarantee by which it does (`guarantees`), and
what may not be preempted within what it may use. Nor does it take what a reservation would lack.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from scheduler.core.bounds import firm
from scheduler.core.bounds.windows import Windows
from scheduler.core.evicting.cheapest import Cheapest, Evictable
from scheduler.core.evicting.eligible import Eligible
from scheduler.core.fleet.domains import Domain
from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.space import are_free, free_milli
from scheduler.core.held.victims import UnitId, Victim, harm
from scheduler.core.placing.layouts import Layout
from scheduler.core.placing.place import place_gang
from scheduler.core.plan import Place
from scheduler.core.quota.floors import Floor
from scheduler.core.reasons import PreemptRule, Reason
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import FlavorView, PendingView, PodSetView
from scheduler.core.units import ClusterId, FlavorId

_SECOND_LOOKS = 16
"""Victims of one search for whose return the workload is placed anew, and at most so many pods."""
_PODS_ANEW = 256
_ANY = 1 << 62
"""More than is lacking ever."""
_TRIES = 2
"""Of one search: again where who went first would have had to stay for who went after."""


type Priced = Callable[[Eligible, PodSetView], Evictable]
"""Who may be evicted, at what each costs where room is made for such a pod."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The places a workload gets once the releases are seen, and the victims taken for it now,
    each with what is left to those who gave it. `gone` are the victims, with pods that one of them
    had lost before it was taken as a whole."""

    places: tuple[Place, ...]
    victims: tuple[Victim, ...]
    gone: tuple[Victim, ...]
    floors: Mapping[UnitId, tuple[Floor, ...]]


class Search:
    """One attempt in the draft `soon`; without `eligible` nobody is evicted."""

    def __init__(
        self,
        soon: Draft,
        pending: PendingView,
        request: Request,
        option: Option,
        cluster: ClusterId,
        eligible: Eligible | None,
        floors: Mapping[UnitId, tuple[Floor, ...]],
        windows: Windows,
        within: Layout | None = None,
    ) -> None:
        """`within` are the domains in which all is placed, and room is made. `floors` are those
        of who went before in the plan; `windows` those of what is in `soon`."""
        self._soon = soon
        self._windows = windows
        self._lacked: Sequence[int] = ()
        self.reserved: Reason | None = None
        self._within = within
        self._pending = pending
        self._request = request
        self._option = option
        self._cluster = cluster
        self._eligible = eligible
        self._taken: dict[UnitId, Victim] = {}
        self._flavors = tuple(flavor for flavor, _ in option.needs)
        self._reclaimed: Counter[int] = Counter()
        self._priced: Priced | None = None
        self._cheapest: Cheapest | None = None
        self._floors = floors

    def run(self, priced: Priced | None = None) -> Wait | None:
        """The places, then in `soon` in the victims' stead; None leaves `soon` as it was.

        Pods first, each where that costs least, as `priced` for such a pod, or in full; then
        quota; then let go of whom it can. `reserved` is set where a reservation would lack what it
        takes.
        """
        self._priced, self._cheapest = priced, None
        mark, self._lacked = self._soon.checkpoint(), self._windows.lacking(draft=self._soon)
        for _ in range(_TRIES):
            places = self._place(evicting=self._eligible is not None)
            freed = places is not None and self._free_quota() and self._free_reserved(places)
            wait = self._let_go(places) if places is not None and freed else None
            wronged = self._wronged(wait) if wait is not None else []
            if wait is not None and not wronged:
                return wait
            self._soon.rollback(mark)
            self.forget()
            if self._eligible is None or not wronged:
                return None
            self._eligible, self._cheapest = self._eligible.sparing(wronged), None
        return None

    def _wronged(self, wait: Wait) -> list[UnitId]:
        """Who would have had to stay, of its victims and of those before, as all are gone now."""
        members = {m for of in wait.floors.values() for floor in of for m in floor.members}
        book = self._soon.book
        return [
            unit
            for unit, floors in {**self._floors, **wait.floors}.items()
            for floor in floors
            if not members.isdisjoint(floor.members) and not floor.is_kept(book=book)
        ]

    def repeat(self, wait: Wait) -> None:
        """What was found before, and forgotten, in `soon` again."""
        for victim in wait.gone:
            self._evict(victim)
        for place in wait.places:
            self._soon.add(project=self._pending.project, holder=place)

    def forget(self) -> None:
        """Nobody was taken: `soon` is as it was before."""
        for victim in list(self._taken.values()):
            self._count(victim, gone=False)

    def _place(self, *, evicting: bool) -> tuple[Place, ...] | None:
        return place_gang(
            draft=self._soon,
            pending=self._pending,
            request=self._request,
            option=self._option,
            cluster=self._cluster,
            spare={},
            make_room=self._make_room if evicting else None,
            within=self._within,
        )

    def _free_quota(self) -> bool:
        """Evict until what has been charged to the workload's project is lawful.

        Twice: who is reclaimed from for one flavor may bind another.
        """
        for flavor in self._flavors * 2:
            if self._is_lawful(flavor):
                continue
            if self._eligible is None or not self._free_quota_of(flavor, self._eligible):
                return False
        return self._is_lawful(*self._flavors)

    def _free_quota_of(self, flavor: FlavorId, eligible: Eligible) -> bool:
        """The least harmful first. Where some had to stay for who went before, and it is not
        enough, once more: who gives most goes first."""
        mark, before = self._soon.checkpoint(), set(self._taken)
        for again in (False, True):
            victims, stayed = eligible.with_flavor(flavor), False
            must_be_own = self._must_be_own(flavor)
            if again:
                victims = iter(sorted(victims, key=lambda each: -each.held.amounts[flavor]))
            for victim in victims:
                if victim.held.is_in(self._taken):
                    continue
                if not eligible.may_go(victim, ()):
                    stayed = True
                elif victim.rule is PreemptRule.PRIORITY or not must_be_own:
                    self._evict(victim)
                    if self._is_lawful(flavor):
                        return True
                    must_be_own = self._must_be_own(flavor)
            if not stayed or self._taken.keys() == before:
                return False
            self._soon.rollback(mark)
            for victim in [v for v in self._taken.values() if v.id not in before]:
                self._count(victim, gone=False)
        return False

    def _free_reserved(self, places: Sequence[Place]) -> bool:
        """Evict until no reservation lacks what it takes of what is free; sets `reserved` where
        that does not do. Nobody goes for what was lacking before."""
        self.reserved = self._why_reserved(places)
        if self.reserved is None or self._eligible is None:
            return self.reserved is None
        if self._why_reserved(places, if_short=True) is not None:
            return False
        looks, lacking = _SECOND_LOOKS, self.reserved
        for victim in chain.from_iterable(map(self._eligible.with_flavor, self._flavors)):
            held = victim.held
            if held.is_in(self._taken) or not self._eligible.may_go(victim, ()):
                continue
            if self._windows.gain_nothing(holding=held.holding, placements=held.placements):
                continue
            mark = self._soon.checkpoint()
            self._evict(victim)
            left = self._why_reserved(places)
            if left is None:
                self.reserved = None
                break
            if left != lacking:
                lacking = left
                continue
            self._soon.rollback(mark)
            self._count(victim, gone=False)
            looks -= 1
            if not looks:
                break
        return self.reserved is None and self._is_lawful(*self._flavors)

    def _why_reserved(self, places: Sequence[Place], *, if_short: bool = False) -> Reason | None:
        """Why it may not start at the places once all who were taken have left, as `start` asks of
        what is free: no reservation may lack more with it than without it, nor more than before.
        `if_short`: of what was lacking before alone."""
        if not self._windows:
            return None
        soon, asks, windows = self._soon, self._pending, self._windows.copy()
        for victim in self._taken.values():
            of, placements = victim.held.holding, victim.held.placements
            windows.left(holding=of, placements=placements)
        mark = soon.checkpoint()
        for place in places:
            soon.remove(project=asks.project, holder=place)
        without = windows.lacking(draft=soon)
        soon.rollback(mark)
        before = [
            _ANY if if_short and lacked <= 0 else min(lacked, lacks)
            for lacked, lacks in zip(self._lacked, without, strict=True)
        ]
        return windows.reason(draft=soon, pending=asks, places=places, before=before)

    def _let_go(self, places: tuple[Place, ...]) -> Wait:
        """Put back each victim without whom it works as well, the most harmful first.

        Where its room has been taken the workload is placed anew beside it, a bounded number of
        times.
        """
        looks = min(_SECOND_LOOKS, max(1, _PODS_ANEW // len(places)))
        for victim in self._harmful():
            if self._goes_anyway(victim):
                continue
            has_room = are_free(draft=self._soon, places=victim.held.placements)
            if not has_room:
                if not looks or not self._could_move():
                    continue
                looks -= 1
            if not self._may_stay(victim):
                continue
            mark = self._soon.checkpoint()
            again: tuple[Place, ...] | None = places
            if has_room:
                self._put_back(victim)
            else:
                for place in places:
                    self._soon.remove(project=self._pending.project, holder=place)
                self._put_back(victim)
                again = self._place(evicting=False)
            if again is not None and self._why_reserved(again) is None:
                places = again
            else:
                self._soon.rollback(mark)
                self._count(victim, gone=True)
        gone = tuple(self._taken.values())
        victims = [victim for victim in gone if not self._goes_anyway(victim)]
        floors = {v.id: tuple(self._eligible.floors(v)) for v in victims if self._eligible}
        return Wait(places, tuple(sorted(victims, key=harm)), gone, floors)

    def _goes_anyway(self, victim: Victim) -> bool:
        """Whether it is a pod whose workload was taken after it."""
        return victim.held.whole is not None and victim.held.whole.id in self._taken

    def _harmful(self) -> Iterator[Victim]:
        """All of them when there are several; then those left once more, if nobody is reclaimed
        from any longer: own work may have had to go for that alone."""
        harmful = sorted(self._taken.values(), key=harm, reverse=True)
        reclaims = self._reclaims_below() is not None
        if len(harmful) > 1:
            yield from harmful
        if reclaims and self._reclaims_below() is None:
            yield from (victim for victim in harmful if victim.id in self._taken)

    def _could_move(self) -> bool:
        """Whether the workload leaves anything free of what it asks for: a quick no."""
        return any(
            free_milli(draft=self._soon, cluster=self._cluster, flavor=flavor) > 0
            for flavor in self._option.flavors
        )

    def _may_stay(self, victim: Victim) -> bool:
        """Whether all would be lawful with it: asked of usage alone, before anything is moved."""
        book, held = self._soon.book, victim.held
        project = held.holding.project
        for placement in held.placements:
            amount = placement.amount_milli
            book.charge(project=project, flavor=placement.flavor, amount_milli=amount)
        self._count(victim, gone=False)
        lawful = self._is_lawful(*self._flavors)
        self._count(victim, gone=True)
        for placement in held.placements:
            amount = placement.amount_milli
            book.charge(project=project, flavor=placement.flavor, amount_milli=-amount)
        return lawful

    def _is_lawful(self, *flavors: FlavorId) -> bool:
        """Whether the project may hold what it has now been charged of all of these."""
        book, project = self._soon.book, self._pending.project
        for flavor in flavors:
            if not book.is_lawful(project=project, flavor=flavor):
                return False
        return self._is_guaranteed(*flavors)

    def _must_be_own(self, flavor: FlavorId) -> bool:
        """Whether only the project's own work, given back, makes it lawful."""
        book, project = self._soon.book, self._pending.project
        limit = book.borrowing_limit(project=project, flavor=flavor)
        over = book.used(project=project, flavor=flavor) - book.nominal(
            project=project, flavor=flavor
        )
        return not self._is_guaranteed(flavor) or (limit is not None and over > limit)

    def _is_guaranteed(self, *flavors: FlavorId) -> bool:
        """Whether it is within the guarantee that it needs: against those who are reclaimed from,
        and as work that may not be preempted."""
        book, project = self._soon.book, self._pending.project
        above = self._reclaims_below()
        if above is not None and self._eligible is not None:
            taken = self._taken.values()
            if not self._eligible.is_guaranteed(flavors, taken=taken, below=above):
                return False
        charged = [(flavor, 0) for flavor in flavors]
        return (
            self._pending.preemptible
            or firm.rooms(book, project=project, needs=charged) is not None
        )

    def _reclaims_below(self) -> int | None:
        """Of the members above it and someone who is reclaimed from, the lowest in the tree; None
        without any."""
        return max((member for member, n in self._reclaimed.items() if n > 0), default=None)

    def _evict(self, victim: Victim) -> None:
        for placement in victim.held.placements:
            self._soon.remove(project=victim.held.holding.project, holder=placement)
        self._count(victim, gone=True)

    def _put_back(self, victim: Victim) -> None:
        for placement in victim.held.placements:
            self._soon.add(project=victim.held.holding.project, holder=placement)
        self._count(victim, gone=False)

    def _count(self, victim: Victim, *, gone: bool) -> None:
        if gone:
            self._taken[victim.id] = victim
        else:
            del self._taken[victim.id]
        if victim.held.whole is not None:
            move = victim.held.whole.lose if gone else victim.held.whole.regain
            move(victim.held)
        if victim.rule is PreemptRule.RECLAIM and self._eligible is not None:
            self._reclaimed[self._eligible.above(victim)] += 1 if gone else -1

    def _make_room(self, pod_set: PodSetView, flavor: FlavorView, within: Domain | None) -> bool:
        """Evict the least harmful victims on one node after which the pod fits there."""
        if self._eligible is None:
            return False
        cheapest = self._cheapest
        if cheapest is None or not cheapest.is_of(pod_set, within):
            priced = self._priced
            cheapest = self._cheapest = Cheapest(
                soon=self._soon,
                eligible=priced(self._eligible, pod_set) if priced else self._eligible,
                cluster=self._cluster,
                pod_set=pod_set,
                flavor=flavor,
                taken=self._taken,
                within=within,
            )
        victims = cheapest.victims()
        if victims is None:
            return False
        for victim in victims:
            self._evict(Victim.of(victim.held, victim.rule))
        cheapest.changed({node for victim in victims for node in victim.held.on})
        return True
