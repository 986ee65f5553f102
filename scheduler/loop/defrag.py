"""Planned defragmentations → moves, in their windows, by what the rows are then.

What was shown when one was planned is not kept: it is worked out anew, so that nothing is moved
which no longer helps. What moves is kept its places, as for any move.
"""

import logging
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from controlplane.audit import services as audit
from scheduler.core.defragment import Proposal, defragment
from scheduler.core.lifecycle import State
from scheduler.core.units import ONE_MILLI, ClusterId
from scheduler.loop import landings
from scheduler.loop import lease as leases
from scheduler.models import Defragmentation, Workload
from scheduler.selectors import checks
from scheduler.selectors.load import Loaded, load
from scheduler.services import stops
from scheduler.services.transition import Step, transition

logger = logging.getLogger(__name__)

ACTOR, NAME = "system:scheduler", "scheduler"


def carry_out(*, shard: str, at: datetime, speed: float = 1.0) -> int:
    """The one that is due first, unless moves are under way, admission is stopped, or a cycle is
    being planned elsewhere; how many workloads move. One query when none is due."""
    if not _due(at).exists() or checks.admission_stopped():
        return 0
    lease = leases.acquire(shard=shard)
    if lease is None:
        return 0
    try:
        loaded = load(at=at)
        with transaction.atomic():
            leases.fence(lease)
            _due(at).filter(ends_at__lte=at).update(ended_at=at, outcome={})
            row = _due(at).select_related("cluster").order_by("starts_at", "id").first()
            if row is None or loaded.snapshot.landings:
                return 0
            return _carry_out(row, loaded, at, speed)
    except leases.Fenced as fenced:
        logger.warning("defragmentation put off: %s", fenced.message)
        return 0
    finally:
        leases.release(lease)


def _due(at: datetime) -> QuerySet[Defragmentation]:
    return Defragmentation.objects.filter(ended_at__isnull=True, starts_at__lte=at)


def _carry_out(row: Defragmentation, loaded: Loaded, at: datetime, speed: float) -> int:
    made = defragment(
        snapshot=loaded.snapshot,
        cluster=ClusterId(str(row.cluster_id)),
        budget_milli_s=row.budget_s * ONE_MILLI,
    )
    moved = _move(row, made, loaded, at, speed)
    row.ended_at = at
    row.outcome = {
        "moved": [str(id) for id in moved],
        "left_out": [
            step.landing.workload
            for step in made.steps
            if UUID(step.landing.workload) not in moved
        ],
        "lost_s": -(-made.lost_milli_s // ONE_MILLI),
        "free_nodes": [made.before.free_nodes, made.after.free_nodes],
        "slices": [made.before.slices, made.after.slices],
    }
    row.save(update_fields=["ended_at", "outcome"])
    audit.record(
        actor=ACTOR,
        actor_name=NAME,
        at=at,
        entries=[
            audit.Entry(
                action="defragmentation.carried-out",
                target_type="cluster",
                target_id=row.cluster_id,
                after=row.outcome | {"planned_by": row.planned_by},
            )
        ],
    )
    return len(moved)


def _move(
    row: Defragmentation, made: Proposal, loaded: Loaded, at: datetime, speed: float
) -> list[UUID]:
    """Stop those that are still where the proposal has them, and keep their places."""
    projects = {held.id: UUID(held.project) for held in loaded.snapshot.holding}
    why = f"moved by the planned defragmentation of {row.cluster.name}"
    moved = sorted(
        transition(
            [
                Step(
                    UUID(step.landing.workload),
                    projects[step.landing.workload],
                    loaded.states[step.landing.workload],
                    State.PREEMPTING,
                    f"{why}, planned by {row.planned_by}: it starts again elsewhere at once",
                )
                for step in made.steps
            ],
            actor=ACTOR,
            actor_name=NAME,
            at=at,
        )
    )
    stops.evict(workload_ids=moved, at=at, speed=speed)
    landings.write(
        before=(),
        after=[step.landing for step in made.steps if UUID(step.landing.workload) in moved],
    )
    Workload.objects.filter(id__in=moved).update(moved_at=at)
    return moved
