"""Inspections of pods: asked for by who sees the workload, made up for where a message got lost,
forgotten soon.

What must not live here: carrying one out (loop/watching/inspect.py).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from clusters.inspection import LogTail
from clusters.models import ClusterState
from controlplane.kernel import hints
from controlplane.kernel.throttle import Throttle
from scheduler.models import Inspection, Placement
from scheduler.models.inspection import KEPT
from tenants.access import Actor

TAKEN_UP_WITHIN = timedelta(minutes=2)
"""Real time."""
ASKED = Throttle(most=30, window=timedelta(minutes=1))
"""Each is some requests to a cluster, and one at a time is carried out there."""
_NOT_TAKEN_UP = "No worker came to it within two minutes: ask again, or tell who runs Berth."
_SILENT = {ClusterState.DEGRADED, ClusterState.LOST}


def ask(*, actor: Actor, placement: Placement, at: datetime) -> Inspection:
    """What its cluster says of the pod, to be fetched soon, in place of what it said before. One
    that is under way is the answer. `placement` is one that the actor sees. Raises TooOften."""
    ASKED.take(who=str(actor.user.id), at=at)
    with transaction.atomic():
        Placement.objects.select_for_update(no_key=True).get(id=placement.id)  # one at a time
        row = Inspection.objects.filter(placement=placement).first()
        if row is None or row.ended_at is not None:
            Inspection.objects.filter(placement=placement).delete()
            row = Inspection.objects.create(placement=placement, asked_at=at, asked_by=actor.name)
            cluster = placement.attempt.cluster
            if cluster.state in _SILENT:
                why = f"{cluster.name} does not answer now."
                end(row, at=at, events_why=why, log_why=why)
                row.refresh_from_db()
            else:
                hints.hint(hints.INSPECT_CLUSTER, cluster_id=str(cluster.id))
    return row


def under_way(*, cluster_id: UUID) -> QuerySet[Inspection]:
    """Of pods there, the first that was asked for first."""
    rows = Inspection.objects.filter(ended_at=None, placement__attempt__cluster_id=cluster_id)
    return rows.order_by("id")


def end(
    row: Inspection,
    *,
    at: datetime,
    events: Sequence[Mapping[str, object]] = (),
    events_why: str = "",
    log: LogTail | None = None,
    log_why: str = "",
) -> None:
    """With what was told; one that ended meanwhile, or was asked for anew, is left as it is."""
    Inspection.objects.filter(id=row.id, ended_at=None).update(
        ended_at=at,
        events=list(events),
        events_why=events_why,
        log=log.text if log else "",
        log_is_cut=log is not None and log.is_cut,
        log_why=log_why,
    )


def sweep(*, at: datetime) -> None:
    """Forget what is old, end what nobody takes up, ask again for the rest that is under way."""
    Inspection.objects.filter(timed_from__lte=Now() - KEPT).delete()
    under_way = Inspection.objects.filter(ended_at=None).order_by("id")
    for row in under_way.filter(timed_from__lte=Now() - TAKEN_UP_WITHIN):
        end(row, at=at, events_why=_NOT_TAKEN_UP, log_why=_NOT_TAKEN_UP)
    of = "placement__attempt__cluster_id"
    for id in under_way.order_by(of).values_list(of, flat=True).distinct():
        hints.send(hints.INSPECT_CLUSTER, cluster_id=str(id))
