"""The queues of a cluster and of its pools: held, drained and opened again."""

from datetime import datetime

from django.db import transaction

from clusters import stock
from clusters.models import Cluster, Device, HardwareQueue
from controlplane.audit import services as audit
from controlplane.kernel import hints
from controlplane.kernel.errors import Conflict, Invalid
from controlplane.kernel.queues import QueueState, checked_note


def move(
    *,
    cluster: Cluster,
    model: str = "",
    state: QueueState,
    note: str,
    actor: str,
    actor_name: str,
    at: datetime,
) -> HardwareQueue:
    """Hold, drain or open the cluster, or its pool of that stock, called `model`.

    From the next cycle on nothing starts there while it is held or draining; of one that is
    draining the next cycles take back what runs and may be stopped, and it waits again, for other
    clusters and pools that it accepts too. `note` says why, and is wanted unless it is opened.
    Raises Invalid for a model of which the cluster has no device, or a note that is none, Conflict
    when it is in that state already.
    """
    note = checked_note(note, state=state)
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(id=cluster.id)  # one mover at a time
        row = _row(cluster, model)
        if row.queue_state == state:
            raise Conflict(f"The queue of {row} is {state} already.")
        _move(row, state=state, note=note, actor=actor, actor_name=actor_name, at=at)
    return row


def follow(*, model: str, apart: str, actor: str, actor_name: str, at: datetime) -> None:
    """Of each cluster, hold or drain the pool `apart` too, whose devices were of the pool `model`
    until now, where that one is held or draining. In the caller's transaction, which has locked
    all clusters."""
    shut = HardwareQueue.objects.filter(model=model).exclude(queue_state=QueueState.OPEN)
    for queue in shut.select_related("cluster").order_by("id"):
        _move(
            HardwareQueue(cluster=queue.cluster, model=apart),
            state=QueueState(queue.queue_state),
            note=queue.queue_note,
            actor=actor,
            actor_name=actor_name,
            at=at,
        )


def _move(
    row: HardwareQueue,
    *,
    state: QueueState,
    note: str,
    actor: str,
    actor_name: str,
    at: datetime,
) -> None:
    before = row.queue_state
    row.queue_state, row.queue_note = state, note
    row.queue_changed_at, row.queue_changed_by = at, actor_name
    row.save()
    of_pool = {"model": row.model} if row.model else {}
    entry = audit.Entry(
        "queue.move",
        "cluster",
        row.cluster_id,
        before={"state": before} | of_pool,
        after={"state": state.value, "note": note} | of_pool,
    )
    audit.record(actor=actor, actor_name=actor_name, entries=[entry], at=at)
    hints.hint(hints.CYCLE)


def _row(cluster: Cluster, model: str) -> HardwareQueue:
    found = HardwareQueue.objects.filter(cluster=cluster, model=model).first()
    if found is not None:
        found.cluster = cluster
        return found
    devices = Device.objects.filter(node__cluster=cluster, gone_at=None, node__gone_at=None)
    if model and not devices.alias(of=stock.column()).filter(of=model).exists():
        known = ", ".join(sorted(set(devices.values_list(stock.column(), flat=True)))) or "none"
        raise Invalid(
            f"{cluster.name} has no GPU of that model. It has: {known}.", pointer="/model"
        )
    return HardwareQueue(cluster=cluster, model=model)
