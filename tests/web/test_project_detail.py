"""/projects/<id>: its queue and caps, and the forms that change them."""

from uuid import uuid4

import pytest
from django.urls import reverse

from controlplane.kernel.queues import QueueState
from scheduler.core.lifecycle import State
from tenants.models import Project, Role
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import Browse, Shop


def url(of: Project, name: str = "project-detail") -> str:
    return reverse(name, args=[of.id])


def held(of: Project, state: QueueState = QueueState.HELD) -> None:
    changed = {"queue_changed_at": factories.AT, "queue_changed_by": of.members.get().user}
    Project.objects.filter(id=of.id).update(queue_state=state, queue_note="New racks.", **changed)


def test_who_may_not_change_it_sees_the_state_the_caps_and_no_button(
    browse: Browse, cast: Cast
) -> None:
    held(cast.detection)
    Project.objects.update(max_running=7, user_max_gpus_milli=2500)
    page = browse(cast.ben).get(url(cast.detection)).content.decode()
    for told in ("Held", "Nothing new starts", "New racks.", ">ben<", "<dd>7</dd>", ">2.5<"):
        assert told in page
    assert page.count("<dd>no cap</dd>") == 5
    assert url(cast.detection, "project-queue") not in page
    assert url(cast.detection, "project-caps") not in page


def test_before_a_drain_is_confirmed_the_page_says_how_many_it_stops(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    for name, preemptible in (("other", True), ("kept", False)):
        factories.workload(
            cast.detection, cast.ben, [shop.h100], name,
            state=State.RUNNING, preemptible=preemptible,
        )  # fmt: skip
    page = browse(cast.ada).get(url(cast.detection)).content.decode()
    assert "2 that may be stopped, 1 that may not" in page
    assert (
        "Drain Detection? 2 workloads are stopped and wait again; "
        "1 that may not be stopped ends by itself." in page
    )


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("held", "The queue of Detection is held: nothing new starts."),
        ("draining", "The queue of Detection is draining: what may be stopped gives way."),
    ],
)
def test_an_owner_moves_the_queue_and_opens_it_again(
    browse: Browse, cast: Cast, state: str, told: str
) -> None:
    client = browse(cast.ada)
    answer = client.post(
        url(cast.detection, "project-queue"), {"state": state, "note": "New racks."}, follow=True
    )
    page = answer.content.decode()
    assert told in page
    assert "New racks." in page
    assert f'value="{state}"' not in page
    client.post(url(cast.detection, "project-queue"), {"state": "open"})
    cast.detection.refresh_from_db()
    assert cast.detection.queue_state == QueueState.OPEN


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"state": "held"}, "Say why, in 1 to 500 characters."),
        ({"state": "held", "note": "x" * 501}, "at most 500 characters"),
        ({"state": "closed", "note": "x"}, "Select a valid choice"),
        ({"note": "x"}, "This field is required."),
        ({"state": "held", "note": "x", "by": "me"}, "no such field"),
    ],
)
def test_a_bad_move_comes_back_with_what_is_wrong(
    browse: Browse, cast: Cast, body: dict[str, str], told: str
) -> None:
    answer = browse(cast.ada).post(url(cast.detection, "project-queue"), body)
    assert answer.status_code == 422
    assert told.lower() in answer.content.decode().lower()
    cast.detection.refresh_from_db()
    assert cast.detection.queue_state == QueueState.OPEN


def test_what_somebody_did_meanwhile_is_told(browse: Browse, cast: Cast) -> None:
    held(cast.detection)
    body = {"state": "held", "note": "Mine."}
    answer = browse(cast.ada).post(url(cast.detection, "project-queue"), body)
    assert answer.status_code == 409
    page = answer.content.decode()
    assert "The queue of Detection is held already." in page
    assert "New racks." in page


def test_caps_are_shown_saved_and_taken_away(browse: Browse, cast: Cast) -> None:
    client, caps = browse(cast.ada), url(cast.detection, "project-caps")
    answer = client.post(caps, {"max_running": "4", "user_max_gpus": "2.5"}, follow=True)
    page = answer.content.decode()
    assert "The caps of Detection hold from the next cycle on." in page
    assert 'name="max_running" value="4"' in page
    assert 'name="user_max_gpus" value="2.5"' in page
    cast.detection.refresh_from_db()
    assert (cast.detection.max_running, cast.detection.user_max_gpus_milli) == (4, 2500)
    client.post(caps, {})
    cast.detection.refresh_from_db()
    assert (cast.detection.max_running, cast.detection.user_max_gpus_milli) == (None, None)


@pytest.mark.parametrize(
    "body",
    [
        {"max_running": "0"},
        {"max_running": "1.5"},
        {"user_max_gpus": "0"},
        {"user_max_gpus": "0.0001"},
        {"user_max_pending": str(10**9 + 1)},
        {"max_gpus": "3"},
    ],
)
def test_bad_caps_come_back_and_change_nothing(
    browse: Browse, cast: Cast, body: dict[str, str]
) -> None:
    answer = browse(cast.ada).post(
        url(cast.detection, "project-caps"), {"user_max_running": "1"} | body
    )
    assert answer.status_code == 422
    assert answer.context["caps_form"].errors
    cast.detection.refresh_from_db()
    assert cast.detection.user_max_running is None


def test_who_may_not_is_refused_and_outsiders_see_nothing(browse: Browse, cast: Cast) -> None:
    for name, body in (
        ("project-queue", {"state": "held", "note": "x"}),
        ("project-caps", {"max_running": "1"}),
    ):
        assert browse(cast.ben).post(url(cast.detection, name), body).status_code == 403
        assert browse(cast.cleo).post(url(cast.detection, name), body).status_code == 404
    assert browse(cast.cleo).get(url(cast.detection)).status_code == 404
    assert browse(cast.ada).get(reverse("project-detail", args=[uuid4()])).status_code == 404


def test_the_queue_page_says_that_a_queue_is_closed_and_why(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    queue = reverse("queue")
    assert "Nothing new starts" not in browse(cast.ben).get(queue).content.decode()
    held(cast.detection, QueueState.DRAINING)
    page = browse(cast.ben).get(queue).content.decode()
    assert "Nothing of it starts, and what runs and may be stopped gives way: New racks." in page
    assert url(cast.detection) in page


def test_quota_leads_to_it(browse: Browse, cast: Cast) -> None:
    assert url(cast.detection) in browse(cast.ben).get(reverse("quota-list")).content.decode()


def test_caps_from_above_are_shown_to_its_owner_as_what_others_change(
    browse: Browse, cast: Cast
) -> None:
    caps = url(cast.detection, "project-caps")
    given = {"max_running": "4", "user_max_gpus": "2.5"}
    assert browse(cast.ada).post(caps, given).status_code == 303
    olive = factories.user("olive")
    factories.member(olive, Role.OWNER, at=cast.detection)
    for user, shown in ((olive, 2), (cast.ada, 0)):
        page = browse(user).get(url(cast.detection)).content.decode()
        assert page.count("Set by who is above it: ask them to change it.") == shown
        assert page.count("readonly") == shown
    assert browse(olive).post(caps, given | {"max_running": "5"}).status_code == 403
    assert browse(olive).post(caps, given | {"max_pending": "5"}).status_code == 303
    row = Project.objects.get(id=cast.detection.id)
    assert (row.max_running, row.max_pending, row.user_max_gpus_milli) == (4, 5, 2500)
