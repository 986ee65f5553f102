"""/budgets: what is used and left, and the forms that make, change and remove them."""

import pytest
from django.urls import reverse

from controlplane.kernel import clock
from tenants.models import Budget, BudgetMode, PastUse, Period
from tests import factories
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
        ({"mode": "loud"}, "mode"),
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


def test_one_of_the_same_periods_is_changed_and_not_made_again(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    made = factories.budget(cast.detection)
    answer = browse(cast.oz).post(URL, form(cast.detection.id, period="quarter"))
    assert answer.status_code == 422
    assert answer.context["form"].errors == {
        "period": ["Detection has such a budget already: change that one."]
    }
    link = reverse("budget-detail", args=[made.id])
    assert link in answer.content.decode()
    assert link not in browse(cast.ben).get(URL).content.decode()
    assert browse(cast.ben).get(link).status_code == 403
    form_of = browse(cast.oz).get(link).content.decode()
    assert reverse("budget-remove", args=[made.id]) in form_of
    made.refresh_from_db()
    assert (made.limit_h, made.version) == (1000, 1)


def test_what_another_changed_meanwhile_is_told_and_not_overwritten(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    made = factories.budget(cast.detection)
    url, client = reverse("budget-detail", args=[made.id]), browse(cast.oz)
    seen = client.get(url).context["form"].initial
    assert (seen["limit_h"], seen["mode"], seen["version"]) == (1000, "warn", 1)
    changes = {"limit_h": "7", "mode": "soft", "version": "1"}
    assert (
        "holds from the next cycle on" in client.post(url, changes, follow=True).content.decode()
    )
    late = client.post(url, changes | {"limit_h": "8"})
    assert late.status_code == 409
    assert "The budget is at version 2 by now, not 1." in late.content.decode()
    made.refresh_from_db()
    assert (made.limit_h, made.mode, made.version) == (7, "soft", 2)


def test_days_are_of_one_for_once_alone(browse: Browse, cast: Cast, shop: Shop) -> None:
    once = factories.budget(
        cast.detection, period=Period.ONCE, starts_on="2100-01-01", ends_on="2100-02-01"
    )
    client, terms = browse(cast.oz), {"limit_h": "7", "mode": "soft", "version": "1"}
    url = reverse("budget-detail", args=[once.id])
    days = {"starts_on": "2100-01-02", "ends_on": "2100-01-01"}
    answer = client.post(url, terms | days)
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, ["ends_on"])
    assert client.post(url, terms | days | {"ends_on": "2100-01-03"}).status_code == 303
    once.refresh_from_db()
    assert str(once.ends_on) == "2100-01-03"
    url = reverse("budget-detail", args=[factories.budget(cast.detection).id])
    assert "starts_on" not in client.get(url).context["form"].fields


def test_it_is_removed_by_whoever_may_set_it(browse: Browse, cast: Cast, shop: Shop) -> None:
    url = reverse("budget-remove", args=[factories.budget(cast.detection).id])
    assert browse(cast.ben).post(url).status_code == 403
    page = browse(cast.oz).post(url, follow=True).content.decode()
    assert "The budget of Detection is removed." in page
    assert "No budget yet" in page
    assert browse(cast.oz).post(url).status_code == 404


def test_the_quota_page_leads_there(browse: Browse, cast: Cast, shop: Shop) -> None:
    assert URL in browse(cast.ben).get(reverse("quota-list")).content.decode()
