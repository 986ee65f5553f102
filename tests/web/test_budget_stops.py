"""/budgets: a budget that would stop work at once says whose before it is set."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from controlplane.kernel import clock
from controlplane.kernel.throttle import Throttle
from scheduler.models import Workload
from scheduler.services import asking
from tenants.models import Budget
from tests import factories, scenes
from tests.conftest import Cast
from tests.web.conftest import Browse

pytestmark = pytest.mark.usefixtures("one_moment")

URL = reverse("budget-list")


@pytest.fixture
def names(cast: Cast) -> list[str]:
    """Of two that hold four GPUs each, one of which may not be preempted."""
    scenes.halves(cast.detection, cast.ben)
    rows = Workload.objects.order_by("id")
    Workload.objects.filter(id=rows[0].id).update(preemptible=False)
    return [row.name for row in rows]


def form(of: object, **changes: str) -> dict[str, str]:
    return {"of": str(of), "period": "month", "limit_h": "0", "mode": "hard"} | changes


def seen(page: str) -> str:
    """What the button says that stands beside those who would go; "" where none does."""
    found = re.search(r'name="seen" value="([^"]*)"', page)
    return found[1] if found else ""


def send(client: Client, url: str, data: dict[str, str]) -> str:
    return client.post(url, data, follow=True).content.decode()


def test_it_names_them_and_sets_it_once_they_were_seen(
    browse: Browse, cast: Cast, names: list[str]
) -> None:
    client = browse(cast.oz)
    page = send(client, URL, form(cast.detection.id))
    assert all(f">{name}</a>" in page for name in names)
    assert "may not be preempted" in page
    assert "Save, and stop these" in page
    assert not Budget.objects.exists()
    changed = form(cast.detection.id, period="quarter", seen=seen(page))
    assert seen(send(client, URL, changed)) != seen(page)  # of other terms it is told anew
    page = send(client, URL, form(cast.detection.id, seen=seen(page)))
    assert "holds from the next cycle on" in page
    assert "then what runs is stopped" in page
    assert Budget.objects.get().mode == "hard"


def test_one_that_is_changed_to_stop_them_names_them_too(
    browse: Browse, cast: Cast, names: list[str]
) -> None:
    made = factories.budget(cast.detection)
    url, client = reverse("budget-detail", args=[made.id]), browse(cast.oz)
    asked = {"limit_h": "0", "mode": "hard", "version": "1"}
    page = send(client, url, asked)
    assert all(f">{name}</a>" in page for name in names)
    assert "holds from the next cycle on" in send(client, url, asked | {"seen": seen(page)})
    assert client.post(url, asked).status_code == 409


def test_what_stops_nobody_is_set_at_once(browse: Browse, cast: Cast, names: list[str]) -> None:
    client = browse(cast.oz)
    page = send(client, URL, form(cast.detection.id, limit_h="1000000"))
    assert "The budget of Detection holds from the next cycle on." in page
    assert seen(send(client, URL, form(cast.detection.id, limit_h="5"))) == ""  # there is one
    page = send(client, URL, form(cast.detection.id, period="quarter", mode="soft"))
    assert "The budget of Detection holds from the next cycle on." in page


def test_when_work_was_stopped_stands_beside_the_state(browse: Browse, cast: Cast) -> None:
    factories.budget(cast.detection, mode="hard", used_up_at=clock.now())
    page = browse(cast.ben).get(URL).content.decode()
    assert "work was stopped" in page
    assert "Used up" in page


def test_who_asks_too_often_is_told_when_to_come_back(
    browse: Browse, cast: Cast, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ASKED", Throttle(most=1, window=timedelta(minutes=1)))
    client = browse(cast.oz)
    assert seen(send(client, URL, form(cast.detection.id)))
    answer = client.post(URL, form(cast.detection.id))
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "60")
    assert not Budget.objects.exists()
