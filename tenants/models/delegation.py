"""Who decides requests for somebody else, for a while."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from controlplane.kernel.models import Row

LONGEST_DELEGATION = timedelta(days=90)


class Delegation(Row):
    """From `from_at` until `until_at` the delegate decides requests that the approver may decide,
    by the approver's roles, unless it is withdrawn before."""

    approver = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="delegations"
    )
    delegate = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="stands_in"
    )
    from_at = models.DateTimeField()
    until_at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=~Q(approver=F("delegate")), name="delegation_to_somebody_else"
            ),
            models.CheckConstraint(
                condition=Q(
                    until_at__gt=F("from_at"), until_at__lte=F("from_at") + LONGEST_DELEGATION
                ),
                name="delegation_is_bounded",
            ),
        ]

    @staticmethod
    def holds(*, at: datetime, way: str = "") -> Q:
        """That it is not withdrawn and it is its time; of rows from which `way` leads to it."""
        return Q(
            (f"{way}withdrawn_at", None), (f"{way}from_at__lte", at), (f"{way}until_at__gt", at)
        )

    def state(self, *, at: datetime) -> str:
        """Withdrawn, ended, later or live."""
        if self.withdrawn_at is not None:
            return "withdrawn"
        if self.until_at <= at:
            return "ended"
        return "later" if self.from_at > at else "live"

    def __str__(self) -> str:
        return f"{self.delegate_id} for {self.approver_id}"
