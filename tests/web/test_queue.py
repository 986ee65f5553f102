"""/queue: order, reasons and start times of own projects; others only as sums."""

from uuid import uuid4

import pytest
from django.urls import reverse
from pytest_django import Settings

from controlplane.kernel import clock
from scheduler.core.lifecycle import State
from scheduler.selectors import lines
from tenants.models import PastUse, Quota
from tenants.selectors import past
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop

URL = reverse("queue")


def test_it_shows_order_reason_and_start(browse: Browse, cast: Cast, shop: Shop) -> None:
    factories.workload(cast.detection, cast.ada, [shop.h100], "first", priority_class="high")
    answer = browse(cast.ben).get(URL)
    [queue] = answer.context["waiting"]
    assert [line.name for line in queue.lines] == ["first", "sweep"]
    page = answer.content.decode()
    assert "1 asked, 0 free in one cluster." in page
    assert "nine times in ten by" in page
    assert "not estimated yet" in page


def test_others_are_a_sum_without_names(browse: Browse, cast: Cast, shop: Shop) -> None:
    page = browse(cast.cleo).get(URL).content.decode()
    assert "sweep" not in page
    assert "Detection" not in page
    assert "Vision" not in page
    assert "Elsewhere: 1 waiting for 1 GPUs or slices, 1 starting or running on 1" in page


def test_an_operator_sees_all_and_nothing_elsewhere(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    page = browse(cast.oz).get(URL).content.decode()
    assert "sweep" in page
    assert "Elsewhere" not in page


def test_one_project_can_be_chosen(browse: Browse, cast: Cast, shop: Shop) -> None:
    answer = browse(cast.oz).get(URL, {"project": str(cast.dialogue.id)})
    assert answer.context["waiting"] == []
    for nowhere in ("x", str(uuid4())):
        assert browse(cast.oz).get(URL, {"project": nowhere}).status_code == 404


def test_of_many_queues_the_longest_are_listed_by_name(
    browse: Browse, cast: Cast, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MOST_QUEUES", 2)
    many = [factories.project(cast.vision, name) for name in ("Zeta", "Eta", "Alpha", "Beta")]
    for project, count in zip(many, (3, 2, 1, 1), strict=True):
        for _ in range(count):
            factories.workload(project, cast.ben, [shop.h100])
    for name in ("Quiet", "Calm", "Still"):
        idle = factories.project(cast.vision, name)
        factories.workload(idle, cast.ben, [shop.h100], state=State.RUNNING)
    answer = browse(cast.oz).get(URL)
    assert [queue.project for queue in answer.context["waiting"]] == ["Eta", "Zeta"]
    page = " ".join(answer.content.decode().split())
    assert "3 more projects have work that waits" in page  # two, and Detection
    assert "Calm (1 starting or running), Vision Lab / Quiet (1 starting or running)" in page
    assert "and in 1 more project." in page


def test_a_long_queue_is_cut_and_counted(browse: Browse, cast: Cast, shop: Shop) -> None:
    for number in range(lines.SHOWN + 4):
        factories.workload(cast.detection, cast.ben, [shop.h100], f"w{number}")
    answer = browse(cast.ben).get(URL)
    [queue] = answer.context["waiting"]
    assert len(queue.lines) == lines.SHOWN
    assert f"All {lines.SHOWN + 5} that wait" in answer.content.decode()


def test_a_poll_is_204_until_something_changes(
    browse: Browse, cast: Cast, shop: Shop, settled: None
) -> None:
    client = browse(cast.ben)
    rev = client.get(URL).context["rev"]
    assert client.get(URL, {"rev": rev}, headers=HTMX).status_code == 204
    factories.workload(cast.detection, cast.ben, [shop.h100], "late")
    changed = client.get(URL, {"rev": rev}, headers=HTMX)
    assert changed.content.lstrip().startswith(b'<div id="queues"')


def test_it_shows_what_orders_the_projects_one_term_after_the_other(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    today = clock.now().date()
    own = Quota.objects.filter(project=cast.detection, flavor=shop.h100)
    own.update(used_milli=1000)
    own.update(nominal_milli=0)
    Quota.objects.filter(project=cast.dialogue).update(nominal_milli=10_000)
    PastUse.objects.create(
        project=cast.segmentation,
        flavor=shop.h100,
        day=today,
        milli_s=2_500 * past.window_s(),
    )
    answer = browse(cast.ben).get(URL)
    [queue] = answer.context["waiting"]
    assert [(s.name, s.share_ppm, s.past_ppm) for s in queue.standing] == [
        ("Vision Lab", 100_000, 250_000),
        ("Detection", 100_000, 0),
    ]
    page = answer.content.decode()
    assert "10.0 % over guarantee, 25.0 % used before" in page
    assert "10.0 % over guarantee, 0.0 % used before" in page


def test_without_a_memory_no_past_is_told(
    browse: Browse, cast: Cast, shop: Shop, settings: Settings
) -> None:
    settings.BERTH_HALF_LIFE_DAYS = 0
    page = browse(cast.ben).get(URL).content.decode()
    assert "over guarantee" in page
    assert "used before" not in page


def test_nothing_waiting_says_so(browse: Browse, cast: Cast) -> None:
    assert "Nothing waits" in browse(cast.ben).get(URL).content.decode()


def test_it_rejects_post(browse: Browse, cast: Cast) -> None:
    assert browse(cast.ben).post(URL).status_code == 405
