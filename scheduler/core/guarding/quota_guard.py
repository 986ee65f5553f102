"""For whom quota is kept in its own project (ADR 0020).

Who has waited for `Policy.guard_s` and lacks quota has what it asks for kept from what its project
starts later, where that is in the project's own hands: it would have it if its project used none
of its own, be it that others borrow it and may be evicted for it. So small work of a project does
not overtake its large work for ever. Who would have to borrow even then is not kept before what
its project is guaranteed, nor is anything kept for who lacks what others may hold.

Room has to be there for it, too, were nothing held: on nodes that are up, or can come. From what
ends by its own limit before the quota is back it is not kept.
"""

from collections import Counter
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from itertools import chain

from scheduler.core.admitting.admission import Admission
from scheduler.core.admitting.begun import Begun
from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.node_pools import nodes_of
from scheduler.core.guarding.backfill import leaves
from scheduler.core.held.elastic import staying
from scheduler.core.held.runs import ORDER, Run
from scheduler.core.held.victims import UnitId
from scheduler.core.memory import Memory
from scheduler.core.placing.place import would_place
from scheduler.core.plan import Keep
from scheduler.core.policy import Policy
from scheduler.core.quota.cohorts import FLEET
from scheduler.core.quota.guarantees import BORROWED, guarantor, tier
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import HeldView, PendingView, Snapshot
from scheduler.core.units import FlavorId, ProjectId

NEVER = -(1 << 60)


class QuotaGuard:
    """Keeps quota in the admission of one plan."""

    def __init__(
        self,
        *,
        snapshot: Snapshot,
        policy: Policy,
        admission: Admission,
        memory: Memory,
        begun: Begun,
    ) -> None:
        """`since`: for who was submitted by then; before all times for nobody. `reclaims`: whether
        what others borrow may be taken back. `begun` start in this plan."""
        self.since = NEVER if policy.guard_s is None else snapshot.at - policy.guard_s
        self.reclaims = policy.preemption
        self._admission = admission
        self._snapshot = snapshot
        self._memory = memory
        self._begun = begun
        self._there: dict[Option, bool] = {}

    def keep(
        self,
        *,
        first_since: Callable[[int], PendingView | None],
        request: Request,
        leaving: Callable[[], Collection[UnitId]],
    ) -> None:
        """One and its like did not start: keep for the first of them that has waited long what it
        needs with the first option of which it lacks quota and would not but for its own project;
        unless some of that is kept for one who stands before it. Who is `leaving` is gone before
        all others."""
        admission, kept = self._admission, self._admission.kept
        pending = None if self.since == NEVER else first_since(self.since)
        if pending is None or not admission.is_open(pending=pending, request=request):
            return
        if admission.windows.runs_into(pending=pending, request=request):
            return
        for option in request.options:
            if (
                not kept.is_any_ahead(pending, option)
                and admission.caps.lacks(pending=pending, option=option) is None
                and not admission.has_quota(pending=pending, option=option)
                and self._would_have(pending, option)
                and self.is_there(pending=pending, request=request, option=option)
            ):
                amounts = {flavor: asked for flavor, asked in option.needs if asked}
                if not kept.is_for(pending, amounts):  # else it was kept in a round before
                    back_at = self._back_at(pending, option, leaving())
                    kept.keep(pending, amounts, back_at=back_at)
                return

    def keep_beside(self, *, kept: Keep, pending: PendingView) -> None:
        """It has quota, and room is kept for it: keep that quota, too."""
        amounts, parts = Counter[FlavorId](), self._admission.draft.book.parts
        for place in kept.places:
            for flavor, amount in parts.charges(
                project=pending.project, flavor=place.flavor, amount_milli=place.amount_milli
            ):
                amounts[flavor] += amount
        of = self._admission.kept
        if not any(of.ahead(pending, flavor) for flavor in amounts):
            of.keep(pending, +amounts, back_at=kept.starts_at)

    def _is_enough(self, *, pending: PendingView, option: Option) -> bool:
        """Whether it has quota, or may take it back from who borrows it."""
        if self._admission.has_quota(pending=pending, option=option):
            return True
        return self.reclaims and self._is_guaranteed(pending, option)

    def known(self, *, option: Option) -> bool | None:
        """What `is_there` has said; None when nobody asked."""
        return self._there.get(option)

    def is_there(self, *, pending: PendingView, request: Request, option: Option) -> bool:
        """Whether it would find room if nothing were held."""
        found = self._there.get(option)
        if found is None:
            draft = self._vacant
            places = would_place(draft=draft, pending=pending, request=request, option=option)
            found = self._there[option] = any(places)
        return found

    def _back_at(
        self, pending: PendingView, option: Option, leaving: Collection[UnitId]
    ) -> int | None:
        """When it has its quota, once what its project runs has ended by its run-time limits; None
        when nobody knows, or room is what it lacks."""

        def is_enough() -> bool:
            return self._is_enough(pending=pending, option=option)

        if is_enough():
            return None
        gone, runs = self._runs(pending.project, leaving)
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

    def _runs(
        self, project: ProjectId, leaving: Collection[UnitId]
    ) -> tuple[list[HeldView], list[Run]]:
        """What leaves of all that the project holds, and the rest with what it starts, in the
        order in which that ends."""
        at, gone, runs = self._snapshot.at, list[HeldView](), list[Run]()
        for held in self._memory.ends(self._snapshot).held_by(project):
            stays = [p for p in staying(held) if not leaves(held, p, leaving)]
            gone += (placement for placement in held.placements if placement not in stays)
            if stays:
                runs.append(Run.of(held, stays, at=at))
        begun = self._begun.of(project)
        runs += (Run.begun(pending, admit.places, at=at) for pending, admit in begun)
        return gone, sorted(runs, key=ORDER)

    def _would_have(self, pending: PendingView, option: Option) -> bool:
        """Whether it would have enough, and in the tier of this round, were all of its project's
        own use gone."""
        admission, flavors = self._admission, [flavor for flavor, _ in option.needs]
        with ExitStack() as stack:
            for draft in admission.drafts:
                stack.enter_context(draft.book.without(project=pending.project, flavors=flavors))
            own = tier(admission.draft.book, project=pending.project, needs=option.needs)
            in_turn = admission.tier == BORROWED or own >= admission.tier
            return in_turn and self._is_enough(pending=pending, option=option)

    def _is_guaranteed(self, pending: PendingView, option: Option) -> bool:
        """Within the limits of those below its guarantor, too."""
        book = self._admission.draft.book
        by = guarantor(book, project=pending.project, needs=option.needs)
        path = book.cohorts.paths[book.cohorts.number.get(pending.project, FLEET)]
        below = path[path.index(by) :] if by != FLEET else ()
        return by != FLEET and all(
            most is None or value <= most
            for flavor, asked in option.needs
            for member, value, most in book.ledger(flavor).law(path[-1], asked)
            if member in below
        )

    @cached_property
    def _vacant(self) -> Draft:
        """The fleet as it is now with nothing of ours in it, and with all nodes that can come."""
        of = self._snapshot
        if any(cluster.coming for cluster in of.clusters):
            clusters = (
                replace(
                    cluster,
                    nodes=(*cluster.nodes, *chain.from_iterable(map(nodes_of, cluster.coming))),
                )
                for cluster in of.clusters
            )
            of = replace(of, clusters=tuple(clusters))
        return self._memory.draft("vacant", snapshot=of, holding=())
