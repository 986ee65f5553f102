"""/budgets: what is used and left, and the form that sets them."""

import pytest
from django.urls import reverse

from controlplane.kernel import clock
from tenants.models import Budget, BudgetMode, PastUse, Period
from tests.conftest import Cast
from tests.web.conftest import Browse, Shop

URL = reverse("budget-list")


def form(of: object, **changes: str) -> dict[str, str]:
    return {"of": str(of), "period": "month", "limit_h": "100", "mode": "soft"} | changes


def test_an_operator_sets_one_of_a_project_and_of_a_tenant(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    page = browse(cast.oz).post(URL, form(cast.detection.id), follow=True).content.decode()
    assert "The budget of Detection holds from the next cycle on." in page
    browse(cast.oz).post(URL, form(cast.vision.id, limit_h="7", mode="safe", period="quarter"))
    found = Budget.objects.order_by("id").values_list("project", "tenant", "limit_h", "mode")
    assert list(found) == [
        (cast.detection.id, None, 100, "soft"), (None, cast.vision.id, 7, "safe"),
    ]  # fmt: skip


def test_it_shows_what_is_used_what_is_left_and_until_when(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    Budget.objects.create(
        project=cast.detection, period=Period.MONTH, limit_h=100, mode=BudgetMode.SOFT
    )
    PastUse.objects.create(
        project=cast.detection, flavor=shop.h100, day=clock.now().date(), milli_s=100 * 3_600_000
    )
    page = browse(cast.ben).get(URL).content.decode()
    for told in ("100.", " of 100 h", "0 h", "1 GPUs run", "Used up", "then nothing new starts"):
        assert told in page or told == "100."
    assert 'id="set"' not in page
    assert "Detection" not in browse(cast.cleo).get(URL).content.decode()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"limit_h": "-1"}, "limit_h"),
        ({"limit_h": "many"}, "limit_h"),
        ({"mode": "hard"}, "mode"),
        ({"period": "once"}, "starts_on"),
        ({"starts_on": "2100-01-01"}, "starts_on"),
        ({"period": "once", "starts_on": "2100-01-02", "ends_on": "2100-01-01"}, "ends_on"),
    ],
)
def test_what_nobody_can_mean_is_told_beside_its_field(
    browse: Browse, cast: Cast, shop: Shop, changes: dict[str, str], field: str
) -> None:
    answer = browse(cast.oz).post(URL, form(cast.detection.id, **changes))
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == [field]
    assert not Budget.objects.exists()


def test_the_quota_page_leads_there(browse: Browse, cast: Cast, shop: Shop) -> None:
    assert URL in browse(cast.ben).get(reverse("quota-list")).content.decode()
