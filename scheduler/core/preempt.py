"""Eviction at least harm, and what a workload then waits for.

Everything here happens in the draft called *soon*: the fleet once all that is on its way back
(`releasing`, and the victims of this plan) is back, with the places of those that wait for it
already taken. A workload that fits there waits; a later plan admits it, when the release is seen.

A workload reclaims only within its own nominal quota, and no victim of it may bring its project
below nominal in a flavor that is asked for. So whoever was evicted comes after the one who evicted
it when it asks again: it is a borrower then, or of lower priority in the same project (`cycle` and
`admission` order them so), and there is no ring of evictions.
"""

from collections.abc import Callable, Collection, Sequence

from scheduler.core.draft import Draft
from scheduler.core.evict import Search, Wait
from scheduler.core.place import clusters_for, would_place
from scheduler.core.plan import Place
from scheduler.core.policy import Policy
from scheduler.core.quota import Book
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import HoldingView, PendingView, Snapshot
from scheduler.core.units import ClusterId, ProjectId
from scheduler.core.victims import Candidates, Eligible, Harm


class Evictions:
    """Finds room by eviction, plan-wide: nobody is evicted twice, nothing is promised twice."""

    def __init__(self, *, snapshot: Snapshot, policy: Policy) -> None:
        self.candidates = Candidates(holding=snapshot.holding, at=snapshot.at)
        self._snapshot = snapshot
        self._policy = policy
        self._leaving = any(held.releasing for held in snapshot.holding)
        self._soon: Draft | None = None
        self._bare: Draft | None = None
        self._taken: list[tuple[ProjectId, Place]] = []
        self._preemptors = 0
        self._hopeless: set[Option] = set()
        self._stuck: dict[Option, int] = {}

    @property
    def soon(self) -> Draft:
        """Built when first asked for; in plans where nobody lacks room it never is."""
        if self._soon is None:
            self._soon = self._draft(lambda held: not held.releasing)
        return self._soon

    @property
    def idle(self) -> bool:
        """Whether there is nobody to evict and nothing on its way back."""
        return not self._leaving and self.candidates.none

    def started(self, *, pending: PendingView, places: Sequence[Place]) -> None:
        """These places are taken from now on."""
        for place in places:
            self._taken.append((pending.project, place))
            for draft in (self._soon, self._bare):
                if draft is not None:
                    draft.add(project=pending.project, holder=place)

    def find(
        self,
        *,
        pending: PendingView,
        request: Request,
        options: Sequence[Option],
        reclaiming: Collection[Option],
        book: Book,
    ) -> Wait | None:
        """What the workload waits for from now on; None when eviction does not help it.

        The first of `options` that works is taken, in the cluster where it does least harm: fewest
        victims, then the least harmful. Borrowers are evicted for `reclaiming` options alone.
        `book` is the usage now.
        """
        for option in options:
            evicting = self._preemptors < self._policy.max_preemptors and self.candidates.exist(
                pending=pending, option=option, book=book, reclaiming=option in reclaiming
            )
            if option in self._hopeless or not (evicting or self._may_come_free(option)):
                continue
            eligible = None
            if evicting:
                eligible = Eligible(
                    candidates=self.candidates,
                    pending=pending,
                    option=option,
                    soon=self.soon,
                    reclaiming=option in reclaiming,
                )
            if not self._quota_could_do(pending, option, eligible):
                continue
            if not self._room_could_do(pending, request, option):
                self._hopeless.add(option)
                continue
            wait = self._search(pending, request, option, eligible)
            if wait is not None:
                self._promise(pending, wait)
                return wait
            if eligible is None:
                self._stuck[option] = self._preemptors
        return None

    def _may_come_free(self, option: Option) -> bool:
        """Whether something leaves, or was evicted since the option was last found not to fit."""
        return self._leaving and self._stuck.get(option) != self._preemptors

    def _search(
        self, pending: PendingView, request: Request, option: Option, eligible: Eligible | None
    ) -> Wait | None:
        """Try each cluster, then take the best; with one cluster, take it at once."""
        clusters = clusters_for(draft=self.soon, request=request, option=option)
        tried: list[tuple[int, list[Harm], ClusterId]] = []
        for cluster in clusters:
            mark = self.soon.checkpoint()
            search = Search(self.soon, pending, request, option, cluster, eligible)
            wait = search.run(self._policy.max_victims)
            if wait is None:
                continue
            if len(clusters) == 1:
                return wait
            self.soon.rollback(mark)
            tried.append((len(wait.victims), [v.harm for v in wait.victims], cluster))
        if not tried:
            return None
        best = Search(self.soon, pending, request, option, min(tried)[2], eligible)
        return best.run(self._policy.max_victims)

    def _promise(self, pending: PendingView, wait: Wait) -> None:
        for victim in wait.victims:
            self.candidates.forget(victim.held)
        if wait.victims:
            self._leaving = True
            self._preemptors += 1
        if self._bare is not None:
            for place in wait.places:
                self._bare.add(project=pending.project, holder=place)

    def _quota_could_do(
        self, pending: PendingView, option: Option, eligible: Eligible | None
    ) -> bool:
        """Whether the quota would do if all victims went: a quick no."""
        for flavor, asked in option.needs:
            available = self.soon.book.available(project=pending.project, flavor=flavor)
            if available is None:
                return False
            if available < asked and eligible is not None:
                victims = eligible.with_flavor(flavor)
                available += sum(victim.held.amounts[flavor] for victim in victims)
            if available < asked:
                return False
        return True

    def _room_could_do(self, pending: PendingView, request: Request, option: Option) -> bool:
        """Whether it fits if everything that may be evicted goes: a quick no."""
        if self._bare is None:
            self._bare = self._draft(lambda held: not (held.releasing or held.preemptible))
        return any(would_place(draft=self._bare, pending=pending, request=request, option=option))

    def _draft(self, stays: Callable[[HoldingView], bool]) -> Draft:
        staying = [held for held in self._snapshot.holding if stays(held)]
        draft = Draft(snapshot=self._snapshot, holding=staying)
        for project, place in self._taken:
            draft.add(project=project, holder=place)
        return draft
