"""/projects/…/quotas/… and /tenants/…/quotas/…: who would be preempted, then setting it."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from controlplane.kernel import clock
from controlplane.kernel.throttle import Throttle
from scheduler.models import Workload
from scheduler.services import asking
from tenants.models import Quota, TenantQuota
from tests import scenes
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse

pytestmark = pytest.mark.usefixtures("halves")


@pytest.fixture
def halves(cast: Cast, one_moment: None) -> None:
    """Two that hold four GPUs each, of a quota of 16."""
    scenes.halves(cast.detection, cast.ben)
    Quota.objects.update(used_milli=8000)


def url(cast: Cast) -> str:
    return reverse("project-quota", args=[cast.detection.id, "h100-80gb"])


def form(**changes: str) -> dict[str, str]:
    return {
        "nominal": "4", "borrowing_limit": "0", "lending_limit": "", "excess": "preempt",
        "enforce_at": "", "version": "1",
    } | changes  # fmt: skip


def set_seen(client: Client, at: str, **changes: str) -> tuple[int, str]:
    """Have it shown who would go, then press the button that was shown with it: the status and
    page that answer."""
    answer = client.post(at, form(**changes))
    seen = re.search(r'name="seen" value="([^"]*)"', answer.content.decode())
    if seen:
        answer = client.post(at, form(**changes, seen=seen[1]))
    return answer.status_code, answer.content.decode()


def test_it_shows_the_quota_as_it_is_and_sets_nothing_unseen(browse: Browse, cast: Cast) -> None:
    page = browse(cast.oz).get(url(cast)).content.decode()
    assert 'value="16"' in page
    assert "Show who would be preempted" in page
    assert "Set the quota" not in page


def test_it_shows_who_would_go_and_then_sets_it(browse: Browse, cast: Cast) -> None:
    client = browse(cast.oz)
    page = client.post(url(cast), form(), headers=HTMX).content.decode()
    assert page.lstrip().startswith("<form")
    assert "4 h100-80gb more are held than it allows." in page
    assert page.count("on n") == 1
    assert "Set the quota" in page
    assert Quota.objects.get().nominal_milli == 16_000
    assert set_seen(client, url(cast))[0] == 303
    quota = Quota.objects.get()
    assert (quota.nominal_milli, quota.borrowing_limit_milli) == (4000, 0)
    assert quota.enforce_at is not None


def test_other_amounts_than_were_shown_are_shown_before_they_are_set(
    browse: Browse, cast: Cast
) -> None:
    client = browse(cast.oz)
    page = client.post(url(cast), form(nominal="9")).content.decode()
    assert "nobody would be" in page
    seen = re.search(r'name="seen" value="([^"]*)"', page)
    assert seen is not None
    later = f"{clock.now() + timedelta(days=9):%Y-%m-%dT%H:%M}"
    for changes in (
        {"nominal": "0"},
        {"borrowing_limit": "1"},
        {"lending_limit": "1"},
        {"excess": "drain"},
        {"excess": "delay", "enforce_at": later},
    ):
        answer = client.post(url(cast), form(**({"nominal": "9", "seen": seen[1]} | changes)))
        assert answer.status_code == 200
        assert "Set the quota" in answer.content.decode()
        assert Quota.objects.get().version == 1
    answer = client.post(url(cast), form(nominal="9", seen=seen[1]))
    assert answer.status_code == 303


def test_a_quota_that_is_being_enforced_can_be_changed_as_its_form_opens(
    browse: Browse, cast: Cast
) -> None:
    client = browse(cast.oz)
    set_seen(client, url(cast))
    Quota.objects.update(enforce_at=clock.now() - timedelta(hours=1))
    page = client.get(url(cast)).content.decode()
    at = re.search(r'name="enforce_at" value="([^"]*)"', page)
    excess = re.search(r'value="(\w+)"[^>]* checked', page)
    assert excess is not None
    opened = {"excess": excess[1], "enforce_at": at[1] if at else "", "version": "2"}
    assert set_seen(client, url(cast), **opened, nominal="3")[0] == 303
    assert excess[1] == "preempt"


def test_left_to_drain_it_says_that_nobody_is_preempted(browse: Browse, cast: Cast) -> None:
    client = browse(cast.oz)
    page = client.post(url(cast), form(excess="drain")).content.decode()
    assert "Nobody is preempted: it ends by itself" in page
    set_seen(client, url(cast), excess="drain")
    assert Quota.objects.get().enforce_at is None
    assert "Over by 4 h100-80gb: it ends by itself" in (
        browse(cast.ben).get(reverse("quota-list")).content.decode()
    )


def test_what_may_not_be_preempted_is_said_to_stay(browse: Browse, cast: Cast) -> None:
    Workload.objects.update(preemptible=False)
    page = browse(cast.oz).post(url(cast), form()).content.decode()
    assert "4 of them are of work that may not be preempted" in page


def test_what_there_is_too_little_for_is_told_before_it_is_set_and_after(
    browse: Browse, cast: Cast
) -> None:
    client = browse(cast.oz)
    told = "99 h100-80gb are guaranteed in the whole fleet, which has "
    assert told in client.post(url(cast), form(nominal="99")).content.decode()
    assert told not in client.post(url(cast), form(nominal="9")).content.decode()
    assert set_seen(client, url(cast), nominal="99")[0] == 303
    assert told in client.get(reverse("quota-list")).content.decode()


def test_nobody_goes_for_a_quota_that_is_kept(browse: Browse, cast: Cast) -> None:
    page = browse(cast.oz).post(url(cast), form(nominal="9")).content.decode()
    assert "nobody would be preempted" in page


def test_a_delay_is_by_the_readers_clock_and_shown_on_the_quota_page(
    browse: Browse, cast: Cast
) -> None:
    client = browse(cast.oz)
    client.cookies["berth_tz"] = "Europe/Berlin"
    day = clock.now() + timedelta(days=9)
    set_seen(client, url(cast), excess="delay", enforce_at=f"{day:%Y-%m-%d}T10:00")
    enforce_at = Quota.objects.get().enforce_at
    assert enforce_at is not None
    assert enforce_at.date() == day.date()
    assert enforce_at.hour in {8, 9}
    page = client.get(reverse("quota-list")).content.decode()
    assert "Over by 4 h100-80gb: what may be preempted is, from" in page
    assert url(cast) in page
    assert url(cast) not in browse(cast.ben).get(reverse("quota-list")).content.decode()


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"excess": "delay"}, 422, "A delay needs the moment"),
        ({"excess": "delay", "enforce_at": "2001-01-01T10:00"}, 422, "in the future"),
        ({"borrowing_limit": ""}, 422, "Give a limit, 0 for none"),
        ({"nominal": "-1"}, 422, "greater than or equal to 0"),
        ({"nominal": ""}, 422, "required"),
        ({"excess": "kill"}, 422, "not one of the available"),
        ({"version": "7"}, 409, "at version 1 by now, not 7"),
        ({"shares": "1"}, 422, "shares"),
    ],
)
def test_what_is_wrong_is_told_and_changes_nothing(
    browse: Browse, cast: Cast, changes: dict[str, str], status: int, words: str
) -> None:
    answered, page = set_seen(browse(cast.oz), url(cast), **changes)
    assert answered == status
    assert words in page
    assert Quota.objects.get().version == 1


def test_a_tenants_quota_is_set_in_the_same_way(browse: Browse, cast: Cast) -> None:
    Quota.objects.update(nominal_milli=0, borrowing_limit_milli=None)
    client = browse(cast.oz)
    at = reverse("tenant-quota", args=[cast.vision.id, "h100-80gb"])
    assert client.get(at).status_code == 200
    assert "on n1" in client.post(at, form(version="0", nominal="0")).content.decode()
    assert set_seen(client, at, version="0")[0] == 303
    assert TenantQuota.objects.get().enforce_at is not None
    page = client.get(reverse("quota-list")).content.decode()
    assert "What they hold beyond that and may be preempted is, from" in page
    assert at in page


def test_of_a_flavor_that_there_is_not_there_is_no_page(browse: Browse, cast: Cast) -> None:
    at = reverse("project-quota", args=[cast.detection.id, "none"])
    assert browse(cast.oz).get(at).status_code == 404


def test_it_may_be_asked_so_often(
    browse: Browse, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ASKED", Throttle(most=1, window=timedelta(minutes=1)))
    client = browse(cast.oz)
    answers = [client.post(url(cast), form()) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert answers[1].headers["Retry-After"]


def test_the_last_week_is_played_with_it_and_nothing_is_set(browse: Browse, cast: Cast) -> None:
    page = browse(cast.oz).post(url(cast), form(play="yes"), headers=HTMX).content.decode()
    assert "The last week with it" in page
    assert "Detection" in page
    assert "Set the quota" not in page
    assert Quota.objects.get().nominal_milli == 16_000


def test_a_tenants_quota_is_not_played(browse: Browse, cast: Cast) -> None:
    client, at = browse(cast.oz), reverse("tenant-quota", args=[cast.vision.id, "h100-80gb"])
    assert "Play the last week" not in client.get(at).content.decode()
    answer = client.post(at, form(version="0", play="yes"))
    assert answer.status_code == 422
    assert "There is no such field" in answer.content.decode()
