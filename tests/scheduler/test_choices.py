"""Why work is in its cluster: stored with the attempt, told by the API and on the page."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.test import Client
from django.urls import reverse
from pytest_django import Settings
from rest_framework.test import APIClient

from clusters.models import Cluster
from scheduler.models import Attempt, Workload
from scheduler.selectors import choices
from scheduler.selectors.load import load_here
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import Stage

type Json = dict[str, Any]  # Any: JSON values
TAKEN = (
    "taken: of those with room for all of it the cheapest, of those as cheap the one with least"
    " free; else the one where most of it starts"
)
DEARER = "not asked: it costs more there, or has no price there yet"


@pytest.fixture
def south(stage: Stage) -> Cluster:
    """A second cluster, with less: one node of four. What it charges is what all do."""
    cluster = factories.cluster("south")
    node = factories.node(cluster, "s1", gpus=0)
    for ordinal in range(4):
        factories.device(node, ordinal)
    return cluster


def told(stage: Stage, **asked: int) -> Json:
    """Of the one attempt, as the API tells it."""
    work = stage.submit("train", **asked)
    stage.cycle()
    return shown(stage, work)


def shown(stage: Stage, work: Workload) -> Json:
    client = APIClient(headers=factories.bearer(factories.token(stage.ada)))
    [attempt] = client.get(f"/api/v1/workloads/{work.id}").json()["attempts"]
    page = Client()
    page.force_login(stage.ada)
    attempt["page"] = page.get(reverse("workload-detail", args=[work.id])).content.decode()
    return dict(attempt)


@pytest.mark.usefixtures("south")
def test_the_fullest_cluster_with_room_is_taken_and_that_is_told(stage: Stage) -> None:
    attempt = told(stage, gpus=2)
    assert attempt["cluster"] == "south"
    assert attempt["choice"] == {
        "currency": None,
        "kept": False,
        "clusters": [
            {
                "cluster": "south",
                "verdict": "chosen",
                "free_milli": 4000,
                "per_hour": None,
                "text": TAKEN,
            },
            {
                "cluster": stage.cluster.name,
                "verdict": "emptier",
                "free_milli": 16000,
                "per_hour": None,
                "text": "not asked: more was free there, which stays together for larger work",
            },
        ],
        "passed": [],
    }
    assert "Why there" in attempt["page"]
    assert "more was free there" in attempt["page"]
    assert "An hour of all of it" not in attempt["page"]


def test_the_cheaper_cluster_is_taken_and_what_each_charges_is_told(
    stage: Stage, south: Cluster
) -> None:
    """By its own price, which goes before the one of any cluster, 3600."""
    factories.rate(stage.flavor, "3600.000001", cluster=south)
    attempt = told(stage, gpus=2)
    assert attempt["cluster"] == stage.cluster.name
    choice = attempt["choice"]
    assert choice["currency"] == "EUR"
    assert choice["clusters"] == [
        {
            "cluster": stage.cluster.name,
            "verdict": "chosen",
            "free_milli": 16000,
            "per_hour": "7200.000000",
            "text": TAKEN,
        },
        {
            "cluster": "south",
            "verdict": "dearer",
            "free_milli": 4000,
            "per_hour": "7200.000002",
            "text": DEARER,
        },
    ]
    for text in ("An hour of all of it", "€7,200.00", "€7,200.000002", DEARER):
        assert text in attempt["page"]


def test_the_dearer_one_is_taken_where_the_cheaper_has_no_room(
    stage: Stage, south: Cluster
) -> None:
    factories.rate(stage.flavor, "1", cluster=south)
    attempt = told(stage, gpus=8)
    found = [(each["cluster"], each["verdict"]) for each in attempt["choice"]["clusters"]]
    assert found == [(stage.cluster.name, "chosen"), ("south", "full")]


def test_a_price_that_is_set_for_a_date_counts_from_then_on(stage: Stage, south: Cluster) -> None:
    begins_at, ends_at = AT + timedelta(hours=1), AT + timedelta(hours=2)
    during = DateTimeTZRange(begins_at, ends_at)
    factories.rate(stage.flavor, "4000", cluster=south, during=during)
    where = []
    moment = timedelta(microseconds=1)
    for nth, at in enumerate((begins_at - moment, begins_at, ends_at - moment, ends_at)):
        work = stage.submit(f"train-{nth}")
        stage.cycle(at=at)
        where.append(work.attempts.get().cluster.name)
    assert where == ["south", stage.cluster.name, stage.cluster.name, "south"]


def test_what_is_charged_is_loaded_where_it_differs(
    stage: Stage, south: Cluster, settings: Settings
) -> None:
    def loaded() -> dict[str, int]:
        rates = load_here(at=AT).snapshot.rates
        assert {rate.flavor for rate in rates} <= {str(stage.flavor.id)}
        return {str(rate.cluster): rate.micro_per_hour for rate in rates}

    own = factories.rate(stage.flavor, "3600", cluster=south)
    assert loaded() == {}  # as everywhere
    own.delete()
    factories.rate(stage.flavor, "0.000001", cluster=south)
    assert loaded() == {str(stage.cluster.id): 3_600_000_000, str(south.id): 1}
    settings.BERTH_CURRENCY = "USD"  # none of them compares with what is charged then
    assert loaded() == {}


@pytest.mark.usefixtures("south")
def test_a_cluster_without_room_is_told_of(stage: Stage) -> None:
    attempt = told(stage, gpus=8)
    assert [(each["cluster"], each["verdict"]) for each in attempt["choice"]["clusters"]] == [
        (stage.cluster.name, "chosen"),
        ("south", "full"),
    ]


def test_where_there_is_one_cluster_nothing_is_told(stage: Stage) -> None:
    attempt = told(stage)
    assert attempt["choice"] is None
    assert "Why there" not in attempt["page"]
    assert Attempt.objects.get().choice is None


@pytest.mark.usefixtures("south")
def test_what_was_stored_before_money_was_told_is_shown_without(stage: Stage) -> None:
    work = stage.submit("train")
    stage.cycle()
    attempt = Attempt.objects.get()
    assert attempt.choice is not None
    del attempt.choice["currency"]
    for each in attempt.choice["clusters"]:
        del each["per_hour"]
    attempt.save()
    choice = shown(stage, work)["choice"]
    assert choice["currency"] is None
    assert [each["per_hour"] for each in choice["clusters"]] == [None, None]
    assert choices.shown(None) is None
