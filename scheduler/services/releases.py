"""Letting go on what waits in vain: for an end that can't come any more, where it is held for
that."""

from datetime import datetime

from django.db import transaction
from django.db.models import Q

from controlplane.audit.services import Entry
from controlplane.kernel import hints
from controlplane.kernel.errors import Conflict
from scheduler.core.lifecycle import State
from scheduler.models import Dependency, Workload, WorkloadArray, WorkloadEvent
from scheduler.services import workloads
from tenants.access import Actor
from tenants.services import trail


def release(*, actor: Actor, work: Workload | WorkloadArray, at: datetime) -> None:
    """It, or all of the array, waits no more for what it waits for in vain; for the rest it does.

    Raises NotAllowed, or Conflict when it waits for nothing in vain, or as its whole array does.
    """
    workloads.authorize(actor, work, "release")
    is_array = isinstance(work, WorkloadArray)
    kind = "array" if is_array else "workload"
    ours = (
        Workload.objects.filter(array=work.id) if is_array else Workload.objects.filter(id=work.id)
    )
    waiting = ours.filter(state=State.PENDING)
    of = Q(workload__in=waiting) | Q(array=work.id)
    with transaction.atomic():
        held = Dependency.objects.filter(of, unmet_at__isnull=False, settled_at__isnull=True)
        rows = list(held.order_by("id").select_for_update(of=("self",)))
        told = [row.workload_id for row in rows if row.workload_id is not None]
        if any(row.array_id for row in rows):
            told = list(waiting.order_by("id").values_list("id", flat=True))
        if not told:
            raise Conflict(_why_not(work))
        ids = [row.id for row in rows]
        Dependency.objects.filter(id__in=ids).update(settled_at=at)
        WorkloadEvent.objects.bulk_create(
            WorkloadEvent(
                workload_id=id, at=at, kind="released", message=f"released by {actor.name}"
            )
            for id in dict.fromkeys(told)
        )
        entry = Entry(
            action=f"{kind}.release",
            target_type=kind,
            target_id=work.id,
            tenant_id=work.project.tenant_id,
            project_id=work.project_id,
            after={"released_count": len(ids)},
        )
        trail.record(entry, actor=actor, at=at)
        hints.hint(hints.CYCLE)


def _why_not(work: Workload | WorkloadArray) -> str:
    if isinstance(work, Workload) and work.array_id is not None:
        whole = Dependency.objects.filter(
            array=work.array_id, unmet_at__isnull=False, settled_at__isnull=True
        )
        if whole.exists():
            return f"{work.name} waits as all of its array does: release the array."
    return f"{work.name} waits for nothing in vain: there is nothing to release it from."
