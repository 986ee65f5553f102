"""Fetching what a cluster says of a pod, where the private keys are."""

import logging
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from uuid import UUID

from clusters.credential import BadCredential
from clusters.port import ClusterError, ClusterPort, Fault
from scheduler.models import Inspection, Placement
from scheduler.selectors import caught
from scheduler.services import inspections

logger = logging.getLogger(__name__)

_NO_POD = "Its pod is not made yet."
_NO_RIGHT = (
    "Berth may not read them in {cluster}: who operates it can let it, by what"
    " `manage.py cluster_manifest --logs` prints."
)


def inspect(
    *, id: UUID, connect: Callable[[str], ClusterPort], at: Callable[[], datetime]
) -> None:
    """Events and log, each for itself: the one is told where the other can't be read. Nothing to
    do for one that has ended, or is forgotten."""
    row = Inspection.objects.filter(id=id, ended_at=None).first()
    if row is None:
        return
    rows = Placement.objects.select_related("attempt__cluster", "workload__project")
    placement = caught.named(rows).get(id=row.placement_id)
    if not placement.pod_uid:
        inspections.end(row, at=at(), events_why=_NO_POD, log_why=_NO_POD)
        return
    cluster = placement.attempt.cluster.name
    try:
        port = connect(cluster)
    except BadCredential:
        why = f"Berth can't sign in to {cluster}."
        inspections.end(row, at=at(), events_why=why, log_why=why)
        return
    namespace, uid = placement.workload.project.namespace, placement.pod_uid
    name = getattr(placement, "pod")  # noqa: B009  # an annotation, unknown to the class
    events: list[dict[str, object]] = []
    events_why = log_why = ""
    log = None
    try:
        for one in port.read_events(namespace=namespace, uid=uid):
            events.append(asdict(one) | {"at": one.at.isoformat() if one.at else None})
    except ClusterError as error:
        events_why = _why(error, cluster=cluster)
    try:
        log = port.read_log(namespace=namespace, name=name, uid=uid)
    except ClusterError as error:
        log_why = _why(error, cluster=cluster)
    inspections.end(row, at=at(), events=events, events_why=events_why, log=log, log_why=log_why)


def _why(error: ClusterError, *, cluster: str) -> str:
    """For people of the project. What the cluster says of Berth's own rights is not theirs."""
    if error.fault is Fault.FORBIDDEN:
        return _NO_RIGHT.format(cluster=cluster)
    if error.fault is Fault.NOT_FOUND:
        return "The pod is gone from its cluster."
    return str(error)[:500]
