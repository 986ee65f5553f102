"""/workloads: what the actor sees, newest first, a page at a time."""

import pytest
from django.urls import reverse

from scheduler.core.lifecycle import State
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop, move

URL = reverse("workload-list")


def names(answer: object) -> list[str]:
    return [line.name for line in answer.context["page"].lines]  # type: ignore[attr-defined]  # the test client's


def test_it_lists_the_newest_first(browse: Browse, cast: Cast, shop: Shop) -> None:
    assert names(browse(cast.ben).get(URL)) == ["sweep", "detector"]


def test_it_says_where_it_runs_and_why_it_waits(browse: Browse, cast: Cast, shop: Shop) -> None:
    page = browse(cast.ben).get(URL).content.decode()
    assert "north" in page
    assert "1 asked, 0 free in one cluster." in page
    assert f'as of <time datetime="{factories.AT.isoformat()}">' in page


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"state": "waiting"}, ["sweep"]),
        ({"state": "active"}, ["detector"]),
        ({"state": "ended"}, []),
        ({"state": "RUNNING"}, ["detector"]),
        ({"mine": "1"}, ["sweep", "detector"]),
    ],
)
def test_it_narrows_by_state_and_submitter(
    browse: Browse, cast: Cast, shop: Shop, query: dict[str, str], expected: list[str]
) -> None:
    assert names(browse(cast.ben).get(URL, query)) == expected
    assert names(browse(cast.cleo).get(URL, query)) == []


def test_it_narrows_by_project(browse: Browse, cast: Cast, shop: Shop) -> None:
    factories.workload(cast.segmentation, cast.ada, [shop.h100], "masks")
    client = browse(cast.ada)
    assert names(client.get(URL, {"project": str(cast.segmentation.id)})) == ["masks"]


@pytest.mark.parametrize(
    "query", [{"state": "asleep"}, {"project": "7"}, {"before": "\x00"}, {"after": "x"}]
)
def test_a_filter_of_nonsense_is_not_found(
    browse: Browse, cast: Cast, query: dict[str, str]
) -> None:
    assert browse(cast.ben).get(URL, query).status_code == 404


def test_an_outsider_sees_nothing_of_it(browse: Browse, cast: Cast, shop: Shop) -> None:
    page = browse(cast.cleo).get(URL)
    assert names(page) == []
    assert "No workloads yet" in page.content.decode()


def test_it_pages_without_loss_or_doubles(browse: Browse, cast: Cast, shop: Shop) -> None:
    for number in range(60):
        factories.workload(cast.detection, cast.ben, [shop.h100], f"w{number:02d}")
    client = browse(cast.ben)
    first = client.get(URL)
    second = client.get(first.context["older_url"])
    third = client.get(second.context["older_url"])
    listed = names(first) + names(second) + names(third)
    assert len(listed) == len(set(listed)) == 62
    assert third.context["older_url"] == ""
    assert names(client.get(third.context["newer_url"])) == names(second)
    assert first.context["newer_url"] == ""


def test_a_poll_counts_what_came_later_and_keeps_the_rows(
    browse: Browse, cast: Cast, shop: Shop, settled: None
) -> None:
    client = browse(cast.ben)
    shown = client.get(URL)
    query = {"first": str(shown.context["first"]), "rev": shown.context["rev"]}
    assert client.get(URL, query, headers=HTMX).status_code == 204
    factories.workload(cast.detection, cast.ben, [shop.h100], "late")
    changed = client.get(URL, query, headers=HTMX)
    assert names(changed) == ["sweep", "detector"]
    assert "1 newer workload" in changed.content.decode()
    assert changed.content.lstrip().startswith(b"<section")


def test_a_change_of_state_shows_in_the_next_poll(
    browse: Browse, cast: Cast, shop: Shop, settled: None
) -> None:
    client = browse(cast.ben)
    shown = client.get(URL)
    move(shop.waiting, State.ADMITTED)
    changed = client.get(
        URL, {"first": str(shown.context["first"]), "rev": shown.context["rev"]}, headers=HTMX
    )
    assert "Admitted" in changed.content.decode()


def test_it_rejects_post(browse: Browse, cast: Cast) -> None:
    assert browse(cast.ben).post(URL).status_code == 405


def test_a_viewer_has_no_submit_button(browse: Browse, cast: Cast, shop: Shop) -> None:
    link = f'href="{reverse("workload-submit")}">'
    heading = browse(cast.vik).get(URL).content.decode().partition('class="heading"')[2]
    assert link not in heading
    assert link in browse(cast.ben).get(URL).content.decode().partition('class="heading"')[2]


@pytest.mark.parametrize("name", ["workload-list", "queue", "spend"])
def test_a_filter_shows_which_project_it_is_set_to(
    browse: Browse, cast: Cast, shop: Shop, name: str
) -> None:
    query = {"project": str(cast.detection.id)}
    page = browse(cast.ada).get(reverse(name), query).content.decode()
    assert f'value="{cast.detection.id}" selected>Vision Lab / Detection</option>' in page
    assert f'value="{cast.segmentation.id}">Vision Lab / Segmentation</option>' in page
