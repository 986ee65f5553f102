"""/spend: charges by project, flavor and day; running cost apart."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.urls import reverse

from controlplane.kernel import clock
from scheduler.core.lifecycle import State
from scheduler.models import Attempt
from tenants.models import User
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop

URL = reverse("spend")


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hours after what runs began."""
    monkeypatch.setattr(clock, "now", lambda: factories.AT + timedelta(hours=2))


def test_it_sums_charges_and_shows_running_cost_apart(
    browse: Browse, cast: Cast, shop: Shop, later: None
) -> None:
    factories.charge(factories.usage(shop.placed, hours=1), shop.rate, "2.50")
    type(shop.placed).objects.update(metered_until=factories.AT + timedelta(hours=1))
    answer = browse(cast.ben).get(URL)
    assert answer.context["month_total"] == Decimal("2.50")
    assert answer.context["running_total"] == Decimal("2.50")
    assert answer.context["per_hour"] == Decimal("2.50")
    assert answer.context["by_flavor"].total == "€2.50"
    assert answer.context["by_project"].total == "€2.50"


def test_it_shows_what_failed_and_was_lost_in_the_period(
    browse: Browse, cast: Cast, shop: Shop, later: None
) -> None:
    row = factories.workload(cast.detection, cast.ben, [shop.h100], state=State.FAILED)
    for number, (days, outcome, failure, lost) in enumerate(
        [(1, "preempted", "", 5_400_000), (2, "lost", "node-lost", 900_000),
         (20, "lost", "node-lost", 3_600_000)], 1,
    ):  # fmt: skip
        ended = factories.AT - timedelta(days=days)
        Attempt.objects.create(
            workload=row, number=number, cluster=shop.north, epoch=1, outcome=outcome,
            failure=failure, created_at=ended, ended_at=ended, lost_milli_s=lost,
        )  # fmt: skip

    def told(user: User, days: str) -> list[tuple[str, str, int, str]]:
        losses = browse(user).get(URL, {"days": days}).context["losses"]
        return [(name, one.text, one.count, one.lost) for name, one in losses]

    evicted = ("Detection", "evicted for the work of others", 1, "1.5")
    assert told(cast.ben, "7") == [evicted, ("Detection", "its node was lost", 1, "0.25")]
    assert told(cast.ben, "30") == [evicted, ("Detection", "its node was lost", 2, "1.25")]
    assert told(cast.cleo, "30") == []
    page = browse(cast.ben).get(URL).content.decode()
    assert "Failed, and lost" in page
    assert '<td class="num" data-label="GPU-hours lost">1.5</td>' in page


def test_other_months_are_in_the_chart_but_not_in_the_month(
    browse: Browse, cast: Cast, shop: Shop, later: None
) -> None:
    old = factories.usage(shop.placed, start=factories.AT - timedelta(days=25))
    factories.charge(old, shop.rate, "9")
    answer = browse(cast.ben).get(URL)
    assert answer.context["month_total"] == 0
    assert answer.context["period_total"] == 9
    assert browse(cast.ben).get(URL, {"days": "7"}).context["period_total"] == 0


def test_the_day_is_the_viewers_own(browse: Browse, cast: Cast, shop: Shop, later: None) -> None:
    late = factories.AT.replace(hour=22) - timedelta(days=1)
    factories.charge(factories.usage(shop.placed, start=late), shop.rate, "4")
    client = browse(cast.ben)

    def days() -> list[str]:
        rows = client.get(URL).context["by_flavor"].rows
        return [row.label for row in rows if row.total != "€0.00"]

    assert days() == ["20 Nov"]
    client.cookies["berth_tz"] = "Asia/Tokyo"
    assert days() == ["21 Nov"]


def test_without_a_price_running_work_is_said_to_be_charged_later(
    browse: Browse, cast: Cast, shop: Shop, later: None
) -> None:
    cpu = factories.workload(cast.detection, cast.ben, [shop.cpu], state=State.RUNNING, gpus=0)
    factories.place(cpu, shop.node, shop.cpu, started_at=factories.AT)
    answer = browse(cast.ben).get(URL)
    assert answer.context["unpriced"]
    assert "has no price yet" in answer.content.decode()


def test_an_outsider_sees_nothing_of_it(
    browse: Browse, cast: Cast, shop: Shop, later: None
) -> None:
    factories.charge(factories.usage(shop.placed), shop.rate, "2.50")
    answer = browse(cast.cleo).get(URL)
    assert answer.context["month_total"] == answer.context["running_total"] == 0
    assert "Detection" not in answer.content.decode()
    assert browse(cast.cleo).get(URL, {"project": str(cast.detection.id)}).status_code == 404


def test_a_viewer_may_not_see_spend(browse: Browse, cast: Cast, shop: Shop, later: None) -> None:
    factories.charge(factories.usage(shop.placed), shop.rate, "2.50")
    page = browse(cast.vik).get(URL).content.decode()
    assert "Nothing you may see here" in page
    assert "2.50" not in page
    of_one = browse(cast.vik).get(URL, {"project": str(cast.detection.id)})
    assert of_one.status_code == 403
    assert "2.50" not in of_one.content.decode()


@pytest.mark.parametrize("query", [{"days": "8"}, {"days": "-1"}, {"project": "x"}])
def test_a_filter_of_nonsense_is_not_found(
    browse: Browse, cast: Cast, query: dict[str, str]
) -> None:
    assert browse(cast.ben).get(URL, query).status_code == 404


def test_a_poll_is_204_until_something_is_charged(
    browse: Browse, cast: Cast, shop: Shop, settled: None
) -> None:
    client = browse(cast.ben)
    rev = client.get(URL).context["rev"]
    assert client.get(URL, {"rev": rev}, headers=HTMX).status_code == 204
    factories.charge(factories.usage(shop.placed), shop.rate, "1")
    changed = client.get(URL, {"rev": rev}, headers=HTMX)
    assert changed.content.lstrip().startswith(b'<div id="figures"')


def test_it_rejects_post(browse: Browse, cast: Cast) -> None:
    assert browse(cast.ben).post(URL).status_code == 405
