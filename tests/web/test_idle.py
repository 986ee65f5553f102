"""The idle limit on a project's page, and idle work on its own."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.urls import reverse

from clusters.models import Cluster
from scheduler.models import Attempt, Idleness, Workload
from tenants.models import Project, Tenant
from tests.conftest import Cast
from tests.factories import AT
from tests.web.conftest import Browse, Shop


def page_of(browse: Browse, cast: Cast, **said: int | None) -> str:
    Project.objects.filter(id=cast.detection.id).update(**said)
    url = reverse("project-detail", args=[cast.detection.id])
    return browse(cast.ben).get(url).content.decode()


def test_the_page_says_what_holds_and_whose_word_it_is(browse: Browse, cast: Cast) -> None:
    assert "may leave its devices unused for as long as it runs" in page_of(browse, cast)
    Tenant.objects.filter(id=cast.vision.id).update(idle_timeout_s=3600, idle_warning_s=600)
    told = "unused for 1 h is freed, and told 10 min before: what Vision Lab says."
    assert told in page_of(browse, cast)
    own = page_of(browse, cast, idle_timeout_s=1800, idle_warning_s=300)
    assert "unused for 30 min is freed, and told 5 min before: what Detection says." in own
    assert told in page_of(browse, cast, idle_timeout_s=0, idle_warning_s=0)
    Tenant.objects.filter(id=cast.vision.id).update(idle_timeout_s=None, idle_warning_s=None)
    never = page_of(browse, cast)
    assert "may leave its devices unused for as long as it runs" in never


def test_an_operator_sets_it_and_takes_it_back(browse: Browse, cast: Cast) -> None:
    url = reverse("project-idle-limit-set", args=[cast.detection.id])
    assert url not in page_of(browse, cast)
    for typed, stored in ((("3600", "600"), (3600, 600)), (("", ""), (None, None))):
        answer = browse(cast.oz).post(
            url, dict(zip(("idle_timeout_s", "idle_warning_s"), typed, strict=True))
        )
        assert answer.status_code == 303
        row = Project.objects.get(id=cast.detection.id)
        assert (row.idle_timeout_s, row.idle_warning_s) == stored


@pytest.mark.parametrize(
    ("timeout", "warning", "told"),
    [
        ("-1", "0", "greater than or equal to 0"),
        ("soon", "0", "whole number"),
        ("60", "61", "61 s is not between 0 and the time-out, 60 s."),
        ("60", "", "Say both or neither of the two."),
        ("", "60", "Say both or neither of the two."),
    ],
)
def test_a_limit_that_is_none_is_shown_where_it_was_typed(
    browse: Browse, cast: Cast, timeout: str, warning: str, told: str
) -> None:
    url = reverse("project-idle-limit-set", args=[cast.detection.id])
    typed = {"idle_timeout_s": timeout, "idle_warning_s": warning}
    answer = browse(cast.oz).post(url, typed)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert told in page
    assert all(f'value="{value}"' in page for value in (timeout, warning) if value)
    assert Project.objects.get(id=cast.detection.id).idle_timeout_s is None


def test_a_workloads_page_says_since_when_it_is_idle_and_when_it_is_freed(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    url = reverse("workload-detail", args=[shop.running.id])

    def page() -> str:
        return browse(cast.ben).get(url).content.decode()

    attempt = Attempt.objects.get(workload=shop.running, ended_at=None)
    Idleness.objects.create(attempt=attempt, since=AT)
    assert 'id="idle"' not in page()
    Cluster.objects.update(use_seen_at=Now())
    assert f'are unused since <time datetime="{AT:%Y-%m-%dT%H:%M}' in page()
    assert "it is freed at" not in page()
    Project.objects.update(idle_timeout_s=3600, idle_warning_s=600)
    frees_at = AT + timedelta(hours=1)
    assert f'; it is freed at <time datetime="{frees_at:%Y-%m-%dT%H:%M}' in page()
    Workload.objects.update(preemptible=False)
    assert "It may not be preempted, so it keeps them." in page()
