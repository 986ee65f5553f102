"""/quota: the tree of own projects with bars."""

from datetime import timedelta

import pytest
from django.urls import reverse

from clusters.models import FlavorKind
from controlplane.kernel import clock
from tenants.models import Grant, Quota, TenantQuota
from tenants.web import pages
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop

URL = reverse("quota-list")


def test_it_shows_the_tree_with_a_bar_for_each_quota(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    answer = browse(cast.ada).get(URL)
    [group] = answer.context["trees"]
    assert group.path == ("Vision Lab",)
    assert [branch.name for branch, _ in group.branches] == ["Detection", "Segmentation"]
    page = answer.content.decode()
    assert "up to 12 with borrowing" in page
    assert "No quota yet: nothing it submits can start." in page


def test_of_many_projects_the_fullest_are_shown_and_the_others_found(
    browse: Browse, cast: Cast, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MOST", 2)
    for name in ("Alignment", "Tracking"):
        factories.quota(factories.project(cast.vision, name), shop.h100, 4000)
    Quota.objects.filter(project__name="Tracking").update(used_milli=3000)
    Quota.objects.filter(project=cast.detection).update(used_milli=1000)
    client = browse(cast.ada)

    def shown(find: str) -> list[str]:
        trees = client.get(URL, {"find": find}).context["trees"]
        return [branch.name for group in trees for branch, _ in group.branches]

    assert shown("") == ["Detection", "Tracking"]
    assert "2 more projects, of which less is used" in client.get(URL).content.decode()
    assert shown("segment") == ["Segmentation"]
    assert shown("LAB vision ALI") == ["Alignment"]
    assert shown("dialogue") == []
    assert "None that you see" in client.get(URL, {"find": "dialogue"}).content.decode()
    part = client.get(URL, {"find": "ali"}, headers=HTMX).content.decode()
    assert "?find=ali&amp;rev=" in part


def test_it_shows_what_tenants_have_for_all_below_them(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    below = factories.tenant("Robotics", parent=cast.vision)
    factories.project(below, "Grasping")
    TenantQuota.objects.create(
        tenant=cast.vision, flavor=shop.h100, nominal_milli=6000, borrowing_limit_milli=2000
    )
    TenantQuota.objects.create(
        tenant=below, flavor=shop.h100, nominal_milli=500, lending_limit_milli=0
    )
    TenantQuota.objects.create(tenant=cast.speech, flavor=shop.h100, nominal_milli=7000)
    page = browse(cast.ada).get(URL).content.decode()
    lab = (
        "Vision Lab has 6 h100-80gb for all below it, beside their own."
        " Together they borrow at most 2 and lend all that is idle."
    )
    assert page.count(lab) == 2
    assert (
        "Robotics has 0.5 h100-80gb for all below it, beside their own."
        " Together they borrow without a limit and lend at most 0."
    ) in page
    assert "Speech" not in page


def test_it_tells_the_unit_of_a_quota_over_a_model(browse: Browse, cast: Cast, shop: Shop) -> None:
    told = "7 are one GPU, whether used whole, in slices or in shares."
    assert told not in browse(cast.ada).get(URL).content.decode()
    over = factories.flavor("h100-80gb.sevenths", FlavorKind.MODEL)
    factories.quota(cast.detection, over, 14_000)
    page = browse(cast.ada).get(URL).content.decode()
    assert told in page
    assert "h100-80gb.sevenths" in page


def test_it_tells_until_when_a_part_is_there_and_what_stays_then(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    """By the next end that takes something away: 12 until then, 10 after it, and 8 for good."""
    client, at = browse(cast.ben), clock.now()
    assert "granted for a time" not in client.get(URL).content.decode()
    ends = [at + timedelta(days=days) for days in (3, 5, 9)]
    for nominal_milli, until_at in zip((9000, 12_000, 10_000), ends, strict=True):
        request = factories.quota_request(
            cast.detection, shop.h100, cast.ben, nominal_milli=nominal_milli, until_at=until_at,
            decision="granted", decided_by=cast.pia, decided_at=at, granted_milli=nominal_milli,
        )  # fmt: skip
        extra_milli = 4000 if nominal_milli == 12_000 else 0
        Grant.objects.create(
            request=request, from_at=at, until_at=until_at, begun_at=at, extra_milli=extra_milli
        )
    Quota.objects.filter(project=cast.detection, flavor=shop.h100).update(nominal_milli=12_000)
    page = client.get(URL).content.decode()
    assert f'<time datetime="{ends[1]:%Y-%m-%dT%H:%M:%S}' in page
    assert "then 10 h100-80gb instead of 12: the rest was granted for a time." in page
    assert page.count("granted for a time") == 1
    Grant.objects.filter(until_at=ends[1]).update(ended_at=at)
    Quota.objects.filter(project=cast.detection, flavor=shop.h100).update(nominal_milli=10_000)
    Grant.objects.filter(until_at=ends[2]).update(extra_milli=2000)
    page = client.get(URL).content.decode()
    assert "then 8 h100-80gb instead of 10" in page
    assert f'<time datetime="{ends[2]:%Y-%m-%dT%H:%M:%S}' in page


def test_departments_stand_below_their_organisation(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    below = factories.tenant("Robotics", parent=cast.vision)
    factories.project(below, "Grasping")
    page = browse(cast.ada).get(URL).content.decode()
    assert "Vision Lab › Robotics" in page


def test_an_outsider_sees_only_their_own(browse: Browse, cast: Cast, shop: Shop) -> None:
    page = browse(cast.cleo).get(URL).content.decode()
    assert "Dialogue" in page
    assert "Detection" not in page
    assert "Vision" not in page


def test_only_who_may_ask_is_invited_to(browse: Browse, cast: Cast, shop: Shop) -> None:
    assert "Ask for more" in browse(cast.ben).get(URL).content.decode()
    assert "Ask for" not in browse(cast.vik).get(URL).content.decode()


def test_a_poll_is_204_until_a_quota_changes(browse: Browse, cast: Cast, shop: Shop) -> None:
    client = browse(cast.ben)
    rev = client.get(URL).context["rev"]
    assert client.get(URL, {"rev": rev}, headers=HTMX).status_code == 204
    Quota.objects.filter(project=cast.detection, flavor=shop.h100).update(nominal_milli=24_000)
    changed = client.get(URL, {"rev": rev}, headers=HTMX)
    assert changed.content.lstrip().startswith(b'<div id="tree"')
    assert "of 24" in changed.content.decode()


def test_it_rejects_post(browse: Browse, cast: Cast) -> None:
    assert browse(cast.ben).post(URL).status_code == 405
