"""Which requests for quota take more than one agreement, and the agreements."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from controlplane.kernel.models import Row
from tenants.approval import Level
from tenants.models.request import QuotaRequest
from tenants.models.tenant import Tenant

_LEVELS = [(level.value, level.value.capitalize()) for level in Level]

MAX_AFTER_DAYS = 365


class Outcome(models.TextChoices):
    AGREED = "agreed"
    DENIED = "denied"
    LAPSED = "lapsed"  # nobody answered in time


class ApprovalRule(Row):
    """As `tenants.approval.Rule`: `tenant` None is everywhere."""

    tenant = models.ForeignKey(
        Tenant, null=True, blank=True, on_delete=models.CASCADE, related_name="approval_rules"
    )
    level = models.CharField(max_length=7, choices=_LEVELS)
    from_milli = models.BigIntegerField()
    after_days = models.PositiveSmallIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(level=Level.TENANT) | Q(level=Level.FLEET, tenant__isnull=True),
                name="approval_rule_level_known",
            ),
            models.CheckConstraint(
                condition=Q(from_milli__gte=0, from_milli__lte=10**12),
                name="approval_rule_size_in_range",
            ),
            models.CheckConstraint(
                condition=Q(after_days__isnull=True)
                | Q(after_days__gte=1, after_days__lte=MAX_AFTER_DAYS),
                name="approval_rule_waits_in_range",
            ),
            models.UniqueConstraint(
                fields=["tenant", "level"], nulls_distinct=False, name="approval_rule_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id or 'everywhere'} {self.level} {self.from_milli}"


class RequestStep(Row):
    """What somebody said to a version of a request, as the `position`th of those who did, for
    `level` and `tenant` (`tenants.approval.Step`).

    Who agrees says to how much at most, until when at most, None for good, and by which preview
    they went. A delegate says it `on_behalf_of` an approver. Nobody says that a step
    lapsed. It is written once.
    """

    request = models.ForeignKey(QuotaRequest, on_delete=models.PROTECT, related_name="taken_steps")
    version = models.PositiveIntegerField()
    position = models.PositiveIntegerField()
    level = models.CharField(max_length=7, choices=_LEVELS)
    tenant = models.ForeignKey(
        Tenant, null=True, blank=True, on_delete=models.PROTECT, related_name="request_steps"
    )
    outcome = models.CharField(max_length=6, choices=Outcome)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="request_steps",
    )
    on_behalf_of = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="request_steps_by_others",
    )
    decided_at = models.DateTimeField()
    note = models.TextField(max_length=2000, blank=True)
    granted_milli = models.BigIntegerField(null=True, blank=True)
    until_at = models.DateTimeField(null=True, blank=True)
    preview = models.CharField(max_length=64, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(level=Level.TENANT, tenant__isnull=False)
                | Q(level__in=[Level.PROJECT, Level.FLEET], tenant__isnull=True),
                name="step_level_has_its_tenant",
            ),
            models.CheckConstraint(
                condition=Q(
                    outcome=Outcome.LAPSED, decided_by__isnull=True, granted_milli__isnull=True
                )
                | Q(
                    decided_by__isnull=False,
                    outcome=Outcome.AGREED,
                    granted_milli__isnull=False,
                    granted_milli__gte=0,
                    granted_milli__lte=10**12,
                )
                | (
                    Q(
                        outcome=Outcome.DENIED,
                        decided_by__isnull=False,
                        granted_milli__isnull=True,
                    )
                    & ~Q(note="")
                ),
                name="step_outcome_whole",
            ),
            models.UniqueConstraint(
                fields=["request", "version", "position"], name="step_taken_once"
            ),
            models.UniqueConstraint(
                fields=["request", "version", "decided_by"], name="step_by_another_each"
            ),
        ]

    access_path = "request__project"

    def __str__(self) -> str:
        return f"{self.request_id} {self.position} {self.outcome}"
