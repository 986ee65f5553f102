"""/clusters/…/defragmentation: what would move, planning it, calling it off."""

from datetime import timedelta

import pytest
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from controlplane.audit.models import AuditEvent
from controlplane.kernel.throttle import Throttle
from scheduler.core.lifecycle import State
from scheduler.models import Defragmentation, Workload
from scheduler.services import asking
from tests import factories, scenes
from tests.conftest import Cast
from tests.web.conftest import Browse, Shop

URL = reverse("cluster-defragmentation-page", args=["north"])
CALL_OFF = reverse("cluster-defragmentation-call-off", args=["north"])
WINDOW = {"hours": "2", "starts_at": "2100-01-01T10:00", "ends_at": "2100-01-01T12:00"}
pytestmark = pytest.mark.usefixtures("one_moment")


def test_it_shows_what_would_move_and_what_is_gained(
    browse: Browse, cast: Cast, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    rows = scenes.halves(cast.detection, cast.ben)
    client = browse(cast.oz)
    client.get(reverse("token-list"))  # a session is listed once, not with each page
    with django_assert_max_num_queries(31):
        page = client.get(URL).content.decode()
    assert sum(f">{row.name}<" in page for row in rows) == 1
    assert "<td>n1</td>" in page
    assert "<td>n2</td>" in page
    assert "Nodes with nothing on them: 0 now, 1 then." in page
    assert not Defragmentation.objects.exists()
    assert not Workload.objects.filter(state=State.PREEMPTING).exists()


def test_an_operator_plans_one_in_their_own_time_zone_and_calls_it_off(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    client = browse(cast.oz)
    client.cookies["berth_tz"] = "Europe/Berlin"
    page = client.post(URL, WINDOW, follow=True).content.decode()
    assert "A defragmentation of north is planned." in page
    assert "By oz, from" in page
    made = Defragmentation.objects.get()
    assert (made.budget_s, made.starts_at.isoformat()) == (7200, "2100-01-01T09:00:00+00:00")
    assert AuditEvent.objects.get().actor_name == "oz"
    assert "is called off." in client.post(CALL_OFF, follow=True).content.decode()
    assert "is planned." in client.post(CALL_OFF, follow=True).content.decode()
    made.refresh_from_db()
    assert made.ended_at is not None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hours": "0"}, "greater than or equal to 1"),
        ({"hours": "1.5"}, "Enter a whole number"),
        ({"starts_at": "soon"}, "Enter a valid date/time"),
        ({"ends_at": "2100-01-01T10:00"}, "The window has to end after it starts"),
        ({"ends_at": "2100-02-01T10:00"}, "within 7 days"),
        ({"budget": "1"}, "budget"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_planned(
    browse: Browse, cast: Cast, shop: Shop, changes: dict[str, str], words: str
) -> None:
    answer = browse(cast.oz).post(URL, WINDOW | changes)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not Defragmentation.objects.exists()


def test_a_second_one_is_refused_while_one_is_planned(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    factories.defragmentation(shop.north)
    answer = browse(cast.oz).post(URL, WINDOW)
    assert answer.status_code == 422
    assert Defragmentation.objects.count() == 1


def test_who_looks_too_often_is_told_so(
    browse: Browse, cast: Cast, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ASKED", Throttle(most=1, window=timedelta(minutes=1)))
    client = browse(cast.oz)
    client.get(URL)
    answer = client.get(URL)
    page = answer.content.decode()
    assert (answer.status_code, "At most 1 of these" in page) == (429, True)
    assert answer.headers["Retry-After"]
    assert "Nothing to move" not in page
    assert client.post(URL, WINDOW).status_code == 303
    assert Defragmentation.objects.exists()


def test_there_is_none_of_a_cluster_that_there_is_not(browse: Browse, cast: Cast) -> None:
    url = reverse("cluster-defragmentation-page", args=["nowhere"])
    assert browse(cast.oz).get(url).status_code == 404
