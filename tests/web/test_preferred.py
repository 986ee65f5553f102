"""Which flavors a project prefers, on its page and on the submit page."""

import pytest
from django.urls import reverse

from clusters.models import Flavor
from scheduler.models import PodSet
from tenants.selectors import preferred
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop
from tests.web.test_workload_submit import URL, form

L40S = "NVIDIA-L40S"


@pytest.fixture
def l40s(cast: Cast, shop: Shop) -> Flavor:
    """With a node of it, and quota for Detection."""
    made = factories.flavor("l40s", model=L40S)
    factories.node(shop.north, "n3", gpus=8, model=L40S)
    factories.quota(cast.detection, made, 8000)
    return made


def set_of(cast: Cast) -> str:
    return reverse("project-preferred-flavors-set", args=[cast.detection.id])


def prefer(browse: Browse, cast: Cast, *names: str) -> None:
    said = {f"place_{n}": name for n, name in enumerate(names, start=1)}
    assert browse(cast.ada).post(set_of(cast), said).status_code == 303


def names(cast: Cast) -> list[str]:
    return [flavor.name for flavor in preferred.of_project(cast.detection)]


@pytest.mark.usefixtures("l40s")
def test_an_owner_sets_the_order_and_a_member_reads_it(browse: Browse, cast: Cast) -> None:
    page = reverse("project-detail", args=[cast.detection.id])
    assert "says itself which flavors it accepts" in browse(cast.ben).get(page).content.decode()
    prefer(browse, cast, "l40s", "", "h100-80gb")
    assert names(cast) == ["l40s", "h100-80gb"]
    told = browse(cast.ben).get(page).content.decode()
    assert "gets l40s, then h100-80gb" in told
    assert set_of(cast) not in told
    assert set_of(cast) in browse(cast.ada).get(page).content.decode()


@pytest.mark.usefixtures("l40s")
def test_a_flavor_that_is_chosen_again_is_told_at_its_place(browse: Browse, cast: Cast) -> None:
    said = {"place_1": "l40s", "place_3": "l40s"}
    answer = browse(cast.ada).post(set_of(cast), said)
    assert answer.status_code == 422
    told = answer.context["preferred_form"].errors
    assert dict(told) == {"place_3": ["l40s is named before: each has one place."]}
    assert names(cast) == []


@pytest.mark.usefixtures("l40s")
def test_the_form_offers_no_slice_and_shows_places_to_spare(browse: Browse, cast: Cast) -> None:
    prefer(browse, cast, "l40s")
    page = reverse("project-detail", args=[cast.detection.id])
    shown = browse(cast.ada).get(page).context["preferred_form"].shown
    assert [field.value() or "" for field in shown] == ["l40s", "", ""]
    assert [name for name, _ in shown[0].field.choices] == ["", "cpu", "h100-80gb", "l40s"]


@pytest.mark.usefixtures("l40s")
def test_the_submit_page_needs_no_flavor_where_the_project_prefers_some(
    browse: Browse, cast: Cast
) -> None:
    assert "What the project prefers" not in browse(cast.ben).get(URL).content.decode()
    assert browse(cast.ben).post(URL, form(cast, flavor="")).status_code == 422
    prefer(browse, cast, "l40s", "h100-80gb", "cpu")
    told = browse(cast.ben).get(URL).content.decode()
    assert "l40s, then h100-80gb; no flavor has to be chosen" in told
    assert browse(cast.ben).post(URL, form(cast, flavor="")).status_code == 303
    pod_set = PodSet.objects.get(workload__name="finetune")
    accepted = pod_set.accepted.order_by("position").values_list("flavor__name", flat=True)
    assert (list(accepted), pod_set.as_preferred) == (["l40s", "h100-80gb"], True)
    page = reverse("workload-detail", args=[pod_set.workload_id])
    assert "what its project prefers: it names none" in browse(cast.ben).get(page).content.decode()


@pytest.mark.usefixtures("l40s")
def test_the_sum_is_of_what_is_preferred_first(browse: Browse, cast: Cast) -> None:
    prefer(browse, cast, "h100-80gb", "l40s")
    asked = form(cast, flavor="", count="2") | {"part": "estimate"}
    told = browse(cast.ben).get(URL, asked, headers=HTMX).content.decode()
    assert "2 h100-80gb, charged while it runs" in told
    assert "If h100-80gb has no room: l40s" in told


@pytest.mark.usefixtures("l40s")
def test_a_poll_for_another_project_brings_what_that_one_prefers(
    browse: Browse, cast: Cast
) -> None:
    prefer(browse, cast, "l40s")
    client = browse(cast.ada)
    asked = {"part": "flavors", "project": str(cast.detection.id)}
    told = client.get(URL, asked, headers=HTMX)
    rev = told.context["flavors_rev"]
    assert client.get(URL, asked | {"rev": rev}, headers=HTMX).status_code == 204
    other = factories.project(cast.vision, "Other")
    asked |= {"project": str(other.id), "rev": rev}
    assert "What the project prefers" not in client.get(URL, asked, headers=HTMX).content.decode()


@pytest.mark.usefixtures("l40s")
def test_any_gpu_of_a_size_is_asked_for_without_a_flavor(browse: Browse, cast: Cast) -> None:
    Flavor.objects.filter(kind="whole").update(memory_mib=49_152)
    sent = form(cast, flavor="", least_gb="40")
    assert browse(cast.ben).post(URL, sent).status_code == 303
    pod_set = PodSet.objects.get(workload__name="finetune")
    assert (pod_set.accepted.count(), pod_set.as_preferred) == (2, False)


@pytest.mark.usefixtures("l40s")
def test_a_second_choice_needs_a_first(browse: Browse, cast: Cast) -> None:
    prefer(browse, cast, "l40s")
    answer = browse(cast.ben).post(URL, form(cast, flavor="", second="h100-80gb"))
    assert answer.status_code == 422
    assert dict(answer.context["form"].errors) == {"second": ["Choose a flavor before it, above."]}
