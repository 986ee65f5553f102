"""/clusters/<name>: the map, with own work named and others' not."""

from html import unescape

import pytest
from django.db.models import F
from django.urls import reverse
from django.utils.html import strip_tags

from clusters.models import Cluster, ClusterState, Device, DeviceMode, FlavorKind
from controlplane.kernel.charts import TONES
from controlplane.kernel.device_map import DeviceMap
from scheduler.core.lifecycle import State
from scheduler.models import Attempt, Workload
from tenants.models import User
from tests import factories
from tests.conftest import Cast
from tests.factories import AT
from tests.strays import stray
from tests.web.conftest import HTMX, Browse, Shop, move, release

URL = reverse("cluster-detail", args=["north"])


def owners(drawn: DeviceMap) -> list[str]:
    return [owner.name for owner in drawn.owners]


def test_own_work_is_named(browse: Browse, cast: Cast, shop: Shop) -> None:
    answer = browse(cast.ben).get(URL)
    assert owners(answer.context["map"]) == ["Detection"]
    assert "Detection detector on the whole device" in answer.content.decode()


def test_others_work_is_only_held(browse: Browse, cast: Cast, shop: Shop) -> None:
    answer = browse(cast.cleo).get(URL)
    page = answer.content.decode()
    assert owners(answer.context["map"]) == ["Others"]
    for secret in ("detector", "Detection", "Vision", str(shop.running.id), "ben"):
        assert secret not in page


def test_nothing_is_told_of_what_others_do(browse: Browse, cast: Cast, shop: Shop) -> None:
    move(shop.running, State.PREEMPTING)
    page = browse(cast.cleo).get(URL).content.decode()
    assert ", leaving" not in page
    assert ", leaving" in browse(cast.ben).get(URL).content.decode()


def test_an_operator_sees_tenants(browse: Browse, cast: Cast, shop: Shop) -> None:
    assert owners(browse(cast.oz).get(URL).context["map"]) == ["Vision Lab"]


def test_what_foreign_pods_hold_is_told_as_such(browse: Browse, cast: Cast, shop: Shop) -> None:
    factories.foreign_span(factories.device(shop.node, 9))
    answer = browse(cast.cleo).get(URL)
    assert owners(answer.context["map"]) == ["Others", "Outside Berth"]
    assert {owner.tone for owner in answer.context["map"].owners} == {TONES}, "both are grey"
    assert "Outside Berth on the whole device" in answer.content.decode()


def test_slices_lie_where_they_are(browse: Browse, cast: Cast, shop: Shop) -> None:
    cut = factories.device(shop.node, 9, mode="mig-static")
    factories.device_slice(cut, "1g.10gb", 2, 3)
    work = factories.workload(cast.detection, cast.ben, [shop.slice], state=State.RUNNING)
    factories.span(factories.place(work, shop.node, shop.slice), cut, 2, 3)
    drawn = browse(cast.ben).get(URL).context["map"]
    device = drawn.clusters[0].nodes[0].devices[-1]
    assert [(span.x, span.width) for span in device.spans] == [("25%", "12.5%")]
    assert device.marks == ("25%", "37.5%")


@pytest.mark.parametrize(
    ("isolation", "tag"), [("none", "no isolation"), ("memory", "memory limits only")]
)
def test_what_keeps_neighbours_apart_is_told_of_shared_gpus(
    browse: Browse, cast: Cast, shop: Shop, isolation: str, tag: str
) -> None:
    factories.flavor("a10.share", FlavorKind.SHARE, model="NVIDIA-A10", isolation=isolation)
    factories.node(
        shop.north, "n3", gpus=1, model="NVIDIA-A10", share_isolation=isolation, share_replicas=4
    )
    answer = browse(cast.ben).get(URL)
    models = {node.name: node.model for node in answer.context["map"].clusters[0].nodes}
    assert models["n3"] == f"NVIDIA-A10, {tag}"
    assert "," not in models["n1"]
    told = f'a10.share <span class="tag">{tag}</span>'
    assert told in answer.content.decode()
    assert told in browse(cast.ben).get(reverse("cluster-list")).content.decode()


def test_node_pools_are_told_by_the_names_of_who_runs_the_cluster(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    assert "Node pools" not in browse(cast.ben).get(URL).content.decode()
    spot = {"karpenter.sh/nodepool": "flex", "karpenter.sh/capacity-type": "spot"}
    for name, ready in (("n3", True), ("n4", False)):
        factories.node(shop.north, name, gpus=2, ready=ready, labels=spot)
    rows = browse(cast.ben).get(URL).context["node_pools"]
    told = [(r.origin.node_pool, r.origin.capacity, r.nodes, r.usable, r.devices) for r in rows]
    assert told[1:] == [("flex", "spot", 2, 1, 4)]
    assert told[0][:2] == ("", "")


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, ""),
        ({"schedulable": False}, "cordoned"),
        ({"schedulable": False, "leaving": True}, "going away"),
        ({"schedulable": False, "leaving": True, "ready": False}, "unreachable"),
    ],
)
def test_what_keeps_work_off_a_node_is_told(
    browse: Browse, cast: Cast, shop: Shop, fields: dict[str, bool], state: str
) -> None:
    factories.node(shop.north, "n3", gpus=2, **fields)
    page = browse(cast.ben).get(URL, {"node": "n3"}).content.decode()
    told = strip_tags(page.partition(">n3</a>")[2].partition("</p>")[0])
    assert told.strip().lower() == state


def test_one_node_can_be_looked_at(browse: Browse, cast: Cast, shop: Shop) -> None:
    drawn = browse(cast.ben).get(URL, {"node": "n2"}).context["map"]
    assert [node.name for node in drawn.clusters[0].nodes] == ["n2"]


@pytest.mark.parametrize("node", ["n77", "\x00", "../n1", "<script>"])
def test_an_unknown_node_is_not_found(browse: Browse, cast: Cast, shop: Shop, node: str) -> None:
    assert browse(cast.ben).get(URL, {"node": node}).status_code == 404


def test_of_gpus_that_were_not_measured_that_is_said(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    said = "Not measured in the last 15 minutes."
    assert said in browse(cast.ben).get(URL).content.decode()
    factories.cluster("bare")
    bare = browse(cast.ben).get(reverse("cluster-detail", args=["bare"])).content.decode()
    assert said not in bare


def test_an_unknown_cluster_is_not_found(browse: Browse, cast: Cast, shop: Shop) -> None:
    assert browse(cast.ben).get(reverse("cluster-detail", args=["mars"])).status_code == 404


def test_a_silent_cluster_says_how_old_this_is(browse: Browse, cast: Cast, shop: Shop) -> None:
    type(shop.north).objects.update(state="degraded")
    page = browse(cast.ben).get(URL).content.decode()
    assert "What you see is as of" in page
    assert "map-cluster-old" in page


def test_what_makes_no_sense_is_told(browse: Browse, cast: Cast, shop: Shop) -> None:
    told = {
        "nodes": {"count": 12, "first": [f"n{nth}: '-<8>' is no quantity" for nth in range(10)]},
        "pods": {"count": 1, "first": ["p: uid is no name"]},
        "node_pools": {"count": 2, "first": ["h100s: replicas is no count"]},
        "devices": {"count": 1, "first": ["n1: of the pool n1 1 of 2 parts are there"]},
    }
    type(shop.north).objects.update(left_out=told)
    shown = unescape(browse(cast.ada).get(URL).content.decode())
    assert "12 nodes of its list make no sense, and nothing is placed there: n0: '-<8>'" in shown
    assert "n9: '-<8>' is no quantity; and more." in shown
    assert "2 of its node pools and orders of nodes are left out" in shown
    assert "expected of them: h100s: replicas is no count; and more." in shown
    assert "1 pod of its list makes no sense: what they hold is not known." in shown
    assert "this is not used: n1: of the pool n1 1 of 2 parts are there." in shown


def test_which_boxes_are_this_exact_device_is_told(browse: Browse, cast: Cast, shop: Shop) -> None:
    exact, counted = "stands for this exact device", "the kubelet picks the physical GPU"
    page = browse(cast.ben).get(URL).content.decode()
    assert (exact in page, counted in page) == (False, True)
    first = Device.objects.filter(node__cluster=shop.north).order_by("id")[0]
    Device.objects.filter(id=first.id).update(uuid="GPU-1")
    Cluster.objects.update(inventory_rev=F("inventory_rev") + 1)
    page = browse(cast.ben).get(URL).content.decode()
    assert (exact in page, counted in page) == (True, True)


def test_the_last_error_shows_whatever_the_state(browse: Browse, cast: Cast, shop: Shop) -> None:
    type(shop.north).objects.update(last_error="list pods: forbidden")
    assert "list pods: forbidden" in browse(cast.ben).get(URL).content.decode()
    listed = browse(cast.ben).get(reverse("cluster-list")).content.decode()
    assert "list pods: forbidden" in listed


def test_a_device_has_as_many_slices_as_its_model(browse: Browse, cast: Cast, shop: Shop) -> None:
    a30 = factories.flavor("a30-4g", FlavorKind.MIG, model="NVIDIA-A30", profile="4g.24gb")
    node = factories.node(
        shop.north, "n3", gpus=1, model="NVIDIA-A30", mode=DeviceMode.MIG_DYNAMIC
    )
    work = factories.workload(cast.detection, cast.ben, [a30], "all-of-it", state=State.RUNNING)
    factories.span(factories.place(work, node, a30), node.devices.get(), 0, 4)
    answer = browse(cast.ben).get(URL, {"node": "n3"})
    assert answer.context["map"].clusters[0].free == "0 of 1 GPUs free"
    assert "Detection all-of-it on the whole device" in answer.content.decode()


def test_gone_and_sick_hardware(browse: Browse, cast: Cast, shop: Shop) -> None:
    shop.node.devices.filter(ordinal=7).update(usable=False)
    shop.node.devices.filter(ordinal=6).update(gone_at=factories.AT)
    answer = browse(cast.ben).get(URL)
    devices = answer.context["map"].clusters[0].nodes[0].devices
    assert len(devices) == 7
    assert not devices[-1].healthy
    assert answer.context["totals"][0].total_milli == 14_000


def test_a_poll_is_204_until_something_changes(
    browse: Browse, cast: Cast, shop: Shop, settled: None
) -> None:
    client = browse(cast.ben)
    pool = factories.node_pool(shop.north)
    rev = client.get(URL).context["rev"]
    assert client.get(URL, {"rev": rev}, headers=HTMX).status_code == 204
    type(pool).objects.update(making_count=1)
    assert client.get(URL, {"rev": rev}, headers=HTMX).status_code == 200
    rev = client.get(URL).context["rev"]
    release(shop.placed)
    changed = client.get(URL, {"rev": rev}, headers=HTMX)
    assert changed.content.lstrip().startswith(b'<div id="cluster"')


def test_it_rejects_post(browse: Browse, cast: Cast, shop: Shop) -> None:
    assert browse(cast.ben).post(URL).status_code == 405


def test_fleet_roles_are_told_what_a_silent_cluster_means_for_the_work_there(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    def told(who: User) -> str:
        return " ".join(unescape(strip_tags(browse(who).get(URL).content.decode())).split())

    assert "is unknown" not in told(cast.oz)
    Cluster.objects.filter(id=shop.north.id).update(state=ClusterState.LOST)
    assert "What 1 workload does here is unknown, and its place is kept: all wait" in told(cast.oz)
    assert "is unknown" not in told(cast.cleo)  # how many others run is not hers to know
    Workload.objects.filter(id=shop.running.id).update(cluster_loss_requeue_s=900)
    assert "1 starts elsewhere if the silence lasts" in told(cast.oz)

    Attempt.objects.filter(workload=shop.running).update(
        ended_at=AT, unseen_since=AT, outcome="lost", failure="cluster-lost"
    )
    assert "once the cluster is heard it is stopped, before anything new" in told(cast.oz)
    Cluster.objects.filter(id=shop.north.id).update(state=ClusterState.ACTIVE)
    page = told(cast.oz)
    assert "1 workload started elsewhere while nothing was heard of this cluster. 1 pod" in page
    assert "it is being stopped, before anything new is placed" in page


def test_fleet_roles_are_told_that_the_database_is_older_than_the_cluster(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    def told(who: User) -> str:
        return " ".join(unescape(strip_tags(browse(who).get(URL).content.decode())).split())

    assert "looks older" not in told(cast.oz)
    rev = browse(cast.oz).get(URL).context["rev"]
    for number in range(22):
        stray(shop.north, f"w{number:02}-1-0")
    assert browse(cast.oz).get(URL, {"rev": rev}, headers=HTMX).status_code == 200
    page = told(cast.oz)
    assert "The database looks older than this cluster, as after a restore, since" in page
    assert "22 pods of this installation are here that it does not know" in page
    assert "berth-vision/w00-1-0 on n1: there is no such workload" in page
    assert "w19-1-0" in page
    assert "w20-1-0" not in page
    assert "and 2 more" in page
    assert "looks older" not in told(cast.cleo)  # nor are the names of others' pods hers to know


def test_a_cluster_that_was_not_listed_since_a_restore_says_what_that_holds_up(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    def told() -> str:
        page = browse(cast.oz).get(URL).content.decode()
        return " ".join(unescape(strip_tags(page)).split())

    north = Cluster.objects.filter(id=shop.north.id)
    north.update(restored_at=AT, state=ClusterState.NEW)
    assert "Nothing starts in any cluster before this one is listed" in told()
    assert "manage.py go_on_without north" in told()
    north.update(state=ClusterState.LOST)
    assert "The other clusters go on without it, by an operator's word" in told()
