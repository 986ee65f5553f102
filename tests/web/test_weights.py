"""Weights on a project's page and on a tenant's own."""

import pytest
from django.urls import reverse

from tenants.models import Project, Tenant
from tests.conftest import Cast
from tests.web.conftest import Browse, Shop


def test_a_project_says_its_weight_and_an_operator_sets_it(browse: Browse, cast: Cast) -> None:
    page = reverse("project-detail", args=[cast.detection.id])
    url = reverse("project-weight-set", args=[cast.detection.id])
    seen = browse(cast.ben).get(page).content.decode()
    assert "among the projects of Vision Lab its weight is 1;" in seen
    assert url not in seen
    oz = browse(cast.oz)
    assert url in oz.get(page).content.decode()
    assert oz.post(url, {"weight": "4"})["Location"] == page
    assert Project.objects.get(id=cast.detection.id).weight == 4


@pytest.mark.parametrize("typed", ["0", "1001", "much", ""])
def test_a_weight_that_is_none_is_shown_where_it_was_typed(
    browse: Browse, cast: Cast, typed: str
) -> None:
    for url in (
        reverse("project-weight-set", args=[cast.detection.id]),
        reverse("tenant-weight-set", args=[cast.vision.id]),
    ):
        answer = browse(cast.oz).post(url, {"weight": typed})
        assert answer.status_code == 422
        assert 'aria-invalid="true"' in answer.content.decode()
    assert not Project.objects.exclude(weight=1).exists()
    assert not Tenant.objects.exclude(weight=1).exists()


def test_a_tenants_weight_is_set_on_a_page_that_its_quotas_and_projects_lead_to(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    oz, url = browse(cast.oz), reverse("tenant-weight-set", args=[cast.vision.id])
    quota = reverse("tenant-quota", args=[cast.vision.id, shop.h100.name])
    project = reverse("project-detail", args=[cast.detection.id])
    for page in (quota, project):
        assert url in oz.get(page).content.decode()
    assert url not in browse(cast.ada).get(project).content.decode()
    assert 'value="1"' in oz.get(url).content.decode()
    assert oz.post(url, {"weight": "9"}).status_code == 303
    assert Tenant.objects.get(id=cast.vision.id).weight == 9
