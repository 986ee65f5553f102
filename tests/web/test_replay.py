"""The page on which the last week is played with another weight."""

import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.urls import reverse

from controlplane.kernel.throttle import TooOften
from controlplane.templatetags.berth import when
from scheduler.core.simulating.replay import Waits
from scheduler.services import replays
from scheduler.services.replay_uses import Borrowed, Used
from scheduler.services.replays import Replayed, Told
from tests.conftest import Cast
from tests.factories import AT
from tests.web.conftest import HTMX, Browse, Shop

pytestmark = pytest.mark.usefixtures("one_moment", "settled")
DAY = timedelta(days=1)


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


def replayed(**fields: Any) -> Replayed:  # Any: its fields
    """Of Detection, which pays for a flavor and borrows two, and of two others."""
    waits = Waits(60, 120, 0, 0)
    mine = Told(
        project="Detection", tenant="Vision Lab", projects_count=1, arrivals_count=3,
        before=waits, after=waits, refused_count=0, cut_count=0, refused_by=(),
        used=(
            Used("cpu", 1_000_000, 3_600_000, None, Decimal(0)),
            Used("h100", 7_200_000, 1, Decimal("5.00"), Decimal("0.000001")),
        ),
        borrowed=(Borrowed("h100", 3_960_000, 0), Borrowed("h100.sevenths", 0, 25_200_000)),
    )  # fmt: skip
    others = replace(
        mine, project="", tenant="", projects_count=2, used=(), borrowed=mine.borrowed[:1]
    )
    made = Replayed(
        since=AT, until=AT + 7 * DAY, complete=True, left_count=0, step_s=600, currency="EUR",
        projects=(mine, others),
    )  # fmt: skip
    return replace(made, **fields)


def cells(page: str, *, label: str) -> list[str]:
    """What the rows say there, with a bar before what is written smaller."""
    found = re.findall(rf'<td[^>]* data-label="{label}">(.*?)</td>', page)
    return [re.sub(r"<span[^>]*>", " | ", cell).replace("</span>", "") for cell in found]


def test_it_tells_what_is_held_borrowed_and_paid(
    browse: Browse, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replays, "of_weight", lambda **_: replayed())
    url = reverse("project-replay", args=[cast.detection.id])
    seen = browse(cast.oz).post(url, {"weight": "2"}, headers=HTMX).content.decode()
    assert cells(seen, label="Flavor") == ["cpu", "h100", "h100.sevenths", "h100"]
    assert cells(seen, label="Hours held") == [
        "1 | as it is 0.3", "0.1 | as it is 2", "–", "–",
    ]  # fmt: skip
    assert cells(seen, label="Hours borrowed") == [
        "0", "0, it ends | as it is 1.1", "7 | as it is 0", "0, it ends | as it is 1.1",
    ]  # fmt: skip
    assert cells(seen, label="Costs") == [
        "€0.00 | as it is no price", "under €0.01 | as it is €5.00", "–", "–",
    ]  # fmt: skip
    assert "Not the whole week" not in seen


def test_it_says_how_far_it_came_where_that_is_not_all(
    browse: Browse, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = reverse("project-replay", args=[cast.detection.id])
    for fields, told in (
        ({"left_count": 0}, f"to {when(AT + DAY)}."),
        ({"left_count": 1}, "1 workload that came later is left out."),
        ({"left_count": 2, "projects": ()}, "2 workloads that came later are left out."),
    ):
        found = replayed(complete=False, until=AT + DAY, **fields)
        monkeypatch.setattr(replays, "of_weight", lambda found=found, **_: found)
        seen = browse(cast.oz).post(url, {"weight": "2"}, headers=HTMX).content.decode()
        assert "Not the whole week" in seen
        assert told in seen
        assert "there is nothing to play" not in seen


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
