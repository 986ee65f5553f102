"""Gates that stand before all work of a project: somebody opens each before it may start."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from controlplane.kernel.models import Row
from tenants.gating import GATE_NAME, MAX_DECIDE_S
from tenants.models.project import Project


class GateKind(models.TextChoices):
    """What the word is about."""

    DATA = "data"  # what it reads is there
    APPROVAL = "approval"  # somebody else than its submitter is for it
    BUDGET = "budget"  # it is paid for
    OTHER = "other"


class StandingGate(Row):
    """Each submission to the project gets a gate like this. `owner` decides; None for `within_s`
    is as long as it takes, else it is refused so many seconds after it was submitted."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="gates")
    name = models.CharField(max_length=40)
    kind = models.CharField(max_length=8, choices=GateKind)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="standing_gates"
    )
    within_s = models.IntegerField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="standing_gate_once"),
            models.CheckConstraint(
                condition=Q(name__regex=GATE_NAME), name="standing_gate_named_plainly"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=GateKind.values), name="standing_gate_kind_known"
            ),
            models.CheckConstraint(
                condition=Q(within_s__isnull=True)
                | Q(within_s__gte=1, within_s__lte=MAX_DECIDE_S),
                name="standing_gate_within_range",
            ),
        ]

    access_path = "project"

    def __str__(self) -> str:
        return self.name
