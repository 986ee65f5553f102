"""/arrays/<id>, and the one row that an array is elsewhere."""

import re

import pytest
from django.urls import reverse

from scheduler.models import Dependency, Workload, WorkloadArray
from scheduler.selectors import listing
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop


def text(answer: object) -> str:
    """What a reader sees of the page's content, blanks as one."""
    page = answer.content.decode().partition("<main")[2]  # type: ignore[attr-defined]  # the test client's
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


@pytest.fixture
def array(cast: Cast, shop: Shop) -> WorkloadArray:
    made = factories.array(cast.detection, cast.ben, [shop.h100], 30, name="many", most_at_once=3)
    Workload.objects.filter(array=made, array_index__in=[1, 28]).update(
        state="RUNNING", version=2, started_at=factories.AT
    )
    return made


def url(array: WorkloadArray, query: str = "") -> str:
    return reverse("array-detail", args=[array.id]) + query


def test_it_counts_its_elements_by_state_and_lists_the_first(
    browse: Browse, cast: Cast, array: WorkloadArray
) -> None:
    page = text(browse(cast.ben).get(url(array)))
    assert "An array of 30 · at most 3 at once" in page
    assert re.search(r"Pending 28 Running 2", page), page
    shown = re.findall(r"many\[(\d+)\]", page)
    assert shown == [str(i) for i in range(listing.PAGE)]
    behind = text(browse(cast.ben).get(url(array, f"?from={listing.PAGE}")))
    assert re.findall(r"many\[(\d+)\]", behind) == [str(i) for i in range(listing.PAGE, 30)]


def test_it_narrows_to_a_state(browse: Browse, cast: Cast, array: WorkloadArray) -> None:
    page = text(browse(cast.ben).get(url(array, "?state=RUNNING")))
    assert re.findall(r"many\[(\d+)\]", page) == ["1", "28"]
    assert "No element is like this now" in text(browse(cast.ben).get(url(array, "?state=FAILED")))


@pytest.mark.parametrize("query", ["?state=running", "?from=-1", "?from=x", "?from=9999999"])
def test_there_is_no_page_for_what_no_link_has(
    browse: Browse, cast: Cast, array: WorkloadArray, query: str
) -> None:
    assert browse(cast.ben).get(url(array, query)).status_code == 404


def test_others_do_not_see_it(browse: Browse, cast: Cast, array: WorkloadArray) -> None:
    assert browse(cast.cleo).get(url(array)).status_code == 404


def test_a_poll_is_told_that_nothing_changed(
    browse: Browse, cast: Cast, array: WorkloadArray
) -> None:
    client = browse(cast.ben)
    rev = client.get(url(array)).context["rev"]
    assert client.get(url(array, f"?rev={rev}"), headers=HTMX).status_code == 204
    Workload.objects.filter(array=array, array_index=0).update(state="ADMITTED", version=2)
    assert client.get(url(array, f"?rev={rev}"), headers=HTMX).status_code == 200


def test_what_its_elements_wait_for_by_index_is_told_and_released(
    browse: Browse, cast: Cast, shop: Shop, array: WorkloadArray
) -> None:
    client = browse(cast.ben)
    later = factories.array(cast.detection, cast.ben, [shop.h100], 2, name="next")
    pairs = zip(
        later.elements.order_by("array_index"),
        array.elements.order_by("array_index"),
        strict=False,
    )
    rows = [
        Dependency.objects.create(
            workload=mine, on_workload=other, kind="after-success", on_unmet="hold"
        )
        for mine, other in pairs
    ]
    page = text(client.get(url(later)))
    assert "After the success of the same index of many" in page
    assert "Release" not in page
    Dependency.objects.filter(id=rows[1].id).update(unmet_at=factories.AT)
    assert "many can't come any more: held" in text(client.get(url(later))).replace("&#x27;", "'")
    answer = client.post(reverse("array-release", args=[later.id]), follow=True)
    assert "Released next." in answer.content.decode()
    assert client.post(reverse("array-release", args=[later.id])).status_code == 409
    rows[1].refresh_from_db()
    assert rows[1].settled_at is not None


def test_all_of_it_is_cancelled_by_a_plain_post(
    browse: Browse, cast: Cast, array: WorkloadArray
) -> None:
    client = browse(cast.ben)
    answer = client.post(reverse("array-cancel", args=[array.id]), follow=True)
    assert "Asked for all of many to be stopped." in answer.content.decode()
    assert array.elements.filter(state="CANCELLED").count() == 28
    assert array.elements.filter(state="CANCELLING").count() == 2


def test_a_refusal_is_told_on_its_page(browse: Browse, cast: Cast, array: WorkloadArray) -> None:
    address = reverse("array-cancel", args=[array.id])
    answer = browse(cast.vik).post(address)
    assert answer.status_code == 403
    assert "may cancel this array" in answer.content.decode()
    assert "Cancel array" not in answer.content.decode()
    ended = factories.array(cast.detection, cast.ben, [], 1)
    ended.elements.update(state="CANCELLED", version=2, ended_at=factories.AT)
    assert browse(cast.ben).post(reverse("array-cancel", args=[ended.id])).status_code == 409


def test_the_list_has_one_row_for_it(browse: Browse, cast: Cast, array: WorkloadArray) -> None:
    answer = browse(cast.ben).get(reverse("workload-list"))
    names = [line.name for line in answer.context["page"].lines]
    assert names == ["many[0]", "sweep", "detector"]
    page = text(answer)
    assert "many[" not in page
    assert "An array of 30, at most 3 at once" in page
    assert re.search(r"28 Pending 2 Running", page), page
    running = browse(cast.ben).get(reverse("workload-list"), {"state": "RUNNING"})
    assert [line.name for line in running.context["page"].lines] == ["many[0]", "detector"]


def test_the_queue_has_one_row_for_it_and_its_place(
    browse: Browse, cast: Cast, shop: Shop, array: WorkloadArray
) -> None:
    factories.workload(cast.detection, cast.ben, [shop.h100], "behind")
    answer = browse(cast.ben).get(reverse("queue"))
    [queue] = [one for one in answer.context["queues"].queues if one.waiting.count]
    assert [(line.name, line.place) for line in queue.lines] == [
        ("sweep", 1), ("many[0]", 2), ("behind", 30),
    ]  # fmt: skip
    assert queue.shown == queue.waiting.count == 30
    page = text(answer)
    assert "An array of 30, 3 at once: 28 pending, 2 running" in page
    assert "All 30 that wait" not in page


def test_the_first_that_waits_stands_for_it_in_the_queue(
    browse: Browse, cast: Cast, array: WorkloadArray
) -> None:
    array.elements.filter(array_index=0).update(state="RUNNING", version=2)
    answer = browse(cast.ben).get(reverse("queue"))
    [queue] = [one for one in answer.context["queues"].queues if one.waiting.count]
    assert [line.name for line in queue.lines] == ["sweep", "many[2]"]


def test_an_element_says_what_it_is_of_and_what_it_starts_after(
    browse: Browse, cast: Cast, shop: Shop, array: WorkloadArray
) -> None:
    Dependency.objects.create(array=array, on_workload=shop.waiting, kind="after-end")
    element = array.elements.get(array_index=4)
    for address in (reverse("workload-detail", args=[element.id]), url(array)):
        page = browse(cast.ben).get(address)
        assert "After the end of sweep" in text(page)
        assert reverse("workload-detail", args=[shop.waiting.id]) in page.content.decode()
    assert "of the array many" in text(
        browse(cast.ben).get(reverse("workload-detail", args=[element.id]))
    )


def test_what_a_reader_does_not_see_has_no_name(
    browse: Browse, cast: Cast, shop: Shop, array: WorkloadArray
) -> None:
    other = factories.project(factories.tenant("other"))
    secret = factories.workload(other, cast.cleo, [shop.h100], "secret")
    later = factories.workload(cast.detection, cast.ben, [shop.h100], "later")
    Dependency.objects.create(workload=later, on_workload=secret, kind="after-success")
    page = text(browse(cast.ben).get(reverse("workload-detail", args=[later.id])))
    assert f"After the success of {secret.id}" in page
    assert "secret" not in page


def test_home_has_one_row_for_what_waits_of_it(
    browse: Browse, cast: Cast, array: WorkloadArray
) -> None:
    array.elements.filter(array_index=0).update(state="RUNNING", version=2)
    answer = browse(cast.ben).get(reverse("home"))
    assert [line.name for line in answer.context["board"].waiting] == ["many[2]", "sweep"]
    assert "27 of 30, each h100-80gb" in text(answer)
