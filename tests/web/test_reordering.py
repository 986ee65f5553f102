"""The forms that reorder what waits, on the pages of workloads and arrays."""

import pytest
from django.urls import reverse

from scheduler.core.lifecycle import State
from scheduler.models import Workload
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import Browse, Shop


@pytest.fixture
def work(cast: Cast, shop: Shop) -> Workload:
    return factories.workload(cast.detection, cast.ben, [shop.h100])


def test_its_submitter_gives_it_another_priority_there(
    browse: Browse, cast: Cast, work: Workload
) -> None:
    ben, url = browse(cast.ben), reverse("workload-order", args=[work.id])
    page = reverse("workload-detail", args=[work.id])
    assert url in ben.get(page).content.decode()
    done = ben.post(url, {"priority_class": "high", "to": "", "version": "1"})
    assert (done.status_code, done["Location"]) == (303, page)
    seen = ben.get(page).content.decode()
    for told in ("Reordered train.", "high (100)", "priority normal → high by ben", 'value="2"'):
        assert told in seen


def test_put_first_it_says_as_of_when_it_queues(
    browse: Browse, cast: Cast, shop: Shop, work: Workload
) -> None:
    ada = browse(cast.ada)
    ada.post(reverse("workload-order", args=[work.id]), {"to": "first", "version": "1"})
    work.refresh_from_db()
    assert work.turn_of == shop.waiting.id
    assert "Queues as of" in ada.get(reverse("workload-detail", args=[work.id])).content.decode()


def test_who_may_not_and_what_runs_have_no_form(
    browse: Browse, cast: Cast, shop: Shop, work: Workload
) -> None:
    running = reverse("workload-detail", args=[shop.running.id])
    assert "Place in the queue" not in browse(cast.ada).get(running).content.decode()
    vik = browse(cast.vik)
    assert (
        "Place in the queue"
        not in vik.get(reverse("workload-detail", args=[work.id])).content.decode()
    )
    url = reverse("workload-order", args=[work.id])
    assert vik.post(url, {"to": "first", "version": "1"}).status_code == 403


@pytest.mark.parametrize(
    ("sent", "status", "told"),
    [
        ({"to": "first", "version": "7"}, 409, "at version 1 by now, of priority normal, not 7"),
        ({"version": "1"}, 422, "Say what changes"),
        ({"priority_class": "utmost", "version": "1"}, 422, "utmost is not one of the"),
        ({"to": "first"}, 422, "This field is required."),
    ],
)
def test_a_refusal_is_told_on_the_page(
    browse: Browse, cast: Cast, work: Workload, sent: dict[str, str], status: int, told: str
) -> None:
    answer = browse(cast.ben).post(reverse("workload-order", args=[work.id]), sent)
    assert (answer.status_code, told in answer.content.decode()) == (status, True)
    work.refresh_from_db()
    assert (work.version, work.priority_class, work.turn_at) == (1, "normal", None)


def test_what_waits_of_an_array_is_reordered_on_its_page(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    array = factories.array(cast.detection, cast.ben, [shop.h100])
    page, url = reverse("array-detail", args=[array.id]), reverse("array-order", args=[array.id])
    ben = browse(cast.ben)
    assert url in ben.get(page).content.decode()
    assert ben.post(url, {"priority_class": "low"})["Location"] == page
    assert {each.priority_class for each in array.elements.all()} == {"low"}
    array.elements.update(state=State.ADMITTED, version=3)
    assert url not in ben.get(page).content.decode()
    assert ben.post(url, {"priority_class": "high"}).status_code == 409
