"""/workloads/<id>/explanation, and the check beside the submit form."""

from datetime import timedelta

import pytest
from django.urls import reverse

from controlplane.kernel import clock
from controlplane.kernel.throttle import Throttle
from scheduler.core.explaining.checks import CheckCode
from scheduler.core.lifecycle import State
from scheduler.models import PodSet, Workload
from scheduler.services import asking
from scheduler.web.explanations import _TITLES
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop, move
from tests.web.test_workload_submit import form

CHECK = reverse("workload-check")
pytestmark = pytest.mark.usefixtures("one_moment")


def url(workload: Workload) -> str:
    return reverse("workload-explanation", args=[workload.id])


@pytest.fixture
def gang(cast: Cast, shop: Shop) -> Workload:
    """It asks for one pod more than is free."""
    made = factories.workload(
        cast.detection, cast.ben, [shop.h100], "gang", pods=16, submitted_at=clock.now()
    )
    move(shop.waiting, State.CANCELLED, ended_at=factories.AT)
    return made


def test_the_page_of_waiting_work_loads_why_late(browse: Browse, cast: Cast, shop: Shop) -> None:
    client = browse(cast.ben)
    waiting = reverse("workload-detail", args=[shop.waiting.id])
    assert (
        f'hx-get="{url(shop.waiting)}" hx-trigger="load"' in client.get(waiting).content.decode()
    )
    running = reverse("workload-detail", args=[shop.running.id])
    assert "explanation" not in client.get(running).content.decode()


def test_a_poll_brings_the_explanation_of_what_waits_and_of_nothing_else(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    client, page = browse(cast.ben), reverse("workload-detail", args=[shop.waiting.id])
    rev = client.get(page).context["rev"]
    move(shop.waiting, State.RUNNING)
    block = client.get(page, {"rev": rev}, headers=HTMX).content.decode()
    assert 'id="explanation"' not in block
    rev = client.get(page).context["rev"]
    move(shop.waiting, State.PENDING)
    block = client.get(page, {"rev": rev}, headers=HTMX).content.decode()
    assert '<div id="explained" hx-morph-skip>' in block
    assert f'hx-get="{url(shop.waiting)}" hx-trigger="load"' in block


def test_it_shows_the_checks_and_what_would_help(
    browse: Browse, cast: Cast, gang: Workload
) -> None:
    page = browse(cast.ben).get(url(gang)).content.decode()
    assert "<title>What a plan decides on gang" in page
    assert "16 asked; the project may hold at most 12 h100-80gb" in page
    assert "Quota of the project, with what it may borrow: 17 of at most 12 h100-80gb" in page
    assert "Start with at least 11 of its pods, not 16; more start with them if they fit." in page
    assert page.count("It would start now.") >= 1
    assert page.index("Its project is open, and all tenants above it") < page.index(
        "Quota of the project"
    )


def test_htmx_gets_the_block_alone(browse: Browse, cast: Cast, gang: Workload) -> None:
    block = browse(cast.ben).get(url(gang), headers=HTMX).content.decode().strip()
    assert block.startswith('<section class="card" id="explanation"')
    assert "<title>" not in block


def test_of_what_waits_no_more_that_is_said(browse: Browse, cast: Cast, shop: Shop) -> None:
    answer = browse(cast.ben).get(url(shop.running))
    assert answer.status_code == 200
    assert "detector does not wait: only what waits is explained." in answer.content.decode()


def test_who_looks_too_often_is_told_so(
    browse: Browse, cast: Cast, gang: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = Throttle(most=1, window=timedelta(minutes=1))
    monkeypatch.setattr(asking, "ASKED", few)
    client = browse(cast.ben)
    client.get(url(gang))
    answer = client.get(url(gang))
    assert (answer.status_code, "At most 1 of these" in answer.content.decode()) == (429, True)
    assert answer.headers["Retry-After"]
    again = client.post(CHECK, form(cast), headers=HTMX)
    assert (again.status_code, "At most 1 of these" in again.content.decode()) == (429, True)


def test_a_check_says_where_it_would_start_and_keeps_the_form(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    move(shop.waiting, State.CANCELLED, ended_at=factories.AT)
    count = PodSet.objects.count()
    block = browse(cast.ben).post(CHECK, form(cast), headers=HTMX).content.decode().strip()
    assert block.startswith('<form class="submit" id="submit"')
    assert "It would start now on north: 1 pod on h100-80gb." in block
    page = browse(cast.ben).post(CHECK, form(cast, name="mine")).content.decode()
    assert "It would start now on north" in page
    assert 'value="mine"' in page
    assert PodSet.objects.count() == count


def test_a_check_says_why_it_would_wait_and_what_would_help(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    block = browse(cast.ben).post(CHECK, form(cast, count="12"), headers=HTMX).content.decode()
    assert "12 asked and 2 in use; the project may hold at most 12 h100-80gb" in block
    assert "Ask for 2 h100-80gb more of quota. It would start now." in block


def test_a_check_of_an_array_is_of_one_element_of_it(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    move(shop.waiting, State.CANCELLED, ended_at=factories.AT)
    client = browse(cast.ben)
    asked = form(cast, array_size="10000")
    block = client.post(CHECK, asked, headers=HTMX).content.decode()
    assert "Of one element of the array:" in block
    assert "It would start now on north: 1 pod on h100-80gb." in block
    assert "Of one element" not in client.post(CHECK, form(cast), headers=HTMX).content.decode()
    answer = client.post(CHECK, asked | {"name": "n" * 97}, headers=HTMX)
    assert (answer.status_code, set(answer.context["form"].errors)) == (422, {"name"})


def test_a_check_of_a_faulty_form_shows_its_faults(browse: Browse, cast: Cast, shop: Shop) -> None:
    answer = browse(cast.ben).post(CHECK, form(cast, image="", cpu="999"), headers=HTMX)
    assert answer.status_code == 422
    assert set(answer.context["form"].errors) == {"image"}
    answer = browse(cast.ben).post(CHECK, form(cast, cpu="999"), headers=HTMX)
    assert answer.status_code == 422
    assert set(answer.context["form"].errors) == {"cpu"}
    assert answer.content.decode().strip().startswith('<form class="submit" id="submit"')


def test_every_check_has_its_words() -> None:
    assert set(_TITLES) == set(CheckCode)
