"""Pages that hold, drain and open a tenant, a cluster and a pool, and those that tell of it."""

import pytest
from django.urls import reverse

from clusters.models import Cluster, HardwareQueue
from controlplane.kernel.queues import QueueState
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import Browse, Shop

CLUSTER = reverse("cluster-queues-page", args=["north"])
DETAIL = reverse("cluster-detail", args=["north"])
H100 = "NVIDIA-H100-80GB-HBM3"


def queues() -> dict[str, str]:
    return dict(HardwareQueue.objects.values_list("model", "queue_state"))


def test_an_operator_drains_a_pool_and_everybody_reads_why(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    oz = browse(cast.oz)
    assert CLUSTER in oz.get(DETAIL).content.decode()
    page = oz.get(CLUSTER).content.decode()
    assert (page.count("Hold it"), "The whole cluster" in page, H100 in page) == (2, True, True)
    body = {"model": H100, "state": "draining", "note": "Recall."}
    answer = oz.post(CLUSTER, body, follow=True).content.decode()
    assert f"The queue of {H100} in north is draining: what may be stopped gives way." in answer
    assert queues() == {H100: "draining"}
    seen = browse(cast.ben).get(DETAIL).content.decode()
    assert f"{H100} is draining: nothing new starts there" in seen
    assert "Recall." in seen
    assert CLUSTER not in seen
    oz.post(CLUSTER, {"model": H100, "state": "open"})
    assert queues() == {H100: "open"}


def test_a_held_cluster_is_told_so_where_clusters_are_listed(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    factories.close(Cluster.objects.get(name="north"))
    ben = browse(cast.ben)
    for page in ("cluster-list", "home"):
        assert "held" in ben.get(reverse(page)).content.decode().lower()


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({"state": "held", "model": ""}, 422, "Say why"),
        ({"state": "held", "note": "x", "model": "A9"}, 422, "has no GPU of that model"),
        ({"state": "open", "model": H100}, 409, "is open already"),
        ({"state": "ajar", "note": "x", "model": ""}, 422, "ajar"),
        ({"state": "held", "note": "x"}, 422, "Say of which GPU model"),
        ({"state": "held", "note": "x", "model": f"{H100}\0"}, 422, "Null characters"),
        ({"state": "held", "note": "x", "model": "x" * 101}, 422, "at most 100 characters"),
    ],
)
def test_what_is_wrong_is_told_and_changes_nothing(
    browse: Browse, cast: Cast, shop: Shop, body: dict[str, str], status: int, told: str
) -> None:
    answer = browse(cast.oz).post(CLUSTER, body)
    assert answer.status_code == status
    assert told in answer.content.decode()
    assert queues() == {}


def test_an_owner_holds_a_tenant_and_its_projects_and_queues_tell_so(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    factories.workload(cast.detection, cast.ben, [shop.h100], "waits")
    url = reverse("tenant-queue-page", args=[cast.vision.id])
    project = reverse("project-detail", args=[cast.detection.id])
    ada = browse(cast.ada)
    assert url in ada.get(project).content.decode()
    page = ada.get(url).content.decode()
    assert "Drain Vision Lab? 1 workload is stopped and waits again; 0 that may not" in page
    answer = ada.post(url, {"state": "held", "note": "Audit."}, follow=True).content.decode()
    assert "The queue of Vision Lab is held: nothing new starts." in answer
    cast.vision.refresh_from_db()
    assert (cast.vision.queue_state, cast.vision.queue_changed_by) == (QueueState.HELD, cast.ada)
    for told in (project, reverse("queue")):
        assert "Vision Lab is held with all below it: Audit." in (
            browse(cast.ben).get(told).content.decode()
        )
    again = ada.post(url, {"state": "held", "note": "Audit."})
    assert (again.status_code, "is held already" in again.content.decode()) == (409, True)
