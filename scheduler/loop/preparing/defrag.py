"""Planned defragmentations → moves, in their windows, by what the rows are then.

What was shown when one was planned is not kept: it is worked out anew, so that nothing is moved
which no longer helps. What moves is kept its places, as for any move. One that cannot be worked
out has failed, and keeps nothing else from going on.
"""

import logging
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from controlplane.audit import services as audit
from scheduler.core.lifecycle import State
from scheduler.core.moving.defragment import Proposal, defragment
from scheduler.core.units import ONE_MILLI, ClusterId
from scheduler.loop import lease as leases
from scheduler.loop.applying import landings
from scheduler.models import Defragmentation, Landing, Workload
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
        _due(at).filter(ends_at__lte=at).update(ended_at=at, outcome={})
        if Landing.objects.exists() or not _due(at).exists():
            return 0
        loaded = load(at=at)
        with transaction.atomic():
            leases.fence(lease)
            row = _due(at).select_related("cluster").order_by("starts_at", "id").first()
            return 0 if row is None else _carry_out(row, loaded, at, speed)
    except leases.Fenced as fenced:
        logger.warning("defragmentation put off: %s", fenced.message)
        return 0
    finally:
        leases.release(lease)


def _due(at: datetime) -> QuerySet[Defragmentation]:
    return Defragmentation.objects.filter(ended_at__isnull=True, starts_at__lte=at)


def _carry_out(row: Defragmentation, loaded: Loaded, at: datetime, speed: float) -> int:
    try:
        made = defragment(
            snapshot=loaded.snapshot,
            cluster=ClusterId(str(row.cluster_id)),
            budget_milli_s=row.budget_s * ONE_MILLI,
        )
    except Exception as error:  # whatever it is, the cycle after it goes on
        logger.exception("the defragmentation of %s has failed", row.cluster.name)
        _end(row, at, "failed", {"failed": repr(error)})
        return 0
    moved = _move(row, made, loaded, at, speed)
    outcome = {
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
    _end(row, at, "carried-out", outcome)
    return len(moved)


def _end(row: Defragmentation, at: datetime, what: str, outcome: dict[str, object]) -> None:
    row.ended_at, row.outcome = at, outcome
    row.save(update_fields=["ended_at", "outcome"])
    audit.record(
        actor=ACTOR,
        actor_name=NAME,
        at=at,
        entries=[
            audit.Entry(
                action=f"defragmentation.{what}",
                target_type="cluster",
                target_id=row.cluster_id,
                after=outcome | {"planned_by": row.planned_by},
            )
        ],
    )


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
