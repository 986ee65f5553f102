"""Plan → rows. The only place that creates placements; each gang is all or nothing.

Admissions go in batches, one short transaction each: fence, room asked for again on fresh rows,
quotas locked, compare-and-set, placements. What a constraint refuses is found by halving,
and left for the next cycle.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import perf_counter
from uuid import UUID

from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.backends.postgresql.psycopg_any import NumericRange

from controlplane.kernel import hints
from controlplane.kernel.crash import crash
from scheduler.core.fit import Room, let_in
from scheduler.core.lifecycle import State
from scheduler.core.plan import Admit, Hold, Plan, Preempt
from scheduler.core.reasons import PreemptRule, Reason, describe
from scheduler.core.units import WorkloadId
from scheduler.loop import load
from scheduler.loop.lease import Lease, fence
from scheduler.loop.load import Loaded
from scheduler.models import (
    Attempt,
    Operation,
    OperationKind,
    Placement,
    PlacementSpan,
    WorkloadEvent,
)
from scheduler.selectors import fleet
from scheduler.services.transition import Step, transition
from scheduler.services.workloads import stop_attempts
from tenants.services import usage

logger = logging.getLogger(__name__)

ACTOR = "system:scheduler"
BATCH = 50
"""Workloads a transaction. It holds its quotas' rows to its end, and observe waits for them."""
BUDGET_S = 0.4
"""Real seconds after which no further batch is begun: what is left goes to the next cycle, so that
none outlives its lease however slow the database is."""
REASON_AGE = timedelta(seconds=30)
"""A reason is written again when it is older, so that none shown is older than a minute (P14)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became true. `refused` were planned and did not fit the rows any more; `left` is how
    many admissions were not tried for lack of time."""

    admitted: frozenset[WorkloadId]
    refused: tuple[WorkloadId, ...]
    left: int
    preempted: frozenset[WorkloadId]


def apply(
    *, lease: Lease, loaded: Loaded, plan: Plan, at: datetime, speed: float = 1.0
) -> Outcome:
    """Carry the plan into the database. Raises lease.Fenced when another scheduler has taken over;
    what was applied before that stands."""
    admitted: set[WorkloadId] = set()
    projects = {w.id: UUID(w.project) for w in loaded.snapshot.pending}
    begun, tried = perf_counter(), 0
    while tried < len(plan.admits) and perf_counter() - begun < BUDGET_S:
        batch = plan.admits[tried : tried + BATCH]
        admitted |= _admit(lease, loaded, batch, projects, at)
        tried += len(batch)
    preempted = _preempt(lease, loaded, plan.preempts, at)
    _hold(lease, loaded, plan.holds, at, REASON_AGE * speed)
    refused = tuple(a.workload for a in plan.admits[:tried] if a.workload not in admitted)
    return Outcome(frozenset(admitted), refused, len(plan.admits) - tried, preempted)


def _admit(
    lease: Lease,
    loaded: Loaded,
    batch: Sequence[Admit],
    projects: dict[WorkloadId, UUID],
    at: datetime,
) -> set[WorkloadId]:
    try:
        with transaction.atomic():
            fence(lease)
            admitted = _admit_batch(lease, loaded, batch, projects, at)
        crash("B4")
        return admitted
    except (IntegrityError, OperationalError, usage.MissingQuota) as error:
        # A race into an exclusion constraint may end as a deadlock instead of a refusal.
        if isinstance(error, OperationalError) and _sqlstate(error) not in _RACES:
            raise
        if len(batch) == 1:
            logger.warning("workload %s not admitted: %s", batch[0].workload, error)
            return set()
    middle = len(batch) // 2
    return _admit(lease, loaded, batch[:middle], projects, at) | _admit(
        lease, loaded, batch[middle:], projects, at
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
    fitting = _still_fitting(loaded, batch)
    usage.lock(_amounts(fitting, projects))
    moved = transition(
        [
            Step(
                UUID(admit.workload),
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
    made = [admit for admit in fitting if UUID(admit.workload) in moved]
    usage.add(_amounts(made, projects))
    attempts = {
        admit.workload: Attempt(
            workload_id=UUID(admit.workload),
            number=loaded.waiting[admit.workload].attempts + 1,
            cluster_id=UUID(admit.cluster),
            epoch=lease.epoch,
            created_at=at,
        )
        for admit in made
    }
    Attempt.objects.bulk_create(attempts.values())
    crash("B3")
    _insert_placements(made, attempts, at)
    Operation.objects.bulk_create(
        Operation(attempt=attempt, kind=OperationKind.START) for attempt in attempts.values()
    )
    if made:
        hints.hint(hints.DISPATCH)
    return {admit.workload for admit in made}


def _amounts(
    admits: Iterable[Admit], projects: dict[WorkloadId, UUID]
) -> dict[tuple[UUID, UUID], int]:
    amounts: Counter[tuple[UUID, UUID]] = Counter()
    for admit in admits:
        for place in admit.places:
            amounts[projects[admit.workload], UUID(place.flavor)] += place.amount_milli
    return dict(amounts)


def _still_fitting(loaded: Loaded, batch: Sequence[Admit]) -> list[Admit]:
    """The gangs that fit on the rows as they are now, in order, each beside those before it."""
    wanted = {place.node for admit in batch for place in admit.places}
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

    return [admit for admit in batch if let_in(places=admit.places, rooms=rooms, flavors=flavors)]


def _insert_placements(
    admits: Sequence[Admit], attempts: dict[WorkloadId, Attempt], at: datetime
) -> None:
    placements, spans = [], []
    for admit in admits:
        attempt = attempts[admit.workload]
        for place in admit.places:
            placement = Placement(
                workload_id=attempt.workload_id,
                attempt=attempt,
                pod_set_id=UUID(place.pod_set),
                rank=place.rank,
                node_id=UUID(place.node),
                flavor_id=UUID(place.flavor),
                amount_milli=place.amount_milli,
                cpu_milli=place.cpu_milli,
                memory_mib=place.memory_mib,
                pod_name=f"w{attempt.workload_id.hex}-{attempt.number}-{place.rank}",
                created_at=at,
            )
            placements.append(placement)
            spans += [
                PlacementSpan(
                    placement=placement,
                    device_id=UUID(device),
                    span=NumericRange(span.start, span.end),
                )
                for device, span in place.spans
            ]
    Placement.objects.bulk_create(placements)
    PlacementSpan.objects.bulk_create(spans)


_RULES = {
    PreemptRule.PRIORITY: "for work of higher priority in the same project",
    PreemptRule.RECLAIM: "because its project borrowed what another project is guaranteed",
}


def _preempt(
    lease: Lease, loaded: Loaded, preempts: Sequence[Preempt], at: datetime
) -> frozenset[WorkloadId]:
    """Mark the victims and ask for their pods' end. Their capacity is held until that is seen."""
    if not preempts:
        return frozenset()
    projects = {w.id: UUID(w.project) for w in loaded.snapshot.holding}
    rules = {UUID(preempt.victim): preempt for preempt in preempts}
    with transaction.atomic():
        fence(lease)
        moved = transition(
            [
                Step(
                    workload_id,
                    projects[preempt.victim],
                    loaded.states[preempt.victim],
                    State.PREEMPTING,
                    f"preempted {_RULES[preempt.rule]}",
                )
                for workload_id, preempt in rules.items()
            ],
            actor=ACTOR,
            actor_name="scheduler",
            at=at,
        )
        WorkloadEvent.objects.bulk_create(
            WorkloadEvent(
                workload_id=id,
                at=at,
                kind="preempted",
                message=f"rule: {rules[id].rule.value}",
            )
            for id in moved
        )
        crash("E1")
        stop_attempts(workload_ids=sorted(moved))
    return frozenset(rules[id].victim for id in moved)


def _hold(
    lease: Lease, loaded: Loaded, holds: Sequence[Hold], at: datetime, stale: timedelta
) -> None:
    """Write the reasons that changed in kind, or are getting old."""
    fresh = []
    for hold in holds:
        known = loaded.waiting[hold.workload]
        old = known.reason_at is None or at - known.reason_at > stale
        if old or known.reason_code != hold.reason.code:
            fresh.append(hold)
    if not fresh:
        return
    # Workloads of one class share a reason, so the texts are few.
    texts = {reason: _as_json(reason) for reason in {hold.reason for hold in fresh}}
    with transaction.atomic(), connection.cursor() as cursor:
        fence(lease)
        cursor.execute(
            "UPDATE scheduler_workload w SET reason = r.reason::jsonb, reason_at = %s"
            " FROM unnest(%s::uuid[], %s::text[]) AS r(id, reason)"
            " WHERE w.id = r.id AND w.state = 'PENDING'",
            [at, [UUID(hold.workload) for hold in fresh], [texts[hold.reason] for hold in fresh]],
        )


def _as_json(reason: Reason) -> str:
    value = {"code": reason.code, "numbers": dict(reason.numbers), "text": describe(reason)}
    return json.dumps(value)
