"""How a grant ends: by itself, by hand, and what is then taken back of what it let run."""

from datetime import timedelta

import pytest

from clusters.models import Flavor
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed
from tenants.models import Quota
from tenants.services import grants, quotas
from tenants.services.requests import Given
from tests import factories
from tests.conftest import Cast
from tests.tenants.granting import AT, ask, grant, nominal, of

DAY = timedelta(days=1)


@pytest.fixture
def h100(db: None) -> Flavor:
    return factories.flavor()


def test_what_runs_beyond_it_at_its_end_runs_on_unless_it_is_to_be_taken_back(
    cast: Cast, h100: Flavor
) -> None:
    factories.quota(cast.detection, h100, 8000)
    Quota.objects.update(borrowing_limit_milli=0)
    asked = ask(cast, h100, until_at=AT + DAY)
    grant(cast, asked)
    Quota.objects.update(used_milli=16_000)
    grants.begin_and_end_due(at=AT + DAY)
    assert Quota.objects.get().enforce_at is None
    back = Given(nominal_milli=16_000, until_at=AT + 3 * DAY, take_back=True)
    grant(cast, ask(cast, h100, until_at=AT + 3 * DAY), at=AT + 2 * DAY, given=back)
    grants.begin_and_end_due(at=AT + 3 * DAY)
    quota = Quota.objects.get()
    assert (quota.nominal_milli, quota.enforce_at) == (8000, AT + 3 * DAY)


@pytest.mark.parametrize("later", [timedelta(0), DAY])
def test_nothing_can_be_taken_back_of_what_may_borrow_any_amount(
    cast: Cast, h100: Flavor, later: timedelta
) -> None:
    factories.quota(cast.detection, h100, 8000)
    asked = ask(cast, h100, from_at=AT + later if later else None, until_at=AT + 3 * DAY)
    back = Given(nominal_milli=16_000, until_at=AT + 3 * DAY, take_back=True)
    with pytest.raises(Invalid, match="nothing is ever held beyond its quota") as refused:
        grant(cast, asked, given=back)
    assert refused.value.pointer == "/take_back"
    assert nominal() == 8000


def test_nor_is_the_quota_made_such_a_one_while_a_grant_is_to_be_taken_back(
    cast: Cast, h100: Flavor
) -> None:
    factories.quota(cast.detection, h100, 8000, borrowing_limit_milli=0)
    asked = ask(cast, h100, until_at=AT + 7 * DAY)
    back = Given(nominal_milli=16_000, until_at=AT + 7 * DAY, take_back=True)
    grant(cast, asked, given=back)

    def set_limit(to: int | None) -> None:
        amounts = quotas.Amounts(nominal_milli=16_000, borrowing_limit_milli=to)
        quotas.set_quota(
            actor=of(cast.oz), project=cast.detection, flavor=h100, amounts=amounts, at=AT
        )

    with pytest.raises(Invalid, match="to be taken back at the grant's end") as refused:
        set_limit(None)
    assert refused.value.pointer == "/borrowing_limit_milli"
    set_limit(2000)
    grants.end(actor=of(cast.pia), grant=asked.grant, at=AT + DAY)
    quotas.set_quota(
        actor=of(cast.oz), project=cast.detection, flavor=h100,
        amounts=quotas.Amounts(nominal_milli=8000), at=AT + DAY,
    )  # fmt: skip
    assert Quota.objects.get().borrowing_limit_milli is None


class TestEnd:
    def test_an_approver_ends_it_before_its_time(self, cast: Cast, h100: Flavor) -> None:
        factories.quota(cast.detection, h100, 8000)
        asked = ask(cast, h100, until_at=AT + 7 * DAY)
        grant(cast, asked)
        for who in (cast.ben, cast.ada, cast.oz):
            with pytest.raises(NotAllowed):
                grants.end(actor=of(who), grant=asked.grant, at=AT)
        grants.end(actor=of(cast.pia), grant=asked.grant, at=AT)
        assert nominal() == 8000
        with pytest.raises(Conflict, match="over already"):
            grants.end(actor=of(cast.pia), grant=asked.grant, at=AT)
        grants.begin_and_end_due(at=AT + 7 * DAY)
        assert nominal() == 8000

    def test_by_hand_nothing_is_taken_back_of_which_nobody_was_told(
        self, cast: Cast, h100: Flavor
    ) -> None:
        factories.quota(cast.detection, h100, 8000, borrowing_limit_milli=0)
        asked = ask(cast, h100, until_at=AT + 7 * DAY)
        back = Given(nominal_milli=16_000, until_at=AT + 7 * DAY, take_back=True)
        grant(cast, asked, given=back)
        Quota.objects.update(used_milli=16_000)
        grants.end(actor=of(cast.pia), grant=asked.grant, at=AT + DAY)
        quota = Quota.objects.get()
        assert (quota.nominal_milli, quota.enforce_at) == (8000, None)

    def test_one_that_has_not_begun_never_does(self, cast: Cast, h100: Flavor) -> None:
        asked = ask(cast, h100, from_at=AT + DAY)
        grant(cast, asked)
        grants.end(actor=of(cast.pia), grant=asked.grant, at=AT)
        grants.begin_and_end_due(at=AT + 2 * DAY)
        assert not Quota.objects.exists()

    def test_an_operator_who_sets_another_quota_ends_it(self, cast: Cast, h100: Flavor) -> None:
        factories.quota(cast.detection, h100, 8000)
        asked = ask(cast, h100, until_at=AT + 7 * DAY)
        grant(cast, asked)

        def set_by_hand(nominal_milli: int, lending_limit_milli: int | None = None) -> None:
            quotas.set_quota(
                actor=of(cast.oz),
                project=cast.detection,
                flavor=h100,
                amounts=quotas.Amounts(
                    nominal_milli=nominal_milli, lending_limit_milli=lending_limit_milli
                ),
                at=AT + DAY,
            )

        set_by_hand(nominal_milli=16_000, lending_limit_milli=0)
        asked.grant.refresh_from_db()
        assert asked.grant.state == "in-force"
        assert asked.grant.quota_version == 2
        set_by_hand(nominal_milli=12_000)
        asked.grant.refresh_from_db()
        assert (asked.grant.state, asked.grant.quota_version) == ("ended", 4)
        grants.begin_and_end_due(at=AT + 7 * DAY)
        assert nominal() == 12_000
