"""/workloads/new: shares of GPUs, by thousandths and by memory, and whom they suit."""

import pytest

from clusters.models import FlavorKind
from scheduler.models import PodSet
from tenants.models import Project
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop
from tests.web.test_workload_submit import URL, form


def test_a_share_is_asked_for_in_thousandths(browse: Browse, cast: Cast, shop: Shop) -> None:
    share = factories.flavor("a10-shared", FlavorKind.SHARE, model="NVIDIA-A10")
    factories.node(
        shop.north, "n3", gpus=2, model="NVIDIA-A10", share_isolation="none", share_replicas=10
    )
    factories.quota(cast.detection, share, 2000)
    sent = form(cast, flavor=share.name, share_milli="250", gpus="")
    assert browse(cast.ben).post(URL, sent).status_code == 303
    pod_set = PodSet.objects.get(workload__name="finetune")
    assert (pod_set.gpu_count, pod_set.gpu_milli) == (1, 250)


@pytest.fixture
def shared(cast: Cast, shop: Shop) -> str:
    """A flavor of shares that time-slicing gives, of GPUs with 24 GB, and quota of it."""
    share = factories.flavor("a10-shared", FlavorKind.SHARE, model="NVIDIA-A10", memory_mib=23_028)
    factories.node(
        shop.north, "n3", gpus=2, model="NVIDIA-A10", share_isolation="none", share_replicas=10
    )
    factories.quota(cast.detection, share, 2000)
    factories.rate(share)
    return share.name


def test_a_share_is_asked_for_by_memory(browse: Browse, cast: Cast, shared: str) -> None:
    sent = form(cast, flavor=shared, share_milli="", share_gb="10", gpus="")
    assert browse(cast.ben).post(URL, sent).status_code == 303
    pod_set = PodSet.objects.get(workload__name="finetune")
    assert (pod_set.gpu_count, pod_set.gpu_milli, pod_set.gpu_memory_mib) == (1, 1000, 9537)


def test_the_sum_of_memory_is_the_share_that_has_it(
    browse: Browse, cast: Cast, shared: str
) -> None:
    asked = form(cast, flavor=shared, share_gb="10", count="2") | {"part": "estimate"}
    told = browse(cast.ben).get(URL, asked, headers=HTMX).content.decode()
    assert "0.83 a10-shared" in told
    told = browse(cast.ben).get(URL, asked | {"share_gb": "30"}, headers=HTMX).content.decode()
    assert "One GPU of a10-shared has 22.5 GiB, which is less than asked" in told


def test_the_form_says_before_that_the_project_does_not_accept_it(
    browse: Browse, cast: Cast, shared: str
) -> None:
    asked = form(cast, flavor=shared) | {"part": "estimate"}
    said = "a10-shared isolates neighbours by nothing"
    assert said not in browse(cast.ben).get(URL, asked, headers=HTMX).content.decode()
    Project.objects.filter(id=cast.detection.id).update(least_isolation="hardware")
    assert said in browse(cast.ben).get(URL, asked, headers=HTMX).content.decode()
    answer = browse(cast.ben).post(URL, form(cast, flavor=shared, share_milli="250", gpus=""))
    assert answer.status_code == 422
    assert "the project accepts no less than hardware" in answer.content.decode()


def test_the_form_says_before_that_more_isolation_is_asked_for_than_it_gives(
    browse: Browse, cast: Cast, shared: str
) -> None:
    whole = browse(cast.ben).get(URL)
    assert "data-sum" in whole.context["form"]["least_isolation"].as_widget()
    asked = form(cast, flavor=shared, least_isolation="memory") | {"part": "estimate"}
    told = browse(cast.ben).get(URL, asked, headers=HTMX).content.decode()
    assert "by nothing, and no less than memory limits alone is asked for" in told
    for enough in ("none", "glass"):
        answer = browse(cast.ben).get(URL, asked | {"least_isolation": enough}, headers=HTMX)
        assert "is asked for" not in answer.content.decode()
