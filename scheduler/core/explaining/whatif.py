"""What the plan would be if one thing were otherwise: the request, a quota, the time."""

from collections.abc import Callable
from dataclasses import replace

from scheduler.core.bounds.budgets import used_since
from scheduler.core.cycle import plan
from scheduler.core.held.runs import ends_at
from scheduler.core.held.victims import Held, Victim, loss_milli_s
from scheduler.core.node.isolation import is_enough
from scheduler.core.plan import Admit, Hold
from scheduler.core.policy import Policy
from scheduler.core.quota.equivalents import Parts
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import Isolation, PendingView, QueueView, QuotaView, Snapshot
from scheduler.core.units import BudgetId, CohortId, FlavorId, ProjectId, WorkloadId

MOST_PLANS = 32
"""In all, for one workload."""


def would_start(snapshot: Snapshot, policy: Policy, pending: PendingView) -> Admit | Hold:
    """What the plan would be for `pending` if it were submitted now, or were so instead."""
    return plan(_with(snapshot, pending), policy).decision(pending.id)


def _with(snapshot: Snapshot, pending: PendingView) -> Snapshot:
    others = tuple(waiting for waiting in snapshot.pending if waiting.id != pending.id)
    return replace(snapshot, pending=(*others, pending))


class Trials:
    """Such plans, at most MOST_PLANS of them, and none once the caller says that it is `late`."""

    def __init__(self, *, snapshot: Snapshot, policy: Policy, late: Callable[[], bool]) -> None:
        self._snapshot = snapshot
        self._policy = policy
        self._late = late
        self._plans = 0

    @property
    def is_spent(self) -> bool:
        """Whether no further plan may be made."""
        return self._plans >= MOST_PLANS or self._late()

    def decide(self, asks: PendingView, of: Snapshot | None = None) -> Admit | Hold | None:
        """As `would_start`, of another fleet where one is given; None once it is spent."""
        if self.is_spent:
            return None
        self._plans += 1
        return would_start(of or self._snapshot, self._policy, asks)

    def lost_by_moves(self, asks: PendingView, budget_milli_s: int) -> tuple[int, int] | None:
        """What moves for it loses, and all that the plan moves, in thousandths of devices x
        seconds, where one plan may lose so much; None where nothing moves for it, and once it is
        spent."""
        if self.is_spent:
            return None
        self._plans += 1
        policy = replace(self._policy, consolidation_budget_milli_s=budget_milli_s)
        made = plan(_with(self._snapshot, asks), policy)
        rule = PreemptRule.CONSOLIDATE
        movers = {p.victim: p.preemptor for p in made.preempts if p.rule is rule}
        parts = Parts(flavors=self._snapshot.flavors, queues=self._snapshot.queues)
        victims: dict[WorkloadId, Victim] = {}
        for holding in self._snapshot.holding:
            if holding.id in movers:
                held = Held(holding, parts=parts)
                held.settle(self._snapshot.at)
                victims[holding.id] = Victim.of(held, rule)
        own = [victim for id, victim in victims.items() if movers[id] == asks.id]
        return (loss_milli_s(own), loss_milli_s(victims.values())) if own else None

    def starts(self, asks: PendingView, of: Snapshot | None = None) -> bool:
        """False too once it is spent."""
        return isinstance(self.decide(asks, of), Admit)

    def most(self, least: int, most: int, of: Callable[[int], PendingView]) -> int | None:
        """The largest number with which it starts, if what is less starts too; None when not even
        the least does."""
        if not self.starts(of(least)):
            return None
        while least < most and not self.is_spent:
            middle = (least + most + 1) // 2
            least, most = (middle, most) if self.starts(of(middle)) else (least, middle - 1)
        return least

    def least(self, asks: PendingView, most: int, of: Callable[[int], Snapshot]) -> int:
        """The smallest number that makes a fleet in which it starts, if what is more does too; of
        `most` that is known, and is the answer where one less does not, at the cost of a plan."""
        if not self.starts(asks, of(most - 1)):
            return most
        less, most = 0, most - 1
        while most - less > 1 and not self.is_spent:
            middle = (less + most) // 2
            less, most = (less, middle) if self.starts(asks, of(middle)) else (middle, most)
        return most


def later(snapshot: Snapshot, time: int) -> Snapshot:
    """The fleet then, if nothing new starts: without what has ended by its run-time limit, and
    without what is being given back. Budgets in safe mode are charged for what ran meanwhile."""
    stays = tuple(
        held
        for held in snapshot.holding
        if not held.releasing and ((end := ends_at(held, snapshot.at)) is None or end > time)
    )
    then = replace(snapshot, at=time, holding=stays)
    return replace(then, budgets=used_since(snapshot, then)) if snapshot.budgets else then


def granted(snapshot: Snapshot, project: ProjectId, flavor: FlavorId, milli: int) -> Snapshot:
    """The same fleet when the project's nominal quota is so much larger."""
    none = QuotaView(flavor, 0, borrowing_limit_milli=0)
    quotas = (
        quota for queue in snapshot.queues if queue.project == project for quota in queue.quotas
    )
    there = next((quota for quota in quotas if quota.flavor == flavor), none)
    return requoted(snapshot, project, replace(there, nominal_milli=there.nominal_milli + milli))


def requoted(snapshot: Snapshot, project: ProjectId, quota: QuotaView) -> Snapshot:
    """The same fleet when that is the project's quota of its flavor."""
    queues = (
        _with_quota(queue, quota) if queue.project == project else queue
        for queue in snapshot.queues
    )
    return replace(snapshot, queues=tuple(queues))


def weighted(snapshot: Snapshot, of: ProjectId | CohortId, weight: int) -> Snapshot:
    """The same fleet when that project or cohort has another weight among its siblings."""
    return replace(
        snapshot,
        queues=tuple(
            replace(queue, weight=weight) if queue.project == of else queue
            for queue in snapshot.queues
        ),
        cohorts=tuple(
            replace(cohort, weight=weight) if cohort.id == of else cohort
            for cohort in snapshot.cohorts
        ),
    )


def funded(snapshot: Snapshot, id: BudgetId, milli_s: int) -> Snapshot:
    """The same fleet when that budget is so much larger."""
    return replace(
        snapshot,
        budgets=tuple(
            replace(budget, limit_milli_s=budget.limit_milli_s + milli_s)
            if budget.id == id
            else budget
            for budget in snapshot.budgets
        ),
    )


def accepting(
    snapshot: Snapshot, pending: PendingView, isolation: Isolation
) -> tuple[PendingView, Snapshot]:
    """Both when neither the workload nor its project asks for more isolation than that."""
    pod_sets = (
        p if is_enough(given=isolation, least=p.least_isolation)
        else replace(p, least_isolation=isolation)
        for p in pending.pod_sets
    )  # fmt: skip
    queues = (
        replace(queue, least_isolation=isolation)
        if queue.project == pending.project
        and not is_enough(given=isolation, least=queue.least_isolation)
        else queue
        for queue in snapshot.queues
    )
    asks = replace(pending, pod_sets=tuple(pod_sets))
    return asks, replace(snapshot, queues=tuple(queues))


def _with_quota(queue: QueueView, quota: QuotaView) -> QueueView:
    if all(each.flavor != quota.flavor for each in queue.quotas):
        return replace(queue, quotas=(*queue.quotas, quota))
    return replace(
        queue,
        quotas=tuple(quota if each.flavor == quota.flavor else each for each in queue.quotas),
    )
