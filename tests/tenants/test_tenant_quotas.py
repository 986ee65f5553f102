"""Quotas of tenants: who sets them, and what is written down."""

import pytest

from clusters.models import Flavor
from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Invalid, NotAllowed
from tenants.access import actor_for
from tenants.models import TenantQuota, User
from tenants.services import quotas
from tests import factories
from tests.conftest import Cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def h100() -> Flavor:
    return factories.flavor()


def set_to(
    cast: Cast, h100: Flavor, milli: int, *, by: User | None = None, version: int | None = None
) -> TenantQuota:
    return quotas.set_tenant_quota(
        actor=actor_for(user=by or cast.oz),
        tenant=cast.vision,
        flavor=h100,
        amounts=quotas.Amounts(nominal_milli=milli, lending_limit_milli=0),
        version=version,
        at=factories.AT,
    )


def test_it_is_made_and_changed_with_an_audit_row_each(cast: Cast, h100: Flavor) -> None:
    assert set_to(cast, h100, 4000, version=0).version == 1
    assert set_to(cast, h100, 6000, version=1).version == 2
    first, second = AuditEvent.objects.filter(action="tenant-quota.set").order_by("id")
    assert (first.before, first.after["nominal_milli"]) == ({}, 4000)
    assert (second.before["nominal_milli"], second.after["nominal_milli"]) == (4000, 6000)
    assert (second.target_type, second.tenant_id) == ("tenant-quota", cast.vision.id)
    assert second.project_id is None


def test_whom_somebody_else_was_quicker_than_is_told_and_changes_nothing(
    cast: Cast, h100: Flavor
) -> None:
    set_to(cast, h100, 4000)
    with pytest.raises(quotas.VersionMismatch, match="at version 1 by now, not 0"):
        set_to(cast, h100, 6000, version=0)
    assert TenantQuota.objects.get().nominal_milli == 4000
    assert AuditEvent.objects.filter(action="tenant-quota.set").count() == 1


def test_an_amount_out_of_range_is_refused(cast: Cast, h100: Flavor) -> None:
    with pytest.raises(Invalid, match="-1 is not between 0 and 1000000000000"):
        set_to(cast, h100, -1)
    assert not TenantQuota.objects.exists()


def test_a_tenants_own_people_do_not_set_what_the_fleet_guarantees_them(
    cast: Cast, h100: Flavor
) -> None:
    for user in (cast.ada, cast.ben, cast.cleo):
        with pytest.raises(NotAllowed):
            set_to(cast, h100, 4000, by=user)
    assert not TenantQuota.objects.exists()
