"""/clusters: what each has and what is free, for everybody who is signed in."""

from django.test import Client
from django.urls import reverse

from controlplane.kernel import clock
from scheduler.models import KeptRoom
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop

URL = reverse("cluster-list")


def test_it_shows_free_and_all_of_each_flavor(browse: Browse, cast: Cast, shop: Shop) -> None:
    answer = browse(cast.cleo).get(URL)
    [(facts, totals, attention)] = answer.context["clusters"]
    assert (facts.name, facts.device_count, facts.node_count) == ("north", 16, 2)
    assert attention == ()
    assert [(t.flavor, t.free_milli, t.total_milli) for t in totals] == [
        ("h100-80gb", 15_000, 16_000), ("cpu", 188_000, 192_000),
    ]  # fmt: skip
    assert "<b>15</b> of 16 free" in answer.content.decode()


def test_it_names_nobodys_work(browse: Browse, cast: Cast, shop: Shop) -> None:
    page = browse(cast.cleo).get(URL).content.decode()
    assert "detector" not in page
    assert "Detection" not in page


def test_a_silent_cluster_is_greyed_with_its_error(browse: Browse, cast: Cast, shop: Shop) -> None:
    factories.cluster("east", state="lost", last_error="No answer in 10 s.")
    page = browse(cast.ben).get(URL).content.decode()
    assert "card-stale" in page
    assert "No answer in 10 s." in page


def test_without_clusters_it_says_what_belongs_here(browse: Browse, cast: Cast) -> None:
    assert "No cluster yet" in browse(cast.ben).get(URL).content.decode()


def test_a_poll_is_204_until_something_changes(
    browse: Browse, cast: Cast, shop: Shop, settled: None
) -> None:
    client = browse(cast.ben)
    rev = client.get(URL).context["rev"]
    assert client.get(URL, {"rev": rev}, headers=HTMX).status_code == 204
    factories.node(shop.north, "n9")
    changed = client.get(URL, {"rev": rev}, headers=HTMX)
    assert changed.content.lstrip().startswith(b'<div id="clusters"')


def test_it_asks_to_sign_in_and_rejects_post(browse: Browse, cast: Cast) -> None:
    assert Client().get(URL).status_code == 302
    assert browse(cast.ben).post(URL).status_code == 405


def test_what_was_kept_is_told_as_since_it_first_was(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    KeptRoom.objects.create(
        workload=shop.waiting, idle_milli=8000, idle_milli_s=7_200_000, counted_at=clock.now()
    )
    told = " ".join(browse(cast.oz).get(URL).content.decode().split())
    assert "2 GPU-hours stood idle, kept for 1 workload that had waited longest" in told
    assert "those of the last 30 days, each from when anything was first kept for it" in told
