"""The least run time on a project's page, and the last checkpoint on a workload's."""

import pytest
from django.urls import reverse

from scheduler.core.lifecycle import State
from scheduler.models import Workload
from tenants.models import Project, Tenant
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import Browse, Shop


def page_of(browse: Browse, cast: Cast, **said: int | None) -> str:
    Project.objects.filter(id=cast.detection.id).update(**said)
    url = reverse("project-detail", args=[cast.detection.id])
    return browse(cast.ben).get(url).content.decode()


def test_the_page_says_what_holds_and_whose_word_it_is(browse: Browse, cast: Cast) -> None:
    assert "may be evicted as soon as it runs" in page_of(browse, cast)
    Tenant.objects.filter(id=cast.vision.id).update(min_run_time_s=1200)
    assert "runs for 20 min before it may be evicted: what Vision Lab grants." in page_of(
        browse, cast
    )
    own = "runs for 5 min before it may be evicted: what Detection grants."
    assert own in page_of(browse, cast, min_run_time_s=300)
    Tenant.objects.filter(id=cast.vision.id).update(min_run_time_s=299)
    assert "evicted: what Vision Lab grants." in page_of(browse, cast)
    assert "may be evicted as soon as it runs" in page_of(browse, cast, min_run_time_s=0)


def test_an_operator_sets_it_and_takes_it_back(browse: Browse, cast: Cast) -> None:
    url = reverse("project-min-run-time-set", args=[cast.detection.id])
    assert url not in page_of(browse, cast)
    for typed, stored in (("300", 300), ("0", 0), ("", None)):
        answer = browse(cast.oz).post(url, {"min_run_time_s": typed})
        assert answer.status_code == 303
        assert Project.objects.get(id=cast.detection.id).min_run_time_s == stored


@pytest.mark.parametrize("typed", ["-1", "86401", "soon"])
def test_a_time_that_is_none_is_shown_where_it_was_typed(
    browse: Browse, cast: Cast, typed: str
) -> None:
    url = reverse("project-min-run-time-set", args=[cast.detection.id])
    answer = browse(cast.oz).post(url, {"min_run_time_s": typed})
    assert answer.status_code == 422
    assert f'value="{typed}"' in answer.content.decode()
    assert Project.objects.get(id=cast.detection.id).min_run_time_s is None


def test_a_workloads_page_says_when_its_work_was_saved(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    row = factories.workload(cast.detection, cast.ben, [shop.h100], state=State.RUNNING)
    url = reverse("workload-detail", args=[row.id])
    assert "Work saved" not in browse(cast.ben).get(url).content.decode()
    Workload.objects.filter(id=row.id).update(checkpointed_at=factories.AT)
    assert "<dt>Work saved</dt>" in browse(cast.ben).get(url).content.decode()
