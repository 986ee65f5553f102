"""Inspections of pods: asked for by who sees the workload, made up for where a message got lost,
forgotten soon.

What must not live here: carrying one out (loop/inspect.py).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models.functions import Now

from clusters.inspection import LogTail
from controlplane.kernel import hints
from scheduler.models import Inspection, Placement
from tenants.access import Actor

TAKEN_UP_WITHIN = timedelta(minutes=2)
KEPT = timedelta(minutes=15)
"""This and the one before are real time."""
_NOT_TAKEN_UP = "No worker took it up within two minutes: ask again, or tell who runs Berth."


def ask(*, actor: Actor, placement: Placement, at: datetime) -> Inspection:
    """What its cluster says of the pod, to be fetched soon, in place of what it said before. One
    that is under way is the answer. `placement` is one that the actor sees."""
    with transaction.atomic():
        Placement.objects.select_for_update(no_key=True).get(id=placement.id)  # one at a time
        row = Inspection.objects.filter(placement=placement).first()
        if row is None or row.ended_at is not None:
            Inspection.objects.filter(placement=placement).delete()
            row = Inspection.objects.create(placement=placement, asked_at=at, asked_by=actor.name)
        hints.hint(hints.INSPECT_POD, inspection_id=str(row.id))
    return row


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
    for id in under_way.values_list("id", flat=True):
        hints.send(hints.INSPECT_POD, inspection_id=str(id))
