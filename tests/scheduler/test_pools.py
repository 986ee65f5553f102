"""What fits now: measured by the loop, kept for a while, told by page, API and metrics."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from controlplane.counts import Counts
from controlplane.kernel import clock
from scheduler.loop.recording import forecast, pools
from scheduler.models import PoolSample
from scheduler.selectors import pools as selectors
from scheduler.selectors.load import load_here
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import LATER, Stage

H100 = "NVIDIA-H100-80GB-HBM3"


def measure(stage: Stage, *, minutes: int = 0) -> None:
    at = clock.now() - timedelta(minutes=minutes)
    pools.measure(snapshot=load_here(at=at).snapshot, at=at)


def figures(stage: Stage) -> PoolSample:
    [found] = selectors.newest(cluster_id=stage.cluster.id, at=clock.now())
    return found


def test_the_figures_are_those_of_now(stage: Stage) -> None:
    stage.running("w", gpus=3)
    measure(stage)
    found = figures(stage)
    assert (found.model, found.total_milli, found.free_milli) == (H100, 16_000, 13_000)
    assert (found.whole_nodes, found.scattered_milli, found.stranded_milli) == (1, 384, 0)
    [anywhere] = selectors.fits(found)
    assert anywhere == selectors.Fits("", ((1, 13), (2, 6), (4, 3), (8, 1)))


def test_what_waits_tells_what_is_stranded(stage: Stage) -> None:
    stage.running("one", gpus=3)
    stage.running("two", gpus=8)
    stage.submit("waits", gpus=8)
    measure(stage)
    assert figures(stage).stranded_milli == 5000


def test_each_moment_is_written_once(stage: Stage) -> None:
    snapshot = load_here(at=LATER).snapshot
    assert pools.measure(snapshot=snapshot, at=LATER) == 1
    pools.measure(snapshot=snapshot, at=LATER)
    assert PoolSample.objects.count() == 1


def test_the_newest_figures_are_told_and_only_while_they_are_fresh(stage: Stage) -> None:
    measure(stage, minutes=16)
    assert selectors.newest(cluster_id=stage.cluster.id, at=clock.now()) == ()
    measure(stage, minutes=5)
    stage.running("w", gpus=8)
    measure(stage, minutes=1)
    assert figures(stage).free_milli == 8000


def test_figures_of_a_week_ago_are_forgotten(stage: Stage) -> None:
    measure(stage)
    with connection.cursor() as cursor:  # by id, whose time is real
        cursor.execute(
            "UPDATE scheduler_poolsample SET id = '00000000-0000-7000-8000-000000000000'"
        )
    measure(stage)
    assert PoolSample.objects.count() == 1


def test_hours_are_means(stage: Stage) -> None:
    at = AT.replace(hour=12, minute=30)
    for minute, free in ((0, 2000), (20, 4000), (40, 9000)):
        PoolSample.objects.create(
            cluster=stage.cluster, model=H100, at=AT.replace(hour=11, minute=minute),
            total_milli=16_000, free_milli=free, stranded_milli=1000, scattered_milli=0,
            whole_nodes=0,
        )  # fmt: skip
    [hour] = selectors.trends(cluster_id=stage.cluster.id, at=at)[H100]
    assert (hour.start, hour.free_milli, hour.stranded_milli) == (
        AT.replace(hour=11, minute=0, second=0, microsecond=0), Decimal(5000), Decimal(1000),
    )  # fmt: skip
    assert selectors.trends(cluster_id=stage.cluster.id, at=at + timedelta(days=1)) == {}


@pytest.mark.django_db(transaction=True)
def test_they_are_measured_whenever_waits_are_estimated(committed: Stage) -> None:
    assert forecast.run(at=clock.now()) == 0
    assert figures(committed).free_milli == 16_000


def test_of_a_cluster_that_takes_nothing_new_nothing_is_told(stage: Stage) -> None:
    factories.close(stage.cluster)
    measure(stage)
    assert not PoolSample.objects.exists()


def samples() -> Iterator[tuple[str, dict[str, str], float]]:
    for metric in Counts().collect():
        for sample in metric.samples:
            if sample.name.startswith("berth_pool_"):
                yield sample.name, sample.labels, sample.value


def test_the_metrics_tell_them_by_cluster_and_model(stage: Stage) -> None:
    stage.running("w", gpus=3)
    measure(stage)
    of = {"cluster": "north", "model": H100}
    assert sorted(samples(), key=str) == [
        ("berth_pool_devices", of, 16),
        ("berth_pool_free_devices", of, 13),
        ("berth_pool_gang_pods", of | {"devices_a_pod": "1"}, 13),
        ("berth_pool_gang_pods", of | {"devices_a_pod": "2"}, 6),
        ("berth_pool_gang_pods", of | {"devices_a_pod": "4"}, 3),
        ("berth_pool_gang_pods", of | {"devices_a_pod": "8"}, 1),
        ("berth_pool_stranded_devices", of, 0),
        ("berth_pool_whole_nodes", of, 1),
    ]


def test_the_page_tells_them(stage: Stage) -> None:
    stage.running("w", gpus=3)
    client = Client()
    client.force_login(stage.ada)
    address = reverse("cluster-detail", args=["north"])
    assert "Not measured in the last 15 minutes." in client.get(address).content.decode()
    measure(stage)
    page = " ".join(client.get(address).content.decode().split())
    assert f"What fits now: {H100}" in page
    assert "13 of 16 GPUs are free; 1 node is free altogether, and 38 % of what" in page
    assert '<td class="num">13 pods</td>' in page
    assert '<td class="num">1 pod</td>' in page
    assert f"GPU-hours of {H100} that nobody held" in page


def test_a_poll_is_204_until_they_are_measured_again(stage: Stage) -> None:
    client = Client()
    client.force_login(stage.ada)
    address = reverse("cluster-detail", args=["north"])
    rev = client.get(address).context["rev"]
    assert client.get(address, {"rev": rev}, headers={"HX-Request": "true"}).status_code == 204
    measure(stage)
    assert client.get(address, {"rev": rev}, headers={"HX-Request": "true"}).status_code == 200


def test_the_api_tells_them(stage: Stage) -> None:
    stage.running("w", gpus=3)
    measure(stage)
    client = Client()
    client.force_login(stage.ada)
    address = f"/api/v1/pools/{stage.cluster.id}/fit"
    body = client.get(address).json()
    [pool] = body["pools"]
    assert body["cluster"] == "north"
    assert pool["fits"] == [
        {
            "level": "",
            "pods": [
                {"gpus": 1, "pods": 13}, {"gpus": 2, "pods": 6}, {"gpus": 4, "pods": 3},
                {"gpus": 8, "pods": 1},
            ],
        }
    ]  # fmt: skip
    assert [hour["free_milli"] for hour in pool["trend"]] == [13_000]
    assert client.get(address, {"model": H100}).json() == body
    assert client.get(address, {"model": "T4"}).json()["pools"] == []
