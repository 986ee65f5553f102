"""/workloads/new/modes: what each mode would cost, beside the form that asks."""

import pytest
from django.urls import reverse

from scheduler.models import Attempt, AttemptOutcome, Workload
from tenants.models import Quota
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop
from tests.web.test_workload_submit import form

pytestmark = pytest.mark.usefixtures("one_moment")
MODES = reverse("workload-modes")


def row(page: str, mode: str) -> str:
    """The row of a mode."""
    return page.partition(f'id="mode-{mode}"')[2].partition("</tr>")[0]


def test_each_mode_tells_its_price_what_must_be_guaranteed_and_when_it_starts(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    before = Workload.objects.count()
    sent = form(cast, count="4", min_count="2")
    answer = browse(cast.ben).post(MODES, sent, headers=HTMX)
    assert answer.status_code == 200
    page = answer.content.decode()
    for mode in ("preemptible", "non-preemptible"):
        assert "€10.00" in row(page, mode)  # four at 2.50
        assert "now, 4 pods in north" in row(page, mode)
    for mode in ("elastic", "semi-preemptible"):
        assert "€5.00 to €10.00" in row(page, mode)
    assert "not needed" in row(page, "elastic")
    assert "2 h100-80gb, 7 left" in row(page, "semi-preemptible")
    assert "4 h100-80gb, 7 left" in row(page, "non-preemptible")
    assert 'value="preemptible" checked' in row(page, "preemptible")
    assert Workload.objects.count() == before


def test_a_mode_in_which_it_could_never_start_says_so_and_the_others_are_told(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    Quota.objects.filter(project=cast.detection).update(borrowing_limit_milli=8000)
    page = browse(cast.ben).post(MODES, form(cast, gpus="8", count="1"), headers=HTMX)
    assert "now, 1 pod" in row(page.content.decode(), "preemptible")
    Quota.objects.filter(project=cast.detection).update(nominal_milli=4000)
    page = browse(cast.ben).post(MODES, form(cast, gpus="8", count="1"), headers=HTMX)
    told = page.content.decode()
    assert "never: " in row(told, "non-preemptible")
    assert "are guaranteed to the project" in row(told, "non-preemptible")
    assert "never: " not in row(told, "preemptible")
    assert "Say with how many pods" in row(told, "elastic")


def test_what_evictions_cost_the_project_is_told(browse: Browse, cast: Cast, shop: Shop) -> None:
    attempt = Attempt.objects.filter(workload=shop.running).earliest("id")
    assert attempt.ended_at is None
    page = browse(cast.ben).post(MODES, form(cast), headers=HTMX).content.decode()
    assert "lost work of this project: 0." in page
    Attempt.objects.filter(id=attempt.id).update(
        ended_at=attempt.created_at, outcome=AttemptOutcome.PREEMPTED, lost_milli_s=7_200_000
    )
    page = browse(cast.ben).post(MODES, form(cast), headers=HTMX).content.decode()
    assert "lost work of this project: 1, 2 GPU-hours." in page


def test_faults_are_told_beside_their_fields(browse: Browse, cast: Cast, shop: Shop) -> None:
    answer = browse(cast.ben).post(MODES, form(cast, image="not an image!"), headers=HTMX)
    assert answer.status_code == 422
    assert "image" in answer.context["form"].errors
