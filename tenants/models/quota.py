"""How much of a flavor a project, or a tenant with all that hangs below it, may hold."""

from django.db import models
from django.db.models import Q

from clusters.models import Flavor
from controlplane.kernel.models import Row
from tenants.models.project import Project
from tenants.models.tenant import Tenant


def _in_range(column: str) -> Q:
    return Q((f"{column}__gte", 0), (f"{column}__lte", 10**12))


def _enforced_has_a_limit() -> Q:
    return Q(enforce_at__isnull=True) | Q(borrowing_limit_milli__isnull=False)


def _limits_in_range() -> Q:
    limits = ("borrowing_limit_milli", "lending_limit_milli")
    borrowing, lending = (Q((f"{limit}__isnull", True)) | _in_range(limit) for limit in limits)
    return borrowing & lending


class Quota(Row):
    """Amounts in thousandths of the flavor; a null limit is no limit.

    `used_milli` moves in the transactions that place and release; a trigger refuses any increase
    past nominal + borrowing limit, or past what the tenants above it and the fleet's members lend
    each other, and others refuse to delete or move a row that is used. `version` counts edits, so
    that an approval binds to what was seen. From `enforce_at` on what is held beyond nominal +
    borrowing limit is taken back; null lets it end by itself, and so it is again once no more is
    held.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="quotas")
    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="quotas")
    nominal_milli = models.BigIntegerField()
    borrowing_limit_milli = models.BigIntegerField(null=True, blank=True)
    lending_limit_milli = models.BigIntegerField(null=True, blank=True)
    used_milli = models.BigIntegerField(default=0)
    version = models.PositiveIntegerField(default=1)
    enforce_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "flavor"], name="quota_once_a_project_and_flavor"
            ),
            models.CheckConstraint(
                condition=_in_range("nominal_milli")
                & _in_range("used_milli")
                & _limits_in_range(),
                name="quota_amounts_in_range",
            ),
            models.CheckConstraint(
                condition=_enforced_has_a_limit(), name="quota_enforced_has_a_limit"
            ),
        ]

    access_path = "project"

    def __str__(self) -> str:
        return f"{self.project_id} {self.flavor_id} {self.nominal_milli}"


class TenantQuota(Row):
    """What a tenant has of a flavor beside its projects' and departments' own, for all of them
    together; its limits bound what they borrow from, and lend to, those outside of the tenant.

    Amounts as in Quota. A tenant without a row has nothing of its own and no limits.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="quotas")
    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="tenant_quotas")
    nominal_milli = models.BigIntegerField()
    borrowing_limit_milli = models.BigIntegerField(null=True, blank=True)
    lending_limit_milli = models.BigIntegerField(null=True, blank=True)
    version = models.PositiveIntegerField(default=1)
    enforce_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "flavor"], name="tenant_quota_once_a_tenant_and_flavor"
            ),
            models.CheckConstraint(
                condition=_in_range("nominal_milli") & _limits_in_range(),
                name="tenant_quota_amounts_in_range",
            ),
            models.CheckConstraint(
                condition=_enforced_has_a_limit(), name="tenant_quota_enforced_has_a_limit"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.flavor_id} {self.nominal_milli}"
