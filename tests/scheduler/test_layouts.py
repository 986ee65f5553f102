"""Advice how to cut MIG devices, from what was asked for of late."""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from clusters.models import Cluster, Device, DeviceMode, Flavor, Node
from controlplane.kernel import clock
from controlplane.kernel.throttle import Throttle
from scheduler.core.lifecycle import State
from scheduler.models import Attempt, AttemptOutcome, Workload
from scheduler.selectors import cuttable, layouts
from scheduler.services import asking
from tests import factories
from tests.conftest import Cast

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
H100 = "NVIDIA-H100-80GB-HBM3"


@pytest.fixture
def small(cast: Cast) -> Flavor:
    """One H100, cut into two halves, of which two sevenths and more are asked for."""
    node = factories.node(factories.cluster(), gpus=0)
    device = factories.device(node, 0, mode=DeviceMode.MIG_STATIC)
    for start in (0, 4):
        factories.device_slice(device, "3g.40gb", start, start + 4)
    return factories.mig_flavor()


def asked(cast: Cast, flavor: Flavor, name: str, *, hours_ago: int = 5) -> Workload:
    at = clock.now() - hours_ago * HOUR
    return factories.workload(
        cast.detection, cast.ben, [flavor], name, state=State.SUCCEEDED, submitted_at=at,
        started_at=at, ended_at=at + HOUR,
    )  # fmt: skip


def test_it_says_how_to_cut_and_what_that_saves(cast: Cast, small: Flavor) -> None:
    for n in range(2):
        asked(cast, small, f"w{n}")
    [made] = layouts.advice(at=clock.now())
    assert made.cluster == "north"
    assert made.advice.layouts == (((("1g.10gb", 7),), 1),)
    assert made.advice.mean_wait_s == 0
    assert made.advice.now_s == pytest.approx(5 * 3600, abs=10)


def halves(cast: Cast, name: str, devices: int = 1) -> Cluster:
    """A cluster with H100 that are cut into two halves each."""
    cluster = factories.cluster(name)
    node = factories.node(cluster, f"{name}-0", gpus=0)
    for ordinal in range(devices):
        device = factories.device(node, ordinal, mode=DeviceMode.MIG_STATIC)
        for start in (0, 4):
            factories.device_slice(device, "3g.40gb", start, start + 4)
    return cluster


def ran(work: Workload, cluster: Cluster) -> None:
    Attempt.objects.create(
        workload=work, number=1, cluster=cluster, epoch=1, created_at=work.submitted_at,
        outcome=AttemptOutcome.SUCCEEDED, ended_at=work.ended_at,
    )  # fmt: skip


def advised() -> dict[str, tuple[tuple[tuple[tuple[str, int], ...], int], ...]]:
    return {one.cluster: one.advice.layouts for one in layouts.advice(at=clock.now())}


SEVENTHS, HALVES = ((("1g.10gb", 7),), 1), ((("3g.40gb", 2),), 1)


def test_each_pool_is_cut_for_what_ran_in_it(cast: Cast, small: Flavor) -> None:
    large = factories.mig_flavor("half", profile="3g.40gb")
    south = halves(cast, "south")
    for n in range(2):
        ran(asked(cast, small, f"s{n}"), Cluster.objects.get(name="north"))
        ran(asked(cast, large, f"l{n}"), south)
    assert advised() == {"north": (SEVENTHS,), "south": (HALVES,)}
    [of_south] = layouts.advice(at=clock.now(), cluster="south")
    assert (of_south.cluster, of_south.advice.layouts) == ("south", (HALVES,))


def test_what_waits_is_asked_of_the_pools_that_it_accepts(cast: Cast, small: Flavor) -> None:
    south = halves(cast, "south")
    for n in range(2):
        work = asked(cast, small, f"w{n}")
        work.clusters.add(south)
    assert advised() == {"south": (SEVENTHS,)}


def test_what_waits_for_any_cluster_is_dealt_by_their_devices(cast: Cast, small: Flavor) -> None:
    halves(cast, "south", devices=3)
    for n in range(4):
        asked(cast, small, f"w{n}")
    [north, south] = layouts.advice(at=clock.now())
    assert (north.cluster, south.cluster) == ("north", "south")
    dealt = layouts._dealt(
        layouts._asked(clock.now()),
        {layouts.Pool("north", H100): 1, layouts.Pool("south", H100): 3},
    )
    assert {pool.cluster: len(of) for pool, of in dealt.items()} == {"north": 1, "south": 3}


def test_what_ran_where_no_such_pool_is_any_more_is_dealt_anew(cast: Cast, small: Flavor) -> None:
    gone = factories.cluster("gone")
    for n in range(2):
        ran(asked(cast, small, f"w{n}"), gone)
    assert advised() == {"north": (SEVENTHS,)}


def on_demand(cluster: Cluster, devices: int = 1) -> Node:
    return factories.node(cluster, f"{cluster.name}-d", gpus=devices, mode=DeviceMode.MIG_DYNAMIC)


def test_devices_that_make_slices_on_demand_are_not_advised_on(cast: Cast, small: Flavor) -> None:
    on_demand(Cluster.objects.get(name="north"), devices=3)
    for n in range(2):
        ran(asked(cast, small, f"w{n}"), Cluster.objects.get(name="north"))
    assert advised() == {"north": (SEVENTHS,)}


def test_what_ran_on_a_slice_made_on_demand_is_asked_of_no_other_pool(
    cast: Cast, small: Flavor
) -> None:
    east = factories.cluster("east")
    on_demand(east)
    ran(asked(cast, small, "w"), east)
    assert advised() == {}


def test_what_was_asked_for_long_ago_does_not_count(cast: Cast, small: Flavor) -> None:
    asked(cast, small, "old", hours_ago=24 * 30 + 1)
    assert layouts.advice(at=clock.now()) == ()


def test_work_without_slices_and_models_without_mig_get_no_advice(cast: Cast) -> None:
    node = factories.node(factories.cluster(), gpus=8)
    assert node.devices.exists()
    asked(cast, factories.flavor(), "whole")
    assert layouts.advice(at=clock.now()) == ()


def test_the_page_tells_it_to_those_of_the_fleet(cast: Cast, small: Flavor) -> None:
    client, address = Client(), reverse("layout-list")
    client.force_login(cast.oz)
    assert "No advice" in client.get(address).content.decode()
    asked(cast, small, "w")
    page = " ".join(client.get(address).content.decode().split())
    assert '<th scope="row">7 × 1g.10gb</th>' in page
    assert "less than as they are cut now." in page
    recuts = reverse("cluster-recuts-page", args=["north"])
    assert f"{H100} in north</h2>" in page
    assert f'<a href="{recuts}">Cut nodes anew</a>.' in page
    assert address in client.get(reverse("cluster-list")).content.decode()
    client.force_login(cast.vik)
    assert recuts not in client.get(address).content.decode(), "it is not vik's to cut"
    client.force_login(cast.ada)
    assert client.get(address).status_code == 403
    assert address not in client.get(reverse("cluster-list")).content.decode()


@pytest.mark.parametrize(
    ("model", "unlike"),
    [
        (Node, {"mig_single": True}),
        (Node, {"device_driver": "gpu.nvidia.com"}),
        (Node, {"labels": {"nvidia.com/mig.strategy": "none"}}),
        (Device, {"usable": False}),
    ],
)
def test_it_leads_to_no_nodes_that_can_not_be_cut(
    cast: Cast, small: Flavor, model: type[Node | Device], unlike: dict[str, Any]
) -> None:
    assert list(cuttable.clusters().values()) == [{"north"}]
    model.objects.update(**unlike)
    assert cuttable.clusters() == {}


def test_who_looks_too_often_is_told_so(
    cast: Cast, small: Flavor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ASKED", Throttle(most=1, window=timedelta(hours=1)))
    client, address = Client(), reverse("layout-list")
    client.force_login(cast.oz)
    assert client.get(address).status_code == 200
    answer = client.get(address)
    page = answer.content.decode()
    assert (answer.status_code, "At most 1 of these" in page) == (429, True)
    assert answer.headers["Retry-After"]
    assert "No advice" not in page


def test_the_api_tells_it(cast: Cast, small: Flavor) -> None:
    asked(cast, small, "w")
    client = Client()
    client.force_login(cast.oz)
    [told] = client.get("/api/v1/layouts/advice").json()["pools"]
    assert (told["cluster"], told["model"]) == ("north", H100)
    assert told["layout"] == [{"devices": 1, "slices": [{"profile": "1g.10gb", "count": 7}]}]
    assert told["mean_wait_s"] == 0
    assert told["now_s"] == pytest.approx(5 * 3600, abs=10)


def test_the_command_tells_it(cast: Cast, small: Flavor) -> None:
    out = StringIO()
    call_command("advise_mig", stdout=out)
    assert out.getvalue().startswith("No slices were asked for")
    asked(cast, small, "w")
    out = StringIO()
    call_command("advise_mig", stdout=out)
    assert out.getvalue().splitlines()[:2] == [
        f"{H100} in north:",
        "  1 GPU: 7 x 1g.10gb",
    ]
    assert "Mean wait 0 s, " in out.getvalue()
    assert " s saved." in out.getvalue()
