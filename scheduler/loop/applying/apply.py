"""Plan → rows. The only place that creates placements; each gang is all or nothing.

Admissions go in batches, one short transaction each: fence, room and the caps of arrays asked for
again on fresh rows, quotas locked, compare-and-set, placements. What a constraint refuses is found
by halving, and left for the next cycle.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import perf_counter
from uuid import UUID

from django.db import IntegrityError, OperationalError, transaction

from controlplane.kernel import bulk, hints, statements
from controlplane.kernel.crash import crash
from controlplane.kernel.ids import uuid7s
from scheduler.core.lifecycle import State
from scheduler.core.node.fit import Room, let_in
from scheduler.core.plan import Admit, Grow, Landing, Plan, Preempt
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import BudgetView
from scheduler.core.units import FlavorId, WorkloadId
from scheduler.loop.applying import arrays, holds, landings, used_up
from scheduler.loop.lease import Lease, fence
from scheduler.models import (
    Attempt,
    Operation,
    OperationKind,
    Placement,
    PlacementSpan,
    Workload,
    WorkloadEvent,
)
from scheduler.selectors import choices, fleet, load
from scheduler.selectors.load import Loaded
from scheduler.services import stops
from scheduler.services.transition import Step, transition
from tenants.selectors import queues
from tenants.services import usage

logger = logging.getLogger(__name__)

ACTOR = "system:scheduler"
BATCH = 500
"""Workloads a transaction. It holds its quotas' rows to its end, and observe waits for them."""
BUDGET_S = 0.4
"""Real seconds after which no further batch is begun: what is left goes to the next cycle, so that
none outlives its lease however slow the database is."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became true. `refused` were planned and did not fit the rows any more; `left` is how
    many admissions were not tried for lack of time. `told`: who waits is told another kind of
    reason than before, or its first."""

    admitted: frozenset[WorkloadId]
    refused: tuple[WorkloadId, ...]
    left: int
    preempted: frozenset[WorkloadId]
    told: bool


def apply(
    *, lease: Lease, loaded: Loaded, plan: Plan, at: datetime, speed: float = 1.0
) -> Outcome:
    """Carry the plan into the database. Raises lease.Fenced when another scheduler has taken over;
    what was applied before that stands."""
    admitted: set[WorkloadId] = set()
    planned = {admit.workload for admit in plan.admits}
    ids = {queue.project: UUID(queue.project) for queue in loaded.snapshot.queues}
    projects = {w.id: ids[w.project] for w in loaded.snapshot.pending if w.id in planned}
    begun, tried = perf_counter(), 0
    while tried < len(plan.admits) and perf_counter() - begun < BUDGET_S:
        batch = plan.admits[tried : tried + BATCH]
        admitted |= by_halves(
            lease, batch, lambda some: _admit_batch(lease, loaded, some, projects, at)
        )
        tried += len(batch)
    refused = tuple(a.workload for a in plan.admits[:tried] if a.workload not in admitted)
    late = planned - admitted
    # Who should have landed and has not keeps its places: the next plan looks at them again.
    kept = [landing for landing in loaded.snapshot.landings if landing.workload in late]
    preempted = _preempt(lease, loaded, plan, (*plan.landings, *kept), at, speed)
    told = holds.write(lease=lease, waiting=loaded.waiting, holds=plan.holds, at=at, speed=speed)
    return Outcome(frozenset(admitted), refused, len(plan.admits) - tried, preempted, told)


def by_halves[T: (Admit, Grow)](
    lease: Lease, batch: Sequence[T], carry_out: Callable[[Sequence[T]], set[WorkloadId]]
) -> set[WorkloadId]:
    """What `carry_out` made true of the batch, in one transaction, or in several less what the
    constraints refuse."""
    try:
        with transaction.atomic():
            fence(lease)
            done = carry_out(batch)
        crash("B4")
        return done
    except (IntegrityError, OperationalError, usage.MissingQuota) as error:
        # A race into an exclusion constraint may end as a deadlock instead of a refusal.
        if isinstance(error, OperationalError) and _sqlstate(error) not in _RACES:
            raise
        if len(batch) == 1:
            logger.warning("workload %s gets no places: %s", batch[0].workload, error)
            return set()
    middle = len(batch) // 2
    return by_halves(lease, batch[:middle], carry_out) | by_halves(
        lease, batch[middle:], carry_out
    )


_RACES = {"40001", "40P01"}  # serialization failure, deadlock


def _sqlstate(error: OperationalError) -> str:
    return getattr(error.__cause__, "sqlstate", None) or ""


def _admit_batch(
    lease: Lease,
    loaded: Loaded,
    batch: Sequence[Admit],
    projects: dict[WorkloadId, UUID],
    at: datetime,
) -> set[WorkloadId]:
    # The fence keeps other schedulers out, so room can only have grown by the time of the lock.
    allowed = arrays.within(still_open(batch, projects), loaded.waiting)
    fitting = still_fitting(loaded, allowed)
    usage.lock(amounts(fitting, projects))
    ids = {admit.workload: UUID(admit.workload) for admit in fitting}
    moved = transition(
        [
            Step(
                ids[admit.workload],
                projects[admit.workload],
                State.PENDING,
                State.ADMITTED,
                version=loaded.waiting[admit.workload].version,
            )
            for admit in fitting
        ],
        actor=ACTOR,
        actor_name="scheduler",
        at=at,
    )
    made = [admit for admit in fitting if ids[admit.workload] in moved]
    usage.add(amounts(made, projects))
    workloads = [ids[admit.workload] for admit in made]
    numbers = [loaded.waiting[admit.workload].attempts + 1 for admit in made]
    attempts, named = uuid7s(len(made)), choices.naming(loaded.snapshot)
    bulk.insert(
        Attempt,
        id=attempts,
        workload_id=workloads,
        number=numbers,
        cluster_id=[admit.cluster for admit in made],
        choice=[named(admit.choice) for admit in made],
        ahead_of=[list(admit.ahead_of) for admit in made],
        epoch=lease.epoch,
        created_at=at,
    )
    crash("B3")
    insert_placements(made, attempts, numbers, at)
    bulk.insert(
        Operation,
        id=uuid7s(len(made)),
        attempt_id=attempts,
        kind=OperationKind.START.value,
    )
    for cluster in sorted({admit.cluster for admit in made}):
        hints.hint(hints.DISPATCH_CLUSTER, cluster_id=cluster)
    return {admit.workload for admit in made}


def amounts[T: (Admit, Grow)](
    batch: Iterable[T], projects: dict[WorkloadId, UUID]
) -> dict[tuple[UUID, UUID], int]:
    """What they hold of quotas, by project and flavor."""
    found: Counter[tuple[UUID, FlavorId]] = Counter()
    for each in batch:
        for place in each.places:
            found[projects[each.workload], place.flavor] += place.amount_milli
    return {(project, UUID(flavor)): amount for (project, flavor), amount in found.items()}


# What is locked can neither be closed nor opened until the transaction ends; of tenants, clusters
# and pools the whole tables are, as one that is open may have no row yet.
_LOCK = "LOCK TABLE tenants_tenant, clusters_hardwarequeue IN SHARE MODE"
_OPEN = (
    "WITH RECURSIVE "  # constants
    + queues.CLOSED
    + """
SELECT p.id FROM tenants_project p JOIN closed c ON c.id = p.tenant_id
WHERE p.id = ANY(%s) AND p.queue_state = 'open' AND p.quota_frozen_at IS NULL
  AND c.above = '{}'
ORDER BY p.id FOR NO KEY UPDATE OF p
"""
)


def still_open[T: (Admit, Grow)](batch: Sequence[T], projects: dict[WorkloadId, UUID]) -> list[T]:
    """Those whose queue nobody has closed since the plan was made, nor can until this is done; nor
    that of the cluster or pool, as `still_fitting` sees it then."""
    with statements.cursor() as cursor:
        cursor.execute(_LOCK)
        cursor.execute(_OPEN, [sorted({projects[each.workload] for each in batch})])
        opened = {id for (id,) in cursor.fetchall()}
    return [each for each in batch if projects[each.workload] in opened]


def still_fitting[T: (Admit, Grow)](loaded: Loaded, batch: Sequence[T]) -> list[T]:
    """What fits on the rows as they are now, in order, each whole beside those before it."""
    wanted = {place.node for each in batch for place in each.places}
    nodes = {
        node.id: (cluster, node)
        for cluster in fleet.clusters()
        for node in cluster.nodes
        if node.id in wanted
    }
    flavors = {flavor.id: flavor for flavor in loaded.snapshot.flavors}
    rooms = {id: Room(node=node) for id, (cluster, node) in nodes.items() if cluster.usable}
    for held in load.held_on(nodes=wanted):
        if held.node in rooms:
            rooms[held.node].take(holder=held, flavor=flavors.get(held.flavor))

    return [each for each in batch if let_in(places=each.places, rooms=rooms, flavors=flavors)]


def insert_placements[T: (Admit, Grow)](
    batch: Sequence[T], attempts: Sequence[UUID], numbers: Sequence[int], at: datetime
) -> None:
    """One row for each place; `attempts` and their `numbers` are those of `batch`, one by one."""
    pods = [
        (place, each.workload, attempt, number)
        for each, attempt, number in zip(batch, attempts, numbers, strict=True)
        for place in each.places
    ]
    ids = uuid7s(len(pods))
    bulk.insert(
        Placement,
        id=ids,
        workload_id=[workload for _, workload, _, _ in pods],
        attempt_id=[attempt for _, _, attempt, _ in pods],
        pod_set_id=[place.pod_set for place, *_ in pods],
        rank=[place.rank for place, *_ in pods],
        node_id=[place.node for place, *_ in pods],
        flavor_id=[place.flavor for place, *_ in pods],
        amount_milli=[place.amount_milli for place, *_ in pods],
        cpu_milli=[place.cpu_milli for place, *_ in pods],
        memory_mib=[place.memory_mib for place, *_ in pods],
        pod_name=[
            f"w{workload.replace('-', '')}-{number}-{place.rank}"
            for place, workload, _, number in pods
        ],
        created_at=at,
    )
    spans = [
        (id, device, f"[{span.start},{span.end})")
        for id, (place, *_) in zip(ids, pods, strict=True)
        for device, span in place.spans
    ]
    bulk.insert(
        PlacementSpan,
        id=uuid7s(len(spans)),
        placement_id=[id for id, _, _ in spans],
        device_id=[device for _, device, _ in spans],
        span=[span for _, _, span in spans],
    )


RULES = {
    PreemptRule.PRIORITY: "for work of higher priority in the same project",
    PreemptRule.RECLAIM: "because its project borrowed what another project is guaranteed",
    PreemptRule.CONSOLIDATE: "to start again elsewhere at once, so that other work has room",
    PreemptRule.BETTER: "to start again at once on a flavor that it prefers, as it asked",
    PreemptRule.QUOTA: "because more is held than its quota allows since that was lowered",
}

MOVES = {PreemptRule.CONSOLIDATE, PreemptRule.BETTER}
"""Who is stopped by these starts again at once."""


def _why(preempt: Preempt, by_budget: Mapping[WorkloadId, Sequence[BudgetView]]) -> str:
    if preempt.victim in by_budget:
        return used_up.why(by_budget[preempt.victim][0])
    return RULES[preempt.rule]


def _preempt(
    lease: Lease,
    loaded: Loaded,
    plan: Plan,
    to_come: Sequence[Landing],
    at: datetime,
    speed: float,
) -> frozenset[WorkloadId]:
    """Mark the victims and ask for their pods' end, after their notice, with what is kept for
    those that are moved. Their capacity is held until that is seen."""
    preempts, before = plan.preempts, loaded.snapshot.landings
    if not preempts and set(to_come) == set(before):
        return frozenset()
    projects = {w.id: UUID(w.project) for w in loaded.snapshot.holding}
    rules = {UUID(preempt.victim): preempt for preempt in preempts}
    by_budget = used_up.by_victim(loaded.snapshot, preempts)
    with transaction.atomic():
        fence(lease)
        moved = transition(
            [
                Step(
                    workload_id,
                    projects[preempt.victim],
                    loaded.states[preempt.victim],
                    State.PREEMPTING,
                    f"preempted {_why(preempt, by_budget)}",
                )
                for workload_id, preempt in rules.items()
            ],
            actor=ACTOR,
            actor_name="scheduler",
            at=at,
        )
        victims = sorted(moved)
        over = (budget for id in victims for budget in by_budget.get(rules[id].victim, ()))
        used_up.mark(over, at=at)
        bulk.insert(
            WorkloadEvent,
            id=uuid7s(len(victims)),
            workload_id=victims,
            at=at,
            kind="preempted",
            message=[f"rule: {rules[id].rule.value}" for id in victims],
        )
        crash("E1")
        stops.evict(workload_ids=victims, at=at, speed=speed)
        landings.write(before=before, after=to_come)
        away = [id for id in victims if rules[id].rule in MOVES]
        if away:
            Workload.objects.filter(id__in=away).update(moved_at=at)
    return frozenset(rules[id].victim for id in moved)
