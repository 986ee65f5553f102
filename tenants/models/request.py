"""A wish for more quota, and somebody else's answer."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from clusters.models import Flavor
from controlplane.kernel.models import Row
from tenants.models.project import Project


class Decision(models.TextChoices):
    GRANTED = "granted"
    DENIED = "denied"
    WITHDRAWN = "withdrawn"  # by the requester


class QuotaRequest(Row):
    """Asks that the nominal quota become `nominal_milli`. `granted_milli` is what it became.

    It is asked for from `from_at` on, None for at once, until `until_at`, None for good. Whoever
    decides says which `version` of that they have seen. `together` is the same of those that were
    asked for at once, each of another flavor; None of one alone.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="requests")
    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="requests")
    nominal_milli = models.BigIntegerField()
    from_at = models.DateTimeField(null=True, blank=True)
    until_at = models.DateTimeField(null=True, blank=True)
    version = models.PositiveIntegerField(default=1, db_default=1)
    together = models.UUIDField(null=True, blank=True)
    reason = models.TextField(max_length=2000)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="quota_requests"
    )
    requested_at = models.DateTimeField()
    decision = models.CharField(max_length=9, choices=Decision, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="quota_decisions",
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    note = models.TextField(max_length=2000, blank=True)
    granted_milli = models.BigIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["together", "flavor"], name="request_together_once_a_flavor"
            ),
            models.CheckConstraint(
                condition=Q(nominal_milli__gte=0, nominal_milli__lte=10**12)
                & (
                    Q(granted_milli__isnull=True)
                    | Q(granted_milli__gte=0, granted_milli__lte=10**12)
                ),
                name="request_amount_in_range",
            ),
            models.CheckConstraint(
                condition=Q(decided_by__isnull=True)
                | Q(decision="withdrawn", decided_by=F("requested_by"))
                | (~Q(decision="withdrawn") & ~Q(decided_by=F("requested_by"))),
                name="request_decided_by_someone_else",
            ),
            models.CheckConstraint(
                condition=Q(from_at__isnull=True)
                | Q(until_at__isnull=True)
                | Q(until_at__gt=F("from_at")),
                name="request_ends_later",
            ),
            models.CheckConstraint(
                condition=(
                    Q(decision="", decided_by__isnull=True, decided_at__isnull=True)
                    | Q(
                        decision__in=Decision.values,
                        decided_by__isnull=False,
                        decided_at__isnull=False,
                    )
                ),
                name="request_decision_whole",
            ),
            models.CheckConstraint(
                condition=(
                    Q(decision="granted", granted_milli__isnull=False)
                    | (~Q(decision="granted") & Q(granted_milli__isnull=True))
                ),
                name="request_grant_has_amount",
            ),
            models.CheckConstraint(
                condition=~Q(decision="denied") | ~Q(note=""), name="request_denial_has_note"
            ),
        ]

        indexes = [
            models.Index(
                F("decided_at").desc(),
                F("id").desc(),
                condition=~Q(decision=""),
                name="request_answered",
            )
        ]

    access_path = "project"

    def __str__(self) -> str:
        return f"{self.project_id} {self.flavor_id} {self.nominal_milli}"
