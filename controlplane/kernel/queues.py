"""The state of a queue, the same for whatever is held: a project, a tenant, a cluster, a pool."""

from django.db import models
from django.db.models import Q

from controlplane.kernel import text
from controlplane.kernel.errors import Invalid

MAX_NOTE = 500


class QueueState(models.TextChoices):
    OPEN = "open"
    HELD = "held"  # nothing new starts; what runs goes on
    DRAINING = "draining"  # nor does what runs go on, where it may be stopped: it waits again


class Queue(models.Model):
    """The columns. `queue_note` and `queue_changed_at` tell of the last change of `queue_state`:
    "" and None when there never was one. Who made it is a column of each table's own."""

    queue_state = models.CharField(
        max_length=8, choices=QueueState, default=QueueState.OPEN, db_default=QueueState.OPEN
    )
    queue_note = models.CharField(max_length=MAX_NOTE, blank=True, default="", db_default="")
    queue_changed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True


def constraints(name: str, *, by_someone: Q) -> list[models.CheckConstraint]:
    """A state that is known; one that is not open since then, by someone and for a reason."""
    why = Q(queue_changed_at__isnull=False) & by_someone & ~Q(queue_note="")
    return [
        models.CheckConstraint(
            condition=Q(queue_state__in=QueueState.values), name=f"{name}_queue_state_known"
        ),
        models.CheckConstraint(
            condition=Q(queue_state=QueueState.OPEN) | why, name=f"{name}_queue_closed_by_someone"
        ),
    ]


def checked_note(note: str, *, state: QueueState) -> str:
    """Why it is moved there, as it is stored. Raises Invalid for a note that is none; one is
    wanted unless the queue is opened."""
    note = note.strip()
    fault = text.fault(note)
    if fault:
        raise Invalid(fault, pointer="/note", code="bad-character")
    if len(note) > MAX_NOTE or (state != QueueState.OPEN and not note):
        raise Invalid(f"Say why, in 1 to {MAX_NOTE} characters.", pointer="/note")
    return note
