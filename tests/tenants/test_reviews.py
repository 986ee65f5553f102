"""The review of projects' quotas: who is told when, what is frozen, and what confirming lifts."""

from datetime import datetime, timedelta

import pytest
from django.core import mail
from django.db import IntegrityError, transaction
from pytest_django import Settings

from controlplane.audit.models import AuditEvent
from controlplane.kernel import hints
from controlplane.kernel.errors import NotAllowed, NotFound
from controlplane.kernel.queues import QueueState
from tenants.access import actor_for
from tenants.models import Notice, Project, Role, User
from tenants.selectors import reviews as selectors
from tenants.services import deliveries, queues, reviews
from tests import factories
from tests.conftest import Cast

AT = factories.AT
DAY = timedelta(days=1)
DUE = AT + 365 * DAY


@pytest.fixture(autouse=True)
def reviewed(cast: Cast, settings: Settings) -> None:
    """Every 365 days; Detection alone has a quota, last confirmed at AT."""
    settings.BERTH_REVIEW_DAYS = 365
    settings.BERTH_PUBLIC_URL = "https://berth.example"
    factories.quota(cast.detection, factories.flavor())
    Project.objects.update(quota_confirmed_at=AT)


def told(at: datetime) -> list[tuple[str, str]]:
    """To whom, and what, of the mails that a beat at that moment writes."""
    mail.outbox.clear()
    reviews.review_due(at=at)
    deliveries.mail_due(at=lambda: at, goes_on=lambda: True)
    return sorted((each.to[0].partition("@")[0], str(each.subject)) for each in mail.outbox)


def frozen(project: Project) -> datetime | None:
    project.refresh_from_db()
    return project.quota_frozen_at


def freeze(cast: Cast) -> None:
    reviews.review_due(at=DUE - 7 * DAY)
    reviews.review_due(at=DUE)
    assert frozen(cast.detection) == DUE


def acts() -> list[tuple[str, str]]:
    rows = AuditEvent.objects.filter(action__startswith="review.").order_by("id")
    return list(rows.values_list("action", "actor"))


class TestWhoIsTold:
    until = "Berth: The quota of Detection has to be confirmed until 2027-11-21 09:00 UTC."

    def test_thirty_and_seven_days_before_once_each(self, cast: Cast) -> None:
        assert told(DUE - 30 * DAY - timedelta(seconds=1)) == []
        assert told(DUE - 30 * DAY) == [("ada", self.until)]
        assert f"https://berth.example/projects/{cast.detection.id}" in str(mail.outbox[0].body)
        assert told(DUE - 30 * DAY) == told(DUE - 8 * DAY) == []
        assert told(DUE - 7 * DAY) == [("ada", self.until)]
        assert told(DUE - timedelta(seconds=1)) == []
        frozen_now = "Berth: Nobody confirmed the quota of Detection: nothing new of it starts."
        assert told(DUE) == [("ada", frozen_now)]
        assert told(DUE + 400 * DAY) == []

    def test_owners_and_who_may_set_quota_there(self, cast: Cast) -> None:
        lead, sets = factories.user("lena"), factories.user("otto")
        factories.member(lead, Role.OWNER, at=cast.detection)
        factories.member(sets, Role.OPERATOR, at=cast.vision)
        assert [to for to, _ in told(DUE - 7 * DAY)] == ["ada", "lena", "otto"]

    def test_the_fleets_where_nobody_else_may_confirm(self, cast: Cast) -> None:
        cast.ada.memberships.all().delete()
        factories.member(factories.user("lena"), Role.OWNER, at=cast.detection)
        assert [to for to, _ in told(DUE - 7 * DAY)] == ["lena", "oz"]

    def test_the_next_review_is_told_of_anew(self, cast: Cast) -> None:
        told(DUE - 7 * DAY)
        reviews.confirm(actor=actor_for(user=cast.ada), project=cast.detection, at=DUE - DAY)
        assert told(DUE) == []
        assert [to for to, _ in told(DUE + 360 * DAY)] == ["ada"]

    def test_of_one_without_a_quota_nobody(self, cast: Cast) -> None:
        reviews.review_due(at=DUE)
        reviews.review_due(at=DUE + 30 * DAY)
        assert frozen(cast.dialogue) is None
        assert not Notice.objects.filter(project=cast.dialogue).exists()


class TestFreezing:
    def test_nothing_is_frozen_before_it_was_told_a_week_ago(self, cast: Cast) -> None:
        """After a standstill, or where the setting was switched on late."""
        late = DUE + 100 * DAY
        [(to, what)] = told(late)
        assert to == "ada"
        assert what.endswith(f"has to be confirmed until {late + 7 * DAY:%F} 09:00 UTC.")
        assert told(late + 7 * DAY - timedelta(seconds=1)) == []
        assert frozen(cast.detection) is None
        assert reviews.review_due(at=late + 7 * DAY) == 1
        assert frozen(cast.detection) == late + 7 * DAY

    def test_it_is_written_down_and_done_once(self, cast: Cast) -> None:
        freeze(cast)
        assert reviews.review_due(at=DUE) == reviews.review_due(at=DUE + DAY) == 0
        assert frozen(cast.detection) == DUE
        assert acts() == [("review.freeze", "system:time")]

    def test_confirmed_in_time_it_is_not(self, cast: Cast) -> None:
        reviews.review_due(at=DUE - 7 * DAY)
        reviews.confirm(actor=actor_for(user=cast.ada), project=cast.detection, at=DUE - DAY)
        assert reviews.review_due(at=DUE + DAY) == 0
        assert frozen(cast.detection) is None

    def test_where_nothing_is_reviewed_nothing_is_and_what_was_is_thawed(
        self, cast: Cast, settings: Settings
    ) -> None:
        freeze(cast)
        settings.BERTH_REVIEW_DAYS = 0
        assert reviews.review_due(at=DUE + DAY) == 1
        assert frozen(cast.detection) is None
        assert acts()[-1] == ("review.thaw", "system:time")
        assert reviews.review_due(at=DUE + 800 * DAY) == 0
        assert selectors.to_confirm(actor=actor_for(user=cast.ada), at=DUE) == ()

    def test_a_longer_time_thaws_too(self, cast: Cast, settings: Settings) -> None:
        freeze(cast)
        settings.BERTH_REVIEW_DAYS = 400
        assert reviews.review_due(at=DUE + DAY) == 1
        assert frozen(cast.detection) is None

    def test_what_is_confirmed_is_not_frozen_in_the_database_either(self, cast: Cast) -> None:
        freeze(cast)
        with pytest.raises(IntegrityError, match="frozen_since"), transaction.atomic():
            Project.objects.filter(id=cast.detection.id).update(quota_confirmed_at=DUE)


class TestConfirming:
    def test_it_lifts_the_freeze_and_no_hold(
        self, cast: Cast, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent: list[str] = []
        ada = actor_for(user=cast.ada)
        queues.move(actor=ada, of=cast.detection, state=QueueState.HELD, note="Why.", at=AT)
        freeze(cast)
        monkeypatch.setattr(hints, "hint", sent.append)
        confirmed = reviews.confirm(actor=ada, project=cast.detection, at=DUE + DAY)
        assert (confirmed.quota_frozen_at, confirmed.quota_confirmed_at) == (None, DUE + DAY)
        assert confirmed.queue_state == QueueState.HELD
        assert sent == [hints.CYCLE]
        event = AuditEvent.objects.get(action="review.confirm")
        assert (event.actor_name, event.project_id) == ("ada", cast.detection.id)
        assert event.before == {"confirmed_at": AT.isoformat(), "frozen_at": DUE.isoformat()}
        assert event.after == {"confirmed_at": (DUE + DAY).isoformat(), "frozen_at": None}

    def test_opening_the_queue_lifts_no_freeze(self, cast: Cast) -> None:
        ada = actor_for(user=cast.ada)
        queues.move(actor=ada, of=cast.detection, state=QueueState.HELD, note="Why.", at=AT)
        freeze(cast)
        queues.move(actor=ada, of=cast.detection, state=QueueState.OPEN, note="", at=DUE)
        assert frozen(cast.detection) == DUE

    def test_who_owns_or_operates_a_tenant_above(self, cast: Cast) -> None:
        lead, sets = factories.user("lena"), factories.user("otto")
        factories.member(lead, Role.OWNER, at=cast.detection)
        factories.member(sets, Role.OPERATOR, at=cast.vision)

        def confirm(by: User) -> None:
            reviews.confirm(actor=actor_for(user=by), project=cast.detection, at=DUE)

        for who in (lead, cast.ben, cast.vik, cast.pia):
            with pytest.raises(NotAllowed):
                confirm(who)
        with pytest.raises(NotFound):
            confirm(cast.cleo)
        assert Project.objects.get(id=cast.detection.id).quota_confirmed_at == AT
        for who in (cast.ada, sets, cast.oz):
            confirm(who)

    def test_each_sees_what_waits_for_them(self, cast: Cast) -> None:
        lead = factories.user("lena")
        factories.member(lead, Role.OWNER, at=cast.detection)

        def waits(of: User, at: datetime) -> list[Project]:
            return list(selectors.to_confirm(actor=actor_for(user=of), at=at))

        assert waits(cast.ada, DUE - 31 * DAY) == []
        for of in (cast.ada, cast.oz):
            assert waits(of, DUE - 30 * DAY) == [cast.detection]
        for of in (lead, cast.ben, cast.pia, cast.cleo):
            assert waits(of, DUE) == []
