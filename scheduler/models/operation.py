"""The outbox: what has to become true in a cluster. A row is claimed, done outside any
transaction, and closed."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from controlplane.kernel.models import Row
from scheduler.models.placement import Attempt


class OperationKind(models.TextChoices):
    START = "start"  # create the attempt's pods gated, store their uids, open the gates
    STOP = "stop"  # delete the attempt's pods
    NOTICE = "notice"  # tell the pods when they will be deleted
    RESIZE = "resize"  # of a gang that stays, start the pods that came and delete those dismissed


class Operation(Row):
    """Claimed through its attempt, so that one worker at a time acts on an attempt.

    `failures` counts tries that failed; the row is tried again at `due_at` (database clock). A
    stop that is not due and has not failed waits for the end of a notice. A RESIZE is opened again
    by each further one.
    """

    attempt = models.ForeignKey(
        Attempt,
        on_delete=models.CASCADE,
        related_name="operations",
        db_index=False,  # operation_once_an_attempt begins with it
    )
    kind = models.CharField(max_length=6, choices=OperationKind)
    due_at = models.DateTimeField(db_default=Now())
    failures = models.PositiveSmallIntegerField(default=0)
    last_error = models.CharField(max_length=500, blank=True)
    done_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["attempt", "kind"], name="operation_once_an_attempt"),
            models.CheckConstraint(
                condition=Q(kind__in=OperationKind.values), name="operation_kind_known"
            ),
        ]
        indexes = [
            models.Index(
                fields=["due_at", "id"], condition=Q(done_at__isnull=True), name="operation_due"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.attempt_id}"
