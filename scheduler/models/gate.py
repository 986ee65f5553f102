"""What somebody has to let in before a workload, or an array, may start."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from controlplane.kernel.models import Row
from scheduler.models.workload import Workload, WorkloadArray
from tenants.gating import GATE_NAME
from tenants.models import GateKind, Project


class GateState(models.TextChoices):
    WAITING = "waiting"
    OPEN = "open"
    REFUSED = "refused"


class Gate(Row):
    """The workload, or all of the array, does not start before `owner` has opened it. It is
    decided once: an array's for all of its elements, a workload's for all of its tries.

    `standing` ones came from the project. Not opened by `deadline_at`, None is never, it is
    refused by nobody. `note` is what was said with the decision.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    workload = models.ForeignKey(
        Workload, on_delete=models.CASCADE, null=True, blank=True, related_name="gates"
    )
    array = models.ForeignKey(
        WorkloadArray, on_delete=models.CASCADE, null=True, blank=True, related_name="gates"
    )
    name = models.CharField(max_length=40)
    kind = models.CharField(max_length=8, choices=GateKind)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="gates"
    )
    standing = models.BooleanField(default=False)
    state = models.CharField(max_length=7, choices=GateState, default=GateState.WAITING)
    created_at = models.DateTimeField()
    deadline_at = models.DateTimeField(null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="gates_decided",
    )
    note = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(workload__isnull=True, array__isnull=False)
                | Q(workload__isnull=False, array__isnull=True),
                name="gate_of_one",
            ),
            models.UniqueConstraint(fields=["workload", "name"], name="gate_once_a_workload"),
            models.UniqueConstraint(fields=["array", "name"], name="gate_once_an_array"),
            models.CheckConstraint(condition=Q(name__regex=GATE_NAME), name="gate_named_plainly"),
            models.CheckConstraint(condition=Q(kind__in=GateKind.values), name="gate_kind_known"),
            models.CheckConstraint(
                condition=Q(deadline_at__isnull=True) | Q(deadline_at__gt=F("created_at")),
                name="gate_deadline_later",
            ),
            models.CheckConstraint(
                condition=Q(
                    state=GateState.WAITING,
                    decided_at__isnull=True,
                    decided_by__isnull=True,
                    note="",
                )
                | Q(state=GateState.OPEN, decided_at__isnull=False, decided_by__isnull=False)
                | Q(state=GateState.REFUSED, decided_at__isnull=False) & ~Q(note=""),
                name="gate_decided_by_someone",
            ),
            models.CheckConstraint(
                condition=~Q(state=GateState.REFUSED, decided_by__isnull=True)
                | Q(deadline_at__isnull=False),
                name="gate_refused_by_its_deadline",
            ),
        ]
        indexes = [
            models.Index(
                fields=["deadline_at"],
                condition=Q(state=GateState.WAITING),
                name="gate_waiting",
            ),
            models.Index(
                fields=["owner"], condition=Q(state=GateState.WAITING), name="gate_waits_for"
            ),
        ]

    access_path = "project"

    def __str__(self) -> str:
        return self.name
