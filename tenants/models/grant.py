"""What came of a request for quota, from its beginning to its end."""

from collections.abc import Iterable
from datetime import datetime

from django.db import models
from django.db.models import F, Q

from controlplane.kernel.models import Row
from tenants.models.request import QuotaRequest


class Grant(Row):
    """From `from_at` until `until_at`, None for good, the nominal quota is at least what was
    granted.

    Of several at a time the largest counts: `extra_milli` is how much of the nominal quota is
    there by this one alone and will be taken away again, None before it has begun. It is over once
    `ended_at` is set: its time came, somebody ended it, or an operator set the quota anew.
    `quota_version` is that of the quota as it was left by the grant's beginning, or by its end,
    whichever came last; None before, and of those that began before that was kept.
    """

    request = models.OneToOneField(QuotaRequest, on_delete=models.PROTECT, related_name="grant")
    from_at = models.DateTimeField()
    until_at = models.DateTimeField(null=True, blank=True)
    take_back = models.BooleanField(default=False)
    extra_milli = models.BigIntegerField(null=True, blank=True)
    begun_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    quota_version = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(until_at__isnull=True) | Q(until_at__gt=F("from_at")),
                name="grant_ends_later",
            ),
            models.CheckConstraint(
                condition=Q(begun_at__isnull=True, extra_milli__isnull=True)
                | Q(
                    begun_at__isnull=False,
                    extra_milli__isnull=False,  # or the check would be null, which is no no
                    extra_milli__gte=0,
                    extra_milli__lte=10**12,
                ),
                name="grant_began_with_an_amount",
            ),
            models.CheckConstraint(
                condition=Q(quota_version__isnull=True) | Q(begun_at__isnull=False),
                name="grant_changes_a_quota_once_it_begins",
            ),
        ]
        indexes = [
            models.Index(
                fields=["from_at"], condition=Q(ended_at__isnull=True), name="grant_not_over"
            )
        ]

    access_path = "request__project"

    @staticmethod
    def for_a_time() -> Q:
        """Of those that count now, and will be taken away again."""
        return Q(begun_at__isnull=False, until_at__isnull=False, ended_at__isnull=True)

    @staticmethod
    def lasting_milli(
        grants: Iterable["Grant"], *, nominal_milli: int, until_at: datetime | None
    ) -> int:
        """What of a quota is there at least until then, None for good; `grants` are those of it
        that count for a time, with their requests."""
        there = nominal_milli
        levels = [0]
        for grant in grants:
            there -= grant.extra_milli or 0
            if until_at is not None and grant.until_at is not None and grant.until_at >= until_at:
                levels.append(grant.request.granted_milli or 0)
        return max(there, *levels)

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None

    @property
    def state(self) -> str:
        """Scheduled, in force or ended."""
        if self.ended_at is not None:
            return "ended"
        return "scheduled" if self.begun_at is None else "in-force"

    def __str__(self) -> str:
        return f"{self.request_id} {self.from_at:%F} to {self.until_at}"
