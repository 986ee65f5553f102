"""What becomes of what is held beyond a quota: from when on it is taken back, and when no more."""

from datetime import datetime, timedelta

import pytest

from clusters.models import Flavor
from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Invalid
from tenants.access import actor_for
from tenants.models import Quota, TenantQuota
from tenants.services import enforcement, quotas, requests
from tenants.services.enforcement import LONGEST_DELAY, Excess, begins_at
from tenants.services.quotas import Amounts
from tests import factories
from tests.conftest import Cast
from tests.factories import AT

pytestmark = pytest.mark.django_db

SOON = AT + timedelta(hours=1)


@pytest.fixture
def h100() -> Flavor:
    return factories.flavor()


def lower(cast: Cast, h100: Flavor, to: Amounts) -> Quota:
    return quotas.set_quota(
        actor=actor_for(user=cast.oz), project=cast.detection, flavor=h100, amounts=to, at=AT
    )


@pytest.mark.parametrize(
    ("excess", "until", "begins"),
    [
        (Excess.DRAIN, None, None),
        (Excess.PREEMPT, None, AT),
        (Excess.DELAY, SOON, SOON),
        (Excess.DELAY, AT + LONGEST_DELAY, AT + LONGEST_DELAY),
    ],
)
def test_it_begins_never_now_or_after_the_delay(
    excess: Excess, until: datetime | None, begins: datetime | None
) -> None:
    assert begins_at(excess=excess, delayed_until=until, at=AT) == begins


@pytest.mark.parametrize(
    ("excess", "until", "words"),
    [
        (Excess.DELAY, None, "A delay needs the moment"),
        (Excess.DELAY, AT, "has to end in the future, and within 366 days: it ends 2026-11-21"),
        (Excess.DELAY, AT + LONGEST_DELAY + timedelta(seconds=1), "within 366 days"),
        (Excess.DRAIN, SOON, "Only delay has a moment, drain none"),
        (Excess.PREEMPT, SOON, "Only delay has a moment, preempt none"),
    ],
)
def test_a_moment_that_cannot_be_is_refused(
    excess: Excess, until: datetime | None, words: str
) -> None:
    with pytest.raises(Invalid, match=words) as refused:
        begins_at(excess=excess, delayed_until=until, at=AT)
    assert refused.value.pointer == "/enforce_at"


def test_it_is_stored_with_the_quota_and_in_the_audit(cast: Cast, h100: Flavor) -> None:
    to = Amounts(nominal_milli=1000, borrowing_limit_milli=0, enforce_at=SOON)
    assert lower(cast, h100, to).enforce_at == SOON
    assert AuditEvent.objects.get(action="quota.set").after["enforce_at"] == SOON.isoformat()
    assert lower(cast, h100, Amounts(nominal_milli=1000)).enforce_at is None


def test_without_a_borrowing_limit_it_is_refused_and_nothing_changes(
    cast: Cast, h100: Flavor
) -> None:
    with pytest.raises(Invalid, match="Give a limit, 0 for none") as refused:
        lower(cast, h100, Amounts(nominal_milli=1000, enforce_at=AT))
    assert refused.value.pointer == "/borrowing_limit_milli"
    assert not Quota.objects.exists()


def test_a_grant_leaves_it_as_it_is(cast: Cast, h100: Flavor) -> None:
    lower(cast, h100, Amounts(nominal_milli=1000, borrowing_limit_milli=0, enforce_at=SOON))
    asked = factories.quota_request(cast.detection, h100, cast.ben, nominal_milli=2000)
    requests.grant(actor=actor_for(user=cast.pia), request=asked, at=AT)
    assert Quota.objects.get().enforce_at == SOON


class TestSettling:
    SEEN = Amounts(nominal_milli=1000, borrowing_limit_milli=0, enforce_at=SOON)

    def settle(self, quota: Quota | TenantQuota, seen: Amounts = SEEN) -> bool:
        owner = quota.project_id if isinstance(quota, Quota) else quota.tenant_id
        return enforcement.settle(owner_id=owner, flavor_id=quota.flavor_id, seen=seen, at=AT)

    def test_a_quota_that_is_kept_is_enforced_no_more(self, cast: Cast, h100: Flavor) -> None:
        quota = lower(cast, h100, self.SEEN)
        assert self.settle(quota)
        quota.refresh_from_db()
        assert (quota.enforce_at, quota.version) == (None, 1)
        told = AuditEvent.objects.get(action="quota.kept")
        assert (told.before, told.after) == (
            {"enforce_at": SOON.isoformat()}, {"enforce_at": None},
        )  # fmt: skip
        assert (told.actor, told.project_id) == ("system:scheduler", cast.detection.id)
        assert not self.settle(quota)

    def test_so_is_a_tenants(self, cast: Cast, h100: Flavor) -> None:
        quota = quotas.set_tenant_quota(
            actor=actor_for(user=cast.oz), tenant=cast.vision, flavor=h100, amounts=self.SEEN,
            at=AT,
        )  # fmt: skip
        assert self.settle(quota)
        assert TenantQuota.objects.get().enforce_at is None
        assert AuditEvent.objects.get(action="tenant-quota.kept").tenant_id == cast.vision.id

    @pytest.mark.parametrize(
        "seen",
        [
            Amounts(nominal_milli=999, borrowing_limit_milli=0, enforce_at=SOON),
            Amounts(nominal_milli=1000, borrowing_limit_milli=1, enforce_at=SOON),
            Amounts(nominal_milli=1000, borrowing_limit_milli=0, enforce_at=AT),
            Amounts(nominal_milli=1000, borrowing_limit_milli=0),
        ],
    )
    def test_one_that_somebody_has_set_meanwhile_is_left(
        self, cast: Cast, h100: Flavor, seen: Amounts
    ) -> None:
        quota = lower(cast, h100, self.SEEN)
        assert not self.settle(quota, seen)
        assert Quota.objects.get().enforce_at == SOON

    def test_a_moment_within_a_second_is_that_second(self, cast: Cast, h100: Flavor) -> None:
        at = SOON - timedelta(milliseconds=400)
        quota = lower(
            cast, h100, Amounts(nominal_milli=1000, borrowing_limit_milli=0, enforce_at=at)
        )
        assert self.settle(quota)
