"""The review of a project's quota on its page, on the list of requests and in the queue."""

from datetime import timedelta

import pytest
from django.urls import reverse
from pytest_django import Settings

from tenants.models import Project
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import Browse, Shop

AT = factories.AT


@pytest.fixture(autouse=True)
def due(shop: Shop, settled: None, settings: Settings) -> None:
    """Detection's is to be confirmed in three days, that of no other."""
    settings.BERTH_REVIEW_DAYS = 365
    Project.objects.update(quota_confirmed_at=AT)
    Project.objects.filter(name="Detection").update(quota_confirmed_at=AT - timedelta(days=362))


def confirm_url(cast: Cast) -> str:
    return reverse("project-confirm-quota", args=[cast.detection.id])


def test_who_may_confirms_on_its_page(browse: Browse, cast: Cast) -> None:
    Project.objects.filter(id=cast.detection.id).update(quota_frozen_at=AT)
    client = browse(cast.ada)
    address = reverse("project-detail", args=[cast.detection.id])
    page = client.get(address).content.decode()
    assert "Nothing new of it starts: nobody has confirmed its quota." in page
    assert confirm_url(cast) in page
    answer = client.post(confirm_url(cast), follow=True)
    assert answer.redirect_chain == [(address, 303)]
    assert "The quota of Detection is confirmed." in answer.content.decode()
    cast.detection.refresh_from_db()
    assert (cast.detection.quota_confirmed_at, cast.detection.quota_frozen_at) == (AT, None)


def test_who_may_not_sees_until_when_and_who_may(browse: Browse, cast: Cast) -> None:
    page = browse(cast.ben).get(reverse("project-detail", args=[cast.detection.id]))
    assert "To confirm until" in page.content.decode()
    assert "Whoever owns a tenant above it, or operates it, confirms." in page.content.decode()
    assert confirm_url(cast) not in page.content.decode()


def test_without_reviews_the_page_says_nothing_of_them(
    browse: Browse, cast: Cast, settings: Settings
) -> None:
    settings.BERTH_REVIEW_DAYS = 0
    page = browse(cast.ada).get(reverse("project-detail", args=[cast.detection.id]))
    assert "Review of its quota" not in page.content.decode()


def test_what_waits_for_one_stands_beside_the_requests(browse: Browse, cast: Cast) -> None:
    page = browse(cast.ada).get(reverse("request-list")).content.decode()
    assert "Quotas that you confirm" in page
    assert page.count("Still wanted") == 1
    assert confirm_url(cast) in page
    for who in (cast.ben, cast.pia, cast.cleo):
        assert (
            "Quotas that you confirm"
            not in browse(who).get(reverse("request-list")).content.decode()
        )


def test_the_queue_says_since_when_it_is_frozen(browse: Browse, cast: Cast) -> None:
    Project.objects.filter(id=cast.detection.id).update(quota_frozen_at=AT)
    page = browse(cast.ben).get(reverse("queue")).content.decode()
    assert f'<a href="{reverse("project-detail", args=[cast.detection.id])}#review">' in page
