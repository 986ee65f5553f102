"""Holding, draining and opening a project's queue, and its caps: who may, and what is written."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.audit.models import AuditEvent
from controlplane.kernel import hints
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed, NotFound
from controlplane.kernel.queues import QueueState
from tenants.access import actor_for
from tenants.models import MAX_CAP, Project, Role, User
from tenants.services import queues
from tenants.services.queues import Caps
from tests import factories
from tests.conftest import Cast


def move(
    cast: Cast, state: QueueState = QueueState.HELD, note: str = "Audit.", by: User | None = None
) -> Project:
    return queues.move(
        actor=actor_for(user=by or cast.ada),
        of=cast.detection,
        state=state,
        note=note,
        at=factories.AT,
    )


def cap(cast: Cast, by: User | None = None, **caps: int) -> Project:
    return queues.set_caps(
        actor=actor_for(user=by or cast.ada),
        project=cast.detection,
        caps=Caps(**caps),
        at=factories.AT,
    )


def test_a_hold_says_who_when_and_why_and_asks_for_a_cycle(
    cast: Cast,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Callable[..., Any],
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(hints, "send", sent.append)
    with django_capture_on_commit_callbacks(execute=True):
        move(cast, note=" Audit. ")
    row = Project.objects.get(id=cast.detection.id)
    assert (row.queue_state, row.queue_note) == ("held", "Audit.")
    assert (row.queue_changed_at, row.queue_changed_by) == (factories.AT, cast.ada)
    event = AuditEvent.objects.get()
    assert (event.action, event.actor_name, event.project_id) == ("queue.move", "ada", row.id)
    assert (event.before, event.after) == ({"state": "open"}, {"state": "held", "note": "Audit."})
    assert sent == [hints.CYCLE]


def test_a_queue_goes_from_any_state_to_any_other_and_to_none_twice(cast: Cast) -> None:
    for state in (
        QueueState.HELD,
        QueueState.DRAINING,
        QueueState.HELD,
        QueueState.OPEN,
        QueueState.DRAINING,
        QueueState.OPEN,
    ):
        assert move(cast, state).queue_state == state
        with pytest.raises(Conflict, match=f"is {state} already"):
            move(cast, state)


def test_only_opening_needs_no_reason(cast: Cast) -> None:
    for state in (QueueState.HELD, QueueState.DRAINING):
        with pytest.raises(Invalid, match="Say why") as refused:
            move(cast, state, note=" ")
        assert refused.value.pointer == "/note"
    move(cast)
    assert move(cast, QueueState.OPEN, note="").queue_note == ""


@pytest.mark.parametrize("note", ["x" * 501, "a\0", "a\u202eb"])
def test_a_note_that_is_none_changes_nothing(cast: Cast, note: str) -> None:
    with pytest.raises(Invalid) as refused:
        move(cast, note=note)
    assert refused.value.pointer == "/note"
    assert Project.objects.get(id=cast.detection.id).queue_state == QueueState.OPEN


def test_caps_are_set_all_together_and_written_down(cast: Cast) -> None:
    cap(cast, max_running=4, user_max_gpus_milli=500)
    made = cap(cast, max_pending=9, user_max_running=MAX_CAP, user_max_pending=1)
    made.refresh_from_db()
    assert (made.max_running, made.max_pending, made.user_max_running) == (None, 9, MAX_CAP)
    assert (made.user_max_pending, made.user_max_gpus_milli) == (1, None)
    event = AuditEvent.objects.order_by("-id")[0]
    assert event.action == "project.caps"
    assert (event.before["max_running"], event.after["max_running"]) == (4, None)


@pytest.mark.parametrize("value", [0, -1, MAX_CAP + 1])
def test_a_cap_out_of_range_changes_nothing(cast: Cast, value: int) -> None:
    with pytest.raises(Invalid, match="is not between 1 and") as refused:
        cap(cast, max_pending=1, user_max_running=value)
    assert (refused.value.pointer, refused.value.code) == ("/user_max_running", "out-of-range")
    assert Project.objects.get(id=cast.detection.id).max_pending is None


def test_owners_and_operators_may_and_nobody_else(cast: Cast) -> None:
    move(cast, by=cast.oz)
    cap(cast, by=cast.oz)
    for user in (cast.ben, cast.vik, cast.pia):
        with pytest.raises(NotAllowed, match="manage-queue"):
            move(cast, QueueState.OPEN, by=user)
        with pytest.raises(NotAllowed, match="manage-queue"):
            cap(cast, by=user)
    with pytest.raises(NotFound):
        move(cast, QueueState.OPEN, by=cast.cleo)


def test_what_the_fleets_operator_closed_no_owner_opens(cast: Cast) -> None:
    move(cast, by=cast.oz)
    for state in (QueueState.OPEN, QueueState.DRAINING):
        with pytest.raises(NotAllowed, match="oz, who operates the whole fleet, closed the queue"):
            move(cast, state)
    assert Project.objects.get(id=cast.detection.id).queue_state == QueueState.HELD
    assert move(cast, QueueState.OPEN, by=cast.oz).queue_state == QueueState.OPEN
    move(cast)
    assert move(cast, QueueState.OPEN, by=cast.oz).queue_state == QueueState.OPEN


@pytest.fixture
def olive(cast: Cast) -> User:
    """Owner of Detection alone."""
    user = factories.user("olive")
    factories.member(user, Role.OWNER, at=cast.detection)
    return user


def test_a_cap_that_was_set_from_above_no_owner_of_the_project_changes(
    cast: Cast, olive: User
) -> None:
    cap(cast, by=olive, user_max_running=3)
    for above in (cast.ada, cast.oz):
        made = cap(cast, by=above, user_max_running=3, max_running=4, max_submits_a_minute=9)
        assert made.caps_from_above == ["max_running", "max_submits_a_minute"]
    mine = {"max_running": 4, "max_submits_a_minute": 9}
    for asked in ({}, mine | {"max_running": 3}, mine | {"max_submits_a_minute": 10}):
        with pytest.raises(NotAllowed, match="of Detection: set by who is above it") as refused:
            cap(cast, by=olive, **asked)
        assert ("max_running" in refused.value.message) == (asked.get("max_running") != 4)
    row = Project.objects.get(id=cast.detection.id)
    assert (row.max_running, row.user_max_running, row.max_submits_a_minute) == (4, 3, 9)
    made = cap(cast, by=olive, user_max_running=5, max_pending=1, **mine)
    assert (made.user_max_running, made.max_pending) == (5, 1)
    assert made.caps_from_above == ["max_running", "max_submits_a_minute"]


def test_a_cap_that_is_taken_away_from_above_is_the_owners_again(cast: Cast, olive: User) -> None:
    cap(cast, by=cast.oz, max_running=4, max_pending=2)
    made = cap(cast, by=cast.ada, max_pending=2)
    assert made.caps_from_above == ["max_pending"]
    event = AuditEvent.objects.order_by("-id")[0]
    told = [each["caps_from_above"] for each in (event.before, event.after)]
    assert told == [["max_running", "max_pending"], ["max_pending"]]
    assert cap(cast, by=olive, max_running=99, max_pending=2).max_running == 99
