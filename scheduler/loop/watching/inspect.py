"""Fetching what a cluster says of a pod, where the private keys are."""

import logging
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from time import monotonic
from uuid import UUID

from clusters.credential import BadCredential
from clusters.port import ClusterError, ClusterPort, Fault
from scheduler.models import Inspection, Placement
from scheduler.selectors import caught
from scheduler.services import inspections

logger = logging.getLogger(__name__)

_NO_POD = "Its pod is not made yet."
_CUT_SHORT = "Fetching it was cut short: ask again, or tell who runs Berth."
_NO_RIGHT = (
    "Berth may not read them in {cluster}: who operates it can let it, by what"
    " `manage.py cluster_manifest --logs` prints."
)


def inspect(
    *,
    cluster_id: UUID,
    connect: Callable[[str], ClusterPort],
    at: Callable[[], datetime],
    turn_s: float,
) -> bool:
    """Those of pods there, the first that was asked for first, for about that long. Whether the
    cluster answered; where it did not, all that wait are told so."""
    ends = monotonic() + turn_s
    while monotonic() < ends:
        row = inspections.under_way(cluster_id=cluster_id).first()
        if row is None:
            return True
        if why := _inspect(row, connect=connect, at=at):
            for other in inspections.under_way(cluster_id=cluster_id):
                inspections.end(other, at=at(), events_why=why, log_why=why)
            return False
    return True


def _inspect(
    row: Inspection, *, connect: Callable[[str], ClusterPort], at: Callable[[], datetime]
) -> str:
    """Events and log, each for itself: the one is told where the other can't be read. Why the
    cluster could not be reached, if so."""
    rows = Placement.objects.select_related("attempt__cluster", "workload__project")
    placement = caught.named(rows).get(id=row.placement_id)
    if not placement.pod_uid:
        inspections.end(row, at=at(), events_why=_NO_POD, log_why=_NO_POD)
        return ""
    cluster = placement.attempt.cluster.name
    try:
        port = connect(cluster)
    except BadCredential:
        why = f"Berth can't sign in to {cluster}."
        inspections.end(row, at=at(), events_why=why, log_why=why)
        return ""
    namespace, uid = placement.workload.project.namespace, placement.pod_uid
    name = getattr(placement, "pod")  # noqa: B009  # an annotation, unknown to the class
    events: list[dict[str, object]] = []
    events_why = log_why = _CUT_SHORT
    log = None
    unreached = ""
    try:
        try:
            for one in port.read_events(namespace=namespace, uid=uid):
                events.append(asdict(one) | {"at": one.at.isoformat() if one.at else None})
            events_why = ""
        except ClusterError as error:
            events_why = _why(error, cluster=cluster)
            if error.fault is Fault.UNREACHABLE:
                unreached = log_why = events_why
                return unreached
        try:
            log = port.read_log(namespace=namespace, name=name, uid=uid)
            log_why = ""
        except ClusterError as error:
            log_why = _why(error, cluster=cluster)
            if error.fault is Fault.UNREACHABLE:
                unreached = log_why
    finally:  # whatever cuts it short, the time limit for one: what was read is told
        inspections.end(
            row, at=at(), events=events, events_why=events_why, log=log, log_why=log_why
        )
    return unreached


def _why(error: ClusterError, *, cluster: str) -> str:
    """For people of the project. What the cluster says of Berth's own rights is not theirs."""
    if error.fault is Fault.FORBIDDEN:
        return _NO_RIGHT.format(cluster=cluster)
    if error.fault is Fault.NOT_FOUND:
        return "The pod is gone from its cluster."
    return str(error)[:500]
