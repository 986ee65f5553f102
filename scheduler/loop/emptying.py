"""Who holds devices of a node that is to be cut anew, and asking those for their end who may be
asked. What may not be preempted ends by itself."""

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from clusters.models import Node
from scheduler.core.lifecycle import UNDER_WAY, State
from scheduler.models import PlacementSpan, Recut, Workload
from scheduler.services import stops
from scheduler.services.transition import Step, transition

ACTOR = "system:scheduler"


def holders(*, node: Node) -> list[str]:
    """The names of the workloads that hold a device there, three at most."""
    return list(_holding(node).order_by("name").values_list("name", flat=True)[:3])


def can_empty(*, node: Node) -> bool:
    """Whether all that holds a device there may be preempted, or is on its way out."""
    return not _holding(node).filter(state__in=UNDER_WAY, preemptible=False).exists()


def evict(*, row: Recut, at: datetime, speed: float = 1.0) -> int:
    """Preempt what may be, whole; how many workloads. `speed` is how many seconds of `at` pass in
    one."""
    found = list(_holding(row.node).filter(state__in=UNDER_WAY, preemptible=True).order_by("id"))
    if not found:
        return 0
    why = f"the node {row.node.name} is cut anew, as {row.planned_by} planned"
    with transaction.atomic():
        moved = transition(
            [
                Step(
                    each.id,
                    each.project_id,
                    State(each.state),
                    State.PREEMPTING,
                    why,
                    version=each.version,
                )
                for each in found
            ],
            actor=ACTOR,
            actor_name="scheduler",
            at=at,
        )
        stops.evict(workload_ids=sorted(moved), at=at, speed=speed)
    return len(moved)


def _holding(node: Node) -> QuerySet[Workload]:
    live = PlacementSpan.objects.filter(device__node=node, released_at__isnull=True)
    return Workload.objects.filter(id__in=live.values("placement__workload_id"))
