"""/workloads/new: what it says of price, wait and free capacity while it is filled in."""

import pytest

from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop
from tests.web.test_workload_submit import URL


def test_the_estimate_follows_what_was_chosen(browse: Browse, cast: Cast, shop: Shop) -> None:
    query = {
        "project": str(cast.detection.id), "flavor": "h100-80gb", "count": "2", "gpus": "4",
        "limit": "10", "limit_unit": "hours",
    }  # fmt: skip
    answer = browse(cast.ben).get(URL, query, headers=HTMX)
    page = answer.content.decode()
    assert page.lstrip().startswith('<section class="card" id="estimate"')
    assert "€20.00" in page  # 8 GPUs at 2.50
    assert "€200.00" in page
    assert "15 h100-80gb free now" in page
    assert "Inside the project" in page


def test_the_estimate_says_what_would_be_borrowed(browse: Browse, cast: Cast, shop: Shop) -> None:
    query = {"project": str(cast.detection.id), "flavor": "h100-80gb", "gpus": "10"}
    page = browse(cast.ben).get(URL, query, headers=HTMX).content.decode()
    assert "2 of it would be borrowed" in page


def test_free_capacity_stays_current_and_keeps_the_choice(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    client = browse(cast.ben)
    query = {"part": "flavors", "flavor": "cpu", "rev": client.get(URL).context["flavors_rev"]}
    assert client.get(URL, query, headers=HTMX).status_code == 204
    factories.node(shop.north, "n7", gpus=8)
    page = client.get(URL, query, headers=HTMX).content.decode()
    assert page.lstrip().startswith('<div id="flavors"')
    assert "<b>23</b> of 24" in page
    assert 'value="cpu" data-kind="cpu" data-sum required checked' in page


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"flavor": "h900"},
        {"flavor": "h100-80gb", "gpus": "many", "count": "-1"},
        {"flavor": "cpu", "cpu": "1e999", "limit": "NaN", "limit_unit": "years"},
        {"flavor": "h100-80gb", "gpus": "\x00"},
    ],
)
def test_an_estimate_of_nonsense_is_no_error(
    browse: Browse, cast: Cast, shop: Shop, query: dict[str, str]
) -> None:
    assert browse(cast.ben).get(URL, query, headers=HTMX).status_code == 200


def test_free_capacity_counts_only_clusters_that_take_work(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    factories.node(factories.cluster("east", state="degraded"), "e1", gpus=8)
    offers = browse(cast.ben).get(URL).context["form"].offers
    assert {offer.name: offer.free_milli for offer in offers} == {
        "h100-80gb": 15_000, "h100-1g.10gb": 0, "cpu": 188_000,
    }  # fmt: skip


def test_a_price_is_not_rounded_to_cents(browse: Browse, cast: Cast, shop: Shop) -> None:
    factories.rate(shop.cpu, "0.0350")
    page = browse(cast.ben).get(URL).content.decode()
    assert "€0.035<" in page
    assert "€2.50<" in page
