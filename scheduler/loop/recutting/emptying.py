"""Who holds devices of a node that is to be cut anew, and asking those for their end who may be
asked. What may not be preempted ends by itself."""

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from clusters.models import Node
from clusters.port import ClusterPort, PodReport
from controlplane.kernel.crash import crash
from scheduler.core.lifecycle import UNDER_WAY, State
from scheduler.models import PlacementSpan, Recut, Workload
from scheduler.services import stops
from scheduler.services.transition import Step, transition

ACTOR = "system:scheduler"


def held(*, port: ClusterPort, row: Recut) -> str:
    """Who holds a device there, three at most, "" for nobody: by the rows, then by a fresh list.
    Raises ClusterError."""
    ours = list(_holding(row.node).order_by("name").values_list("name", flat=True)[:3])
    if ours:
        return f"held by {', '.join(ours)}"
    there = [f"{pod.namespace}/{pod.name}" for pod in _pods(port, row)]
    return f"held by the pod {', '.join(sorted(there)[:3])}" if there else ""


def can_empty(*, port: ClusterPort, row: Recut) -> bool:
    """Nobody is stopped for a node that others keep in use: what may not be preempted and is not
    on its way out, and pods that Berth did not make. Raises ClusterError."""
    if _there(row.node).filter(preemptible=False).exists():
        return False
    return all(pod.workload for pod in _pods(port, row))


def evict(*, row: Recut, at: datetime, speed: float = 1.0) -> int:
    """Preempt what may be, whole; how many workloads. `speed` is how many seconds of `at` pass in
    one."""
    found = list(_there(row.node).filter(preemptible=True).order_by("id"))
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
        crash("R8")
        stops.evict(workload_ids=sorted(moved), at=at, speed=speed)
    crash("R9")
    return len(moved)


def _pods(port: ClusterPort, row: Recut) -> list[PodReport]:
    """Those that hold a device there, by a fresh list."""
    return [
        pod
        for pod in port.list_pods().items
        if pod.node == row.node.name and not pod.phase.ended and any(n for _, n in pod.resources)
    ]


def _holding(node: Node) -> QuerySet[Workload]:
    return Workload.objects.filter(id__in=_spans(node).values("placement__workload_id"))


def _there(node: Node) -> QuerySet[Workload]:
    """Those that hold by what goes on. What ended unseen is on its way out, and its workload may
    run in another cluster by now."""
    live = _spans(node).filter(placement__attempt__ended_at__isnull=True)
    found = Workload.objects.filter(id__in=live.values("placement__workload_id"))
    return found.filter(state__in=UNDER_WAY)


def _spans(node: Node) -> QuerySet[PlacementSpan]:
    return PlacementSpan.objects.filter(device__node=node, released_at__isnull=True)
