"""What was held, at which price, for how much. Rows are added, never changed: triggers see to
it."""

from django.conf import settings
from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import Q

from clusters.models import Cluster, Flavor
from controlplane.kernel.models import Row
from tenants.models.project import Project


def _finite(bound: str) -> models.Func:
    """Not 'infinity', which PostgreSQL tells apart from a range without that bound."""
    return models.Func(models.F(bound), function="isfinite", output_field=models.BooleanField())


class Rate(Row):
    """Price of one whole unit of a flavor for an hour, within `during`; `cluster` null is any.

    A trigger lets only the end of `during` change.
    """

    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="rates")
    cluster = models.ForeignKey(
        Cluster, null=True, blank=True, on_delete=models.PROTECT, related_name="rates"
    )
    price_per_hour = models.DecimalField(max_digits=12, decimal_places=6)
    currency = models.CharField(max_length=3)
    during = DateTimeRangeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(price_per_hour__gte=0), name="rate_price_not_negative"
            ),
            ExclusionConstraint(
                name="rate_one_at_a_time",
                expressions=[
                    ("flavor", RangeOperators.EQUAL),
                    ("cluster", RangeOperators.EQUAL),
                    ("during", RangeOperators.OVERLAPS),
                ],
                condition=Q(cluster__isnull=False),
            ),
            ExclusionConstraint(
                name="rate_one_at_a_time_anywhere",
                expressions=[
                    ("flavor", RangeOperators.EQUAL),
                    ("during", RangeOperators.OVERLAPS),
                ],
                condition=Q(cluster__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.flavor_id} {self.price_per_hour}"


class UsageInterval(Row):
    """`amount_milli` of a flavor held over the half-open `during` by one placement.

    placement_id, workload_id and device ids live in the scheduler's tables, which this app may not
    know; the exclusion constraint keeps a placement's time from being metered twice.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="usage")
    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="usage")
    # Of these two nobody asks for all usage.
    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, related_name="usage", db_index=False
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="usage", db_index=False
    )
    placement_id = models.UUIDField()
    workload_id = models.UUIDField(db_index=True)
    amount_milli = models.BigIntegerField()
    during = DateTimeRangeField()

    class Meta:
        constraints = [
            ExclusionConstraint(
                name="usage_metered_once",
                expressions=[
                    ("placement_id", RangeOperators.EQUAL),
                    ("during", RangeOperators.OVERLAPS),
                ],
            ),
            models.CheckConstraint(condition=Q(amount_milli__gt=0), name="usage_amount_positive"),
            models.CheckConstraint(
                condition=Q(during__isempty=False)
                & Q(during__lower_inf=False, during__lower_inc=True)
                & Q(during__upper_inf=False, during__upper_inc=False)
                & Q(_finite("during__startswith"))
                & Q(_finite("during__endswith")),
                name="usage_interval_closed",
            ),
        ]

    access_path = "project"

    def __str__(self) -> str:
        return f"{self.amount_milli} {self.flavor_id} {self.during}"


class Charge(Row):
    """The price of a usage interval. A correction is a new row that names the one it corrects.

    Triggers hold it to its usage and its rate, and a usage's charges to a sum of at least zero.
    """

    usage = models.ForeignKey(UsageInterval, on_delete=models.PROTECT, related_name="charges")
    project = models.ForeignKey(
        Project,
        on_delete=models.PROTECT,
        related_name="charges",
        db_index=False,  # charge_by_project begins with it
    )
    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="charges")
    workload_id = models.UUIDField(db_index=True)
    rate = models.ForeignKey(
        Rate,
        on_delete=models.PROTECT,
        related_name="charges",
        db_index=False,  # nobody asks for all that a price was charged for
    )
    amount = models.DecimalField(max_digits=18, decimal_places=6)
    currency = models.CharField(max_length=3)
    ended_at = models.DateTimeField()
    corrects = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="corrections"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["usage"], condition=Q(corrects__isnull=True), name="charge_once_a_usage"
            ),
            models.CheckConstraint(
                condition=Q(amount__gte=0) | Q(corrects__isnull=False),
                name="charge_negative_only_corrects",
            ),
        ]
        indexes = [models.Index(fields=["project", "ended_at"], name="charge_by_project")]

    access_path = "project"

    def __str__(self) -> str:
        return f"{self.amount} {self.currency}"
