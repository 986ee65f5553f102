"""The page on which the last week is played with another weight."""

from datetime import timedelta

import pytest
from django.urls import reverse

from controlplane.kernel.throttle import TooOften
from scheduler.services import replays
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop

pytestmark = pytest.mark.usefixtures("one_moment", "settled")


def test_pages_of_weights_lead_there_and_it_tells_who_gains(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    oz = browse(cast.oz)
    for at, name, of in (
        ("project-detail", "project-replay", cast.detection.id),
        ("tenant-weight-set", "tenant-replay", cast.vision.id),
    ):
        url = reverse(name, args=[of])
        assert url in oz.get(reverse(at, args=[of])).content.decode()
        assert 'value="1"' in oz.get(url).content.decode()
        seen = oz.post(url, {"weight": "3"}, headers=HTMX).content.decode()
        assert "Detection" in seen
        assert "<html" not in seen
        assert 'value="3"' in seen
        assert reverse(at, args=[of]) in seen
    assert set(type(cast.vision).objects.values_list("weight", flat=True)) == {1}


def test_where_nothing_came_it_says_so(browse: Browse, cast: Cast) -> None:
    url = reverse("tenant-replay", args=[cast.vision.id])
    seen = browse(cast.oz).post(url, {"weight": "3"}).content.decode()
    assert "there is nothing to play" in seen


def test_a_weight_that_is_none_is_shown_where_it_was_typed(browse: Browse, cast: Cast) -> None:
    url = reverse("project-replay", args=[cast.detection.id])
    answer = browse(cast.oz).post(url, {"weight": "0"})
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.content.decode()


def test_who_asks_too_often_is_told_when_to_ask_again(
    browse: Browse, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise TooOften(most=1, window=timedelta(minutes=1), wait=timedelta(seconds=7))

    monkeypatch.setattr(replays, "of_weight", refuse)
    url = reverse("project-replay", args=[cast.detection.id])
    answer = browse(cast.oz).post(url, {"weight": "2"})
    assert (answer.status_code, answer["Retry-After"]) == (429, "7")
    assert "for in 7 s" in answer.content.decode()
