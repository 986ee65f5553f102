"""Attacks on the quotas of tenants."""

from clusters.models import Flavor
from tenants.models import Project, Quota, Tenant, TenantQuota
from tests.constraints.attack import Attack, negative
from tests.constraints.moves import Statement, change, copy, update
from tests.constraints.rows import NOON, make


def _fleet(lent: int | None = None, borrowed: int | None = None) -> tuple[Quota, Quota]:
    """Two projects of 1,000 each: of a department, whose tenant lends and borrows so much, and of
    another tenant."""
    flavor = make(Flavor)
    top = make(Tenant)
    make(
        TenantQuota,
        tenant=top,
        flavor=flavor,
        nominal_milli=0,
        lending_limit_milli=lent,
        borrowing_limit_milli=borrowed,
    )
    within = make(Project, tenant=make(Tenant, parent=top))
    return (
        make(Quota, flavor=flavor, project=within, nominal_milli=1000),
        make(Quota, flavor=flavor, nominal_milli=1000),
    )


def _borrows_more_than_the_tenant_may() -> Statement:
    own, _ = _fleet(borrowed=500)
    return update(own, used_milli=1501)


def _takes_what_a_tenant_keeps() -> Statement:
    _, other = _fleet(lent=500)
    return update(other, used_milli=1501)


def _takes_more_than_there_is() -> Statement:
    own, other = _fleet()
    Quota.objects.filter(pk=other.pk).update(used_milli=1000)
    return update(own, used_milli=1001)


ATTACKS = (
    Attack(
        "tenant_quota_once_a_tenant_and_flavor",
        "a tenant has two quotas of a flavor",
        copy(TenantQuota),
    ),
    *(
        Attack(
            "tenant_quota_amounts_in_range",
            f"{column} is {what}",
            change(TenantQuota, **{column: milli}),
        )
        for column in ("nominal_milli", "borrowing_limit_milli", "lending_limit_milli")
        for what, milli in (("negative", -1), ("so large that sums may overflow", 10**12 + 1))
    ),
    Attack(
        "tenant_quota_enforced_has_a_limit",
        "what is beyond a quota without a limit is to be taken back",
        change(TenantQuota, borrowing_limit_milli=None, enforce_at=NOON),
    ),
    negative("tenants_tenantquota_version_check", TenantQuota, "version"),
    Attack(
        "quota_within_limits_on_update",
        "a department's project borrows more than its tenant may",
        _borrows_more_than_the_tenant_may,
        error="quota_within_tenant",
    ),
    Attack(
        "quota_within_limits_on_update",
        "a project borrows what another tenant does not lend",
        _takes_what_a_tenant_keeps,
        error="quota_within_fleet",
    ),
    Attack(
        "quota_within_limits_on_update",
        "a tenant with quota and one without take more than the fleet has",
        _takes_more_than_there_is,
        error="quota_within_fleet",
    ),
)
