"""What became of work, and how much of a budget is used, is told once, and folded."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core import mail
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from clusters.models import Flavor
from controlplane.kernel.ids import uuid7
from scheduler.core.lifecycle import State
from scheduler.loop.measuring import idle
from scheduler.models import Told, Workload
from scheduler.services import telling
from scheduler.services.transition import Step, transition
from tenants.access import actor_for
from tenants.models import OF_WORK, Budget, BudgetMode, Event, Notice, Project, Role, User
from tenants.services import deliveries, mailing, notices
from tests import factories
from tests.conftest import Cast
from tests.factories import AT
from tests.scheduler.stage import Stage
from tests.scheduler.test_budgets import TODAY, budget, used
from tests.scheduler.test_idle import TIMEOUT_S, after, limited, see
from tests.tenants.test_webhooks import make

HOUR = timedelta(hours=1)
type Sent = list[tuple[str, str]]


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    """What there is has settled, and nothing is too old to be told."""

    def least_since(ago_s: int) -> UUID:
        return uuid7() if ago_s == telling.SETTLED_S else UUID(int=0)

    monkeypatch.setattr(telling, "least_since", least_since)
    settings.BERTH_PUBLIC_URL = "https://berth.example"


@pytest.fixture
def h100(db: None) -> Flavor:
    return factories.flavor()


@pytest.fixture
def move(h100: Flavor) -> Callable[..., list[Workload]]:
    """Makes so many workloads, and has them come from one state to another."""

    def moved(
        of: Project, by: User, count: int, before: State, after: State, name: str = "w"
    ) -> list[Workload]:
        rows = [
            factories.workload(of, by, [h100], f"{name}{n}", state=before) for n in range(count)
        ]
        steps = [Step(row.id, of.id, before, after, "for a test") for row in rows]
        transition(steps, actor="system:test", actor_name="test", at=AT)
        return rows

    return moved


def wants(user: User, *of: Event) -> None:
    mailing.be_told(actor=actor_for(user=user), of=of)


def sent() -> Sent:
    """All mails that are due now: to whom, and what."""
    mail.outbox.clear()
    deliveries.mail_due(at=lambda: AT, goes_on=lambda: True)
    return sorted((each.to[0].partition("@")[0], str(each.subject)) for each in mail.outbox)


def told() -> Sent:
    telling.of_work(at=AT)
    return sent()


def test_what_is_stopped_at_once_is_one_message(cast: Cast, move: Any) -> None:
    telling.of_work(at=AT)
    move(cast.detection, cast.ben, 12, State.PREEMPTING, State.PENDING)
    move(cast.detection, cast.ada, 1, State.RUNNING, State.PENDING, "mine")
    assert told() == [
        ("ada", "Berth: Work of ada in Detection stopped early: mine0."),
        ("ben", "Berth: Work of ben in Detection stopped early: w0, w1, w2 and 9 more."),
    ]
    assert told() == []


def test_a_link_leads_to_the_one_or_to_all(cast: Cast, move: Any) -> None:
    telling.of_work(at=AT)
    [one] = move(cast.detection, cast.ben, 1, State.RUNNING, State.PENDING)
    told()
    assert f"https://berth.example/workloads/{one.id}\n" in str(mail.outbox[0].body)
    move(cast.detection, cast.ben, 2, State.RUNNING, State.PENDING)
    told()
    assert "https://berth.example/workloads\n" in str(mail.outbox[0].body)


def test_people_are_mailed_of_what_they_want(cast: Cast, move: Any) -> None:
    telling.of_work(at=AT)
    wants(cast.ben, Event.WORK_STARTED, Event.WORK_ENDED)
    wants(cast.ada)
    for user in (cast.ben, cast.ada):
        move(cast.detection, user, 1, State.ADMITTED, State.RUNNING, "start")
        move(cast.detection, user, 1, State.RUNNING, State.PENDING, "stop")
    move(cast.detection, cast.ben, 2, State.RUNNING, State.SUCCEEDED, "good")
    move(cast.detection, cast.ben, 1, State.RUNNING, State.FAILED, "bad")
    move(cast.detection, cast.ben, 1, State.PENDING, State.CANCELLED, "gone")
    assert told() == [
        (
            "ben",
            "Berth: Work of ben in Detection ended, 1 of 3 failed: good0, good1, bad0.",
        ),
        ("ben", "Berth: Work of ben in Detection started: start0."),
    ]


def test_what_lies_idle_is_told_once_and_not_that_it_is_used_again(stage: Stage) -> None:
    telling.of_work(at=AT)
    limited()
    stage.running()
    see(stage, [0])
    idle.warn(at=after(TIMEOUT_S))
    see(stage, [50], at=after(TIMEOUT_S + 1))
    who = stage.actor.user.username
    assert told() == [
        (who, f"Berth: Work of {who} in Detection leaves its devices unused: train.")
    ]
    assert "may be taken back" in str(mail.outbox[0].body)
    assert told() == []


@pytest.mark.parametrize(
    ("after", "became"), [(State.SUCCEEDED, "succeeded"), (State.FAILED, "failed")]
)
def test_of_one_kind_it_is_said_so(cast: Cast, move: Any, after: State, became: str) -> None:
    telling.of_work(at=AT)
    wants(cast.ben, Event.WORK_ENDED)
    move(cast.detection, cast.ben, 2, State.RUNNING, after)
    assert told() == [("ben", f"Berth: Work of ben in Detection {became}: w0, w1.")]


def test_a_channel_is_told_of_what_it_is_for(cast: Cast, move: Any) -> None:
    telling.of_work(at=AT)
    wants(cast.ben)
    url = "https://93.184.216.34/berth"
    channel, _ = make(cast.ada, cast.vision, url, events=[Event.WORK_STARTED.value])
    make(cast.ada, cast.detection, url, name="Other", events=["work.ended"])
    rows = move(cast.detection, cast.ben, 1, State.ADMITTED, State.RUNNING)
    move(cast.dialogue, cast.cleo, 1, State.ADMITTED, State.RUNNING)
    telling.of_work(at=AT)
    [notice] = Notice.objects.all()
    assert [each.channel_id for each in notice.deliveries.all()] == [channel.id]
    assert (notice.event, notice.project_id) == ("work.started", cast.detection.id)
    assert notice.body == {
        "project": "Detection", "submitted_by": "ben", "count": 1, "failed": 0,
        "names": ["w0"], "workload": str(rows[0].id),
    }  # fmt: skip


def test_channels_are_those_of_each_project_read_once_for_all(
    cast: Cast, move: Any, django_assert_num_queries: Any
) -> None:
    telling.of_work(at=AT)
    for user in (cast.ben, cast.cleo):
        wants(user)
    with CaptureQueriesContext(connection) as one:
        move(cast.detection, cast.ben, 1, State.ADMITTED, State.RUNNING, "one")
        begun = len(one)
        telling.of_work(at=AT)
        reads = len(one) - begun
    for project, user in ((cast.detection, cast.ben), (cast.segmentation, cast.ben),
                          (cast.dialogue, cast.cleo)):  # fmt: skip
        for state in (State.RUNNING, State.SUCCEEDED):
            move(project, user, 1, State.ADMITTED, state, f"two-{state}")
    with django_assert_num_queries(reads):
        assert telling.of_work(at=AT) == 0
    factories.member(cast.ada, Role.OWNER)
    places = (None, cast.vision, cast.speech, cast.detection, cast.segmentation)
    url = "https://93.184.216.34/berth"
    made = {make(cast.ada, of, url, events=["work.started"])[0].id: of for of in places}
    for project, user in ((cast.detection, cast.ben), (cast.dialogue, cast.cleo)):
        move(project, user, 1, State.ADMITTED, State.RUNNING, "three")
        move(project, user, 1, State.RUNNING, State.SUCCEEDED, "four")
    telling.of_work(at=AT)
    sent = {
        notice.project: {made[each.channel.id] for each in notice.deliveries.all() if each.channel}
        for notice in Notice.objects.all()
    }
    assert sent == {
        cast.detection: {None, cast.vision, cast.detection},
        cast.dialogue: {None, cast.speech},
    }


def test_what_nobody_wants_is_not_written(cast: Cast, move: Any) -> None:
    telling.of_work(at=AT)
    move(cast.detection, cast.ben, 3, State.ADMITTED, State.RUNNING)
    assert telling.of_work(at=AT) == 0
    assert not Notice.objects.exists()


def test_what_was_before_the_first_time_is_not_told(cast: Cast, move: Any) -> None:
    move(cast.detection, cast.ben, 1, State.RUNNING, State.PENDING)
    assert told() == []


def test_who_dies_while_telling_tells_it_the_next_time(
    cast: Cast, move: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    telling.of_work(at=AT)
    move(cast.detection, cast.ben, 1, State.RUNNING, State.PENDING)
    until = Told.objects.get().until

    def dies(*_: object, **__: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(notices, "of_work", dies)
        with pytest.raises(KeyboardInterrupt):
            telling.of_work(at=AT)
    assert Told.objects.get().until == until
    assert len(told()) == 1


def test_what_has_not_settled_waits(
    cast: Cast, move: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    telling.of_work(at=AT)
    before = Told.objects.get().until
    move(cast.detection, cast.ben, 1, State.RUNNING, State.PENDING)
    with monkeypatch.context() as patched:
        patched.setattr(telling, "least_since", lambda ago_s: before)
        assert told() == []
    assert len(told()) == 1


class TestBudgets:
    def sent(self) -> Sent:
        telling.of_budgets(at=AT)
        return sent()

    def test_owners_are_told_of_most_and_of_all_once(self, stage: Stage) -> None:
        budget(stage.project, 100)
        used(stage.project, stage, 79.9)
        assert self.sent() == []
        used(stage.project, stage, 0.1, day=TODAY + timedelta(days=1))
        told = [("ada", "Berth: The budget of Detection, 100 GPU-hours, is 80 % used.")]
        assert self.sent() == told
        assert "https://berth.example/budgets" in str(mail.outbox[0].body)
        assert self.sent() == []
        used(stage.project, stage, 20, day=TODAY + timedelta(days=2))
        told = [("ada", "Berth: The budget of Detection, 100 GPU-hours, is used up.")]
        assert self.sent() == told
        assert self.sent() == []

    def test_with_more_hours_it_is_told_again(self, stage: Stage) -> None:
        made = budget(stage.project, 100)
        used(stage.project, stage, 90)
        assert len(self.sent()) == 1
        Budget.objects.filter(id=made.id).update(limit_h=110)
        assert self.sent() == [
            ("ada", "Berth: The budget of Detection, 110 GPU-hours, is 80 % used.")
        ]

    def test_of_a_tenants_its_owners_and_channels(self, stage: Stage) -> None:
        own, below = stage.ada, factories.user("pol")
        factories.member(below, Role.OWNER, at=stage.project)
        url = "https://93.184.216.34/berth"
        make(own, stage.project.tenant, url, events=["budget.warned"])
        make(below, stage.project, url, events=["budget.warned"])
        budget(stage.project.tenant, 100, BudgetMode.WARN)
        used(stage.project, stage, 85)
        telling.of_budgets(at=AT)
        [notice] = Notice.objects.all()
        assert notice.project_id is None
        found = {(row.user, row.channel and row.channel.tenant) for row in notice.deliveries.all()}
        assert found == {(own, None), (None, stage.project.tenant)}


def test_every_event_of_work_can_be_chosen_and_no_other(cast: Cast) -> None:
    assert mailing.be_told(actor=actor_for(user=cast.ben), of=[*Event]) == [*OF_WORK]
    cast.ben.refresh_from_db()
    assert cast.ben.mailed_of == [*OF_WORK]
    assert User.objects.get(id=cast.ada.id).mailed_of == [Event.WORK_IDLE, Event.WORK_STOPPED]
