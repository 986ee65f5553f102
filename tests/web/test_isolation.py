"""What a project accepts between neighbours on a GPU, on its page."""

import pytest
from django.urls import reverse

from tenants.models import Project
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import Browse


def page_of(browse: Browse, cast: Cast, least: str) -> str:
    Project.objects.filter(id=cast.detection.id).update(least_isolation=least)
    url = reverse("project-detail", args=[cast.detection.id])
    return browse(cast.ben).get(url).content.decode()


@pytest.mark.parametrize(
    ("least", "said"),
    [
        ("none", "by time-slicing, where nothing keeps them apart"),
        ("memory", "where each has its memory limit"),
        ("hardware", "MIG slices and whole GPUs, and no shares"),
    ],
)
def test_the_page_says_what_the_project_accepts(
    browse: Browse, cast: Cast, least: str, said: str
) -> None:
    assert said in page_of(browse, cast, least)


def test_an_owner_says_it_and_a_member_reads_it(browse: Browse, cast: Cast) -> None:
    url = reverse("project-least-isolation-set", args=[cast.detection.id])
    assert url not in page_of(browse, cast, "hardware")
    assert browse(cast.ada).post(url, {"least_isolation": "memory"}).status_code == 303
    assert Project.objects.get(id=cast.detection.id).least_isolation == "memory"


def test_what_is_no_isolation_changes_nothing(browse: Browse, cast: Cast) -> None:
    url = reverse("project-least-isolation-set", args=[cast.detection.id])
    assert browse(cast.ada).post(url, {"least_isolation": "glass"}).status_code == 422
    assert (
        Project.objects.get(id=cast.detection.id).least_isolation
        == factories.project(cast.speech).least_isolation
    )
