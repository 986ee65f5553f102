"""What is granted for a time: bound to what was seen, begun, ended and extended by itself."""

from datetime import timedelta
from importlib import import_module
from math import inf
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, settings
from hypothesis import given as drawn
from hypothesis import strategies as st

from clusters.models import Flavor
from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed, NotFound
from tenants.models import Quota, QuotaRequest
from tenants.services import grants, quotas, requests
from tenants.services.grants import Allotment
from tenants.services.quotas import VersionMismatch
from tenants.services.requests import Given, Seen
from tests import factories
from tests.conftest import Cast
from tests.tenants.granting import AT, ask, grant, nominal, of

DAY = timedelta(days=1)


@pytest.fixture
def h100(db: None) -> Flavor:
    return factories.flavor()


class TestBound:
    def test_a_grant_of_what_was_changed_since_is_refused(self, cast: Cast, h100: Flavor) -> None:
        asked = ask(cast, h100)
        requests.amend(
            actor=of(cast.ben),
            request=asked,
            allotment=Allotment(nominal_milli=64_000),
            reason="Much more.",
            version=1,
            at=AT,
        )
        with pytest.raises(VersionMismatch, match="version 2 by now, not 1"):
            grant(cast, asked, seen=Seen(request=1, quota=0))
        assert not Quota.objects.exists()
        grant(cast, asked, seen=Seen(request=2, quota=0))
        assert nominal() == 64_000

    def test_a_grant_beside_a_quota_that_was_set_since_is_refused(
        self, cast: Cast, h100: Flavor
    ) -> None:
        factories.quota(cast.detection, h100, 8000)
        asked = ask(cast, h100)
        quotas.set_quota(
            actor=of(cast.oz),
            project=cast.detection,
            flavor=h100,
            amounts=quotas.Amounts(nominal_milli=12_000),
            at=AT,
        )
        with pytest.raises(VersionMismatch):
            grant(cast, asked, seen=Seen(request=1, quota=1))
        asked.refresh_from_db()
        assert (asked.decision, nominal()) == ("", 12_000)

    def test_a_smaller_grant_after_a_larger_takes_nothing_back(
        self, cast: Cast, h100: Flavor
    ) -> None:
        factories.quota(cast.detection, h100, 8000)
        large, small = ask(cast, h100, 16_000), ask(cast, h100, 12_000)
        grant(cast, large)
        with pytest.raises(Invalid, match="has 16 of h100-80gb already"):
            grant(cast, small)
        small.refresh_from_db()
        assert (small.decision, nominal()) == ("", 16_000)

    def test_nobody_asks_for_what_is_there_already(self, cast: Cast, h100: Flavor) -> None:
        factories.quota(cast.detection, h100, 8000)
        with pytest.raises(Invalid, match="has 8 of h100-80gb already") as refused:
            ask(cast, h100, 8000)
        assert refused.value.pointer == "/nominal_milli"


class TestOwn:
    def test_only_who_asked_changes_or_withdraws_it(self, cast: Cast, h100: Flavor) -> None:
        asked = ask(cast, h100)
        with pytest.raises(NotAllowed, match="Only who asked"):
            requests.withdraw(actor=of(cast.ada), request=asked, at=AT)
        with pytest.raises(NotFound):
            requests.withdraw(actor=of(cast.cleo), request=asked, at=AT)
        requests.withdraw(actor=of(cast.ben), request=asked, at=AT)
        assert (asked.decision, asked.decided_by) == ("withdrawn", cast.ben)
        with pytest.raises(Conflict, match="it is withdrawn"):
            grant(cast, asked)
        with pytest.raises(Conflict):
            requests.withdraw(actor=of(cast.ben), request=asked, at=AT)
        actions = AuditEvent.objects.order_by("id").values_list("action", flat=True)
        assert list(actions) == ["request.open", "request.withdrawn"]

    def test_a_change_of_an_older_version_is_refused(self, cast: Cast, h100: Flavor) -> None:
        asked = ask(cast, h100)

        def amend(milli: int, version: int) -> None:
            requests.amend(
                actor=of(cast.ben),
                request=asked,
                allotment=Allotment(nominal_milli=milli),
                reason="More.",
                version=version,
                at=AT,
            )

        amend(20_000, 1)
        with pytest.raises(VersionMismatch):
            amend(24_000, 1)
        assert (asked.nominal_milli, asked.version) == (20_000, 2)


@pytest.mark.parametrize(
    ("allotment", "pointer"),
    [
        ({"until_at": AT}, "/until_at"),
        ({"from_at": AT - DAY}, "/from_at"),
        ({"from_at": AT + 2 * DAY, "until_at": AT + DAY}, "/until_at"),
        ({"from_at": AT + DAY, "until_at": AT + DAY}, "/until_at"),
        ({"until_at": AT + 1099 * DAY}, "/until_at"),
    ],
)
def test_times_that_can_not_be_are_refused(
    cast: Cast, h100: Flavor, allotment: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(Invalid) as refused:
        ask(cast, h100, **allotment)
    assert refused.value.pointer == pointer
    assert not QuotaRequest.objects.exists()


class TestTime:
    def test_what_was_added_goes_back_by_itself(self, cast: Cast, h100: Flavor) -> None:
        factories.quota(cast.detection, h100, 8000, used_milli=0)
        grant(cast, ask(cast, h100, until_at=AT + 7 * DAY))
        assert nominal() == 16_000
        assert grants.begin_and_end_due(at=AT + 7 * DAY - timedelta(seconds=1)) == 0
        assert nominal() == 16_000
        assert grants.begin_and_end_due(at=AT + 7 * DAY) == 1
        assert nominal() == 8000
        assert grants.begin_and_end_due(at=AT + 8 * DAY) == 0
        assert nominal() == 8000
        last = AuditEvent.objects.get(action="quota.grant-ended")
        assert last.actor == "system:time"
        assert (last.before["nominal_milli"], last.after["nominal_milli"]) == (16_000, 8000)

    def test_it_begins_when_its_time_has_come(self, cast: Cast, h100: Flavor) -> None:
        asked = ask(cast, h100, from_at=AT + DAY, until_at=AT + 3 * DAY)
        grant(cast, asked)
        assert not Quota.objects.exists()
        assert (asked.grant.state, asked.grant.quota_version) == ("scheduled", None)
        for days, milli, version in ((1, 16_000, 2), (3, 0, 3)):
            grants.begin_and_end_due(at=AT + days * DAY)
            asked.grant.refresh_from_db()
            assert (nominal(), asked.grant.quota_version) == (milli, version)

    def test_one_whose_whole_time_was_slept_through_never_begins(
        self, cast: Cast, h100: Flavor
    ) -> None:
        factories.quota(cast.detection, h100, 8000)
        grant(cast, ask(cast, h100, from_at=AT + DAY, until_at=AT + 2 * DAY))
        grants.begin_and_end_due(at=AT + 9 * DAY)
        assert nominal() == 8000
        assert not AuditEvent.objects.filter(action="quota.grant").exists()

    def test_granted_late_it_begins_at_once(self, cast: Cast, h100: Flavor) -> None:
        grant(cast, ask(cast, h100, from_at=AT + DAY), at=AT + 2 * DAY)
        assert nominal() == 16_000

    def test_less_time_than_asked_needs_a_note(self, cast: Cast, h100: Flavor) -> None:
        asked = ask(cast, h100)
        given = Given(nominal_milli=16_000, until_at=AT + DAY)
        with pytest.raises(Invalid, match="Say why") as refused:
            requests.grant(actor=of(cast.pia), request=asked, given=given, at=AT)
        assert refused.value.pointer == "/note"
        grant(cast, asked, given=given)
        grants.begin_and_end_due(at=AT + DAY)
        assert nominal() == 0

    def test_the_same_until_later_extends_it(self, cast: Cast, h100: Flavor) -> None:
        factories.quota(cast.detection, h100, 8000)
        grant(cast, ask(cast, h100, until_at=AT + 7 * DAY))
        longer = ask(cast, h100, until_at=AT + 30 * DAY)
        grant(cast, longer)
        assert (nominal(), longer.grant.quota_version) == (16_000, 2)  # which is as this wants it
        grants.begin_and_end_due(at=AT + 7 * DAY)
        assert nominal() == 16_000
        grants.begin_and_end_due(at=AT + 30 * DAY)
        assert nominal() == 8000

    def test_a_short_peak_leaves_what_lasts_longer(self, cast: Cast, h100: Flavor) -> None:
        factories.quota(cast.detection, h100, 8000)
        grant(cast, ask(cast, h100, 16_000, until_at=AT + 30 * DAY))
        grant(cast, ask(cast, h100, 24_000, until_at=AT + 7 * DAY))
        assert nominal() == 24_000
        grants.begin_and_end_due(at=AT + 7 * DAY)
        assert nominal() == 16_000
        grants.begin_and_end_due(at=AT + 30 * DAY)
        assert nominal() == 8000

    def test_granted_for_good_it_never_ends(self, cast: Cast, h100: Flavor) -> None:
        factories.quota(cast.detection, h100, 8000)
        grant(cast, ask(cast, h100, until_at=AT + 7 * DAY))
        for_good = ask(cast, h100, 12_000)
        grant(cast, for_good)
        assert nominal() == 16_000
        grants.begin_and_end_due(at=AT + 900 * DAY)
        assert nominal() == 12_000
        with pytest.raises(Conflict, match="for good"):
            grants.end(actor=of(cast.pia), grant=for_good.grant, at=AT)


def test_undone_the_older_version_has_no_more_than_is_for_good(cast: Cast, h100: Flavor) -> None:
    factories.quota(cast.detection, h100, 8000)
    grant(cast, ask(cast, h100, until_at=AT + DAY))
    withdrawn = ask(cast, h100, 24_000)
    requests.withdraw(actor=of(cast.ben), request=withdrawn, at=AT)
    module = import_module("tenants.migrations.0024_grants_end_with_the_code")
    with connection.cursor() as cursor:
        cursor.execute(module.BACK)
    withdrawn.refresh_from_db()
    assert (nominal(), withdrawn.decision, withdrawn.decided_by) == (8000, "", None)


_wishes = st.tuples(
    st.integers(0, 6),
    st.integers(1, 6),
    st.integers(0, 5),
    st.one_of(st.none(), st.integers(1, 9)),
)
"""The day on which it is asked and granted, of how much, in how many days it begins, and for how
many days it is, None for good."""


@pytest.mark.django_db
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # each is rolled back
)
@drawn(wishes=st.lists(_wishes, min_size=1, max_size=6))
def test_at_any_time_the_quota_is_the_most_that_was_granted_for_then(
    cast: Cast, h100: Flavor, wishes: list[tuple[int, int, int, int | None]]
) -> None:
    with transaction.atomic():
        _play(cast, h100, wishes)
        transaction.set_rollback(True)


def _play(cast: Cast, h100: Flavor, wishes: list[tuple[int, int, int, int | None]]) -> None:
    granted: list[tuple[int, int, float]] = []

    def most(first: int, last: float) -> int:
        """That is there on each of those days."""
        whole = [gpus for gpus, begins, ends in granted if begins <= first and ends >= last]
        return max(whole, default=0)

    for day in range(18):
        at = AT + day * DAY
        grants.begin_and_end_due(at=at)
        for asked_on, gpus, later, days in sorted(wishes, key=str):
            if asked_on != day:
                continue
            begins = day + later
            ends = inf if days is None else begins + days
            when = {
                "from_at": AT + begins * DAY if later else None,
                "until_at": None if days is None else AT + ends * DAY,
            }
            try:
                asked = requests.open(
                    actor=of(cast.ben),
                    project=cast.detection,
                    flavor=h100,
                    allotment=Allotment(nominal_milli=gpus * 1000, **when),
                    reason="More.",
                    at=at,
                )
            except Invalid:
                assert not later
                assert most(day, ends) >= gpus, "what would add something is refused"
                continue
            grant(cast, asked, at=at)
            granted.append((gpus, begins, ends))
        quota = Quota.objects.first()
        wanted = max((g for g, begins, ends in granted if begins <= day < ends), default=0)
        assert (quota.nominal_milli if quota else 0) == wanted * 1000, (day, granted)
