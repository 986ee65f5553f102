"""A quota is edited by two at the same moment, or while its use moves: nothing is lost without a
word."""

from functools import partial

import pytest
from django.db import transaction

from clusters.models import Flavor, FlavorKind
from clusters.services import flavors
from controlplane.audit.models import AuditEvent
from tenants.access import actor_for
from tenants.models import Quota
from tenants.services import quotas, requests, usage
from tests import factories
from tests.conftest import Cast
from tests.scheduler.meanwhile import meanwhile

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def h100(transactional_db: None) -> Flavor:
    return factories.flavor()


def set_quota(
    cast: Cast,
    h100: Flavor,
    *,
    version: int | None,
    nominal_milli: int = 8000,
    borrowing_limit_milli: int | None = None,
    lending_limit_milli: int | None = None,
) -> Quota:
    return quotas.set_quota(
        actor=actor_for(user=cast.oz),
        project=cast.detection,
        flavor=h100,
        amounts=quotas.Amounts(
            nominal_milli=nominal_milli,
            borrowing_limit_milli=borrowing_limit_milli,
            lending_limit_milli=lending_limit_milli,
        ),
        version=version,
        at=factories.AT,
    )


def grant(cast: Cast, h100: Flavor) -> None:
    asked = factories.quota_request(cast.detection, h100, cast.ben, nominal_milli=16_000)
    requests.grant(actor=actor_for(user=cast.pia), request=asked, at=factories.AT)


def test_a_grant_keeps_limits_that_an_operator_sets_meanwhile(cast: Cast, h100: Flavor) -> None:
    factories.quota(cast.detection, h100, borrowing_limit_milli=1000, lending_limit_milli=1000)
    meanwhile(
        lambda: set_quota(
            cast, h100, version=1, borrowing_limit_milli=5000, lending_limit_milli=6000
        ),
        lambda: grant(cast, h100),
    ).result()
    quota = Quota.objects.get()
    assert (quota.nominal_milli, quota.borrowing_limit_milli, quota.lending_limit_milli) == (
        16_000, 5000, 6000,
    )  # fmt: skip
    assert quota.version == 3
    change = AuditEvent.objects.get(action="quota.grant")
    assert (change.before["borrowing_limit_milli"], change.before["version"]) == (5000, 2)


def test_a_grant_keeps_the_limits_of_a_quota_that_is_made_meanwhile(
    cast: Cast, h100: Flavor
) -> None:
    meanwhile(
        lambda: set_quota(cast, h100, version=0, borrowing_limit_milli=5000),
        lambda: grant(cast, h100),
    ).result()
    quota = Quota.objects.get()
    assert (quota.nominal_milli, quota.borrowing_limit_milli) == (16_000, 5000)


def test_of_two_who_make_a_quota_the_second_is_told(cast: Cast, h100: Flavor) -> None:
    late = meanwhile(
        lambda: set_quota(cast, h100, version=0),
        lambda: set_quota(cast, h100, version=0, nominal_milli=1000),
    )
    assert isinstance(late.exception(), quotas.VersionMismatch)
    assert Quota.objects.get().nominal_milli == 8000


def test_a_version_that_never_was_makes_nothing(cast: Cast, h100: Flavor) -> None:
    with pytest.raises(quotas.VersionMismatch):
        set_quota(cast, h100, version=3)
    assert not Quota.objects.exists()


def test_a_quota_of_a_model_misses_nothing_that_starts_while_it_is_made(
    cast: Cast, h100: Flavor
) -> None:
    factories.quota(cast.detection, h100)
    whole = over_model(h100)
    for first, then in (
        (
            partial(hold, cast, h100),
            partial(set_quota, cast, whole, version=0, nominal_milli=28_000),
        ),
        (
            partial(set_quota, cast, whole, version=0, nominal_milli=28_000),
            partial(hold, cast, h100),
        ),
    ):
        meanwhile(first, then).result()
        used = dict(Quota.objects.values_list("flavor__name", "used_milli"))
        assert used == {"h100-80gb": 2000, "h100.sevenths": 14_000}
        Quota.objects.update(used_milli=0)
        Quota.objects.filter(flavor=whole).delete()


def over_model(h100: Flavor) -> Flavor:
    meaning = flavors.Meaning(kind=FlavorKind.MODEL, model=h100.model)
    return flavors.create(
        name="h100.sevenths", meaning=meaning, actor="cli", actor_name="cli", at=factories.AT
    )


@transaction.atomic
def hold(cast: Cast, h100: Flavor) -> None:
    amounts = {(cast.detection.id, h100.id): 2000}
    usage.lock(amounts)
    usage.add(amounts)
