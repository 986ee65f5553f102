"""Why work is in its cluster: stored with the attempt, told by the API and on the page."""

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from scheduler.models import Attempt
from tests import factories
from tests.scheduler.stage import Stage


@pytest.fixture
def south(stage: Stage) -> None:
    """A second cluster, with less: one node of four."""
    node = factories.node(factories.cluster("south"), "s1", gpus=0)
    for ordinal in range(4):
        factories.device(node, ordinal)


def told(stage: Stage, **asked: int) -> dict[str, object]:
    """Of the one attempt, as the API tells it."""
    work = stage.submit("train", **asked)
    stage.cycle()
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
        "kept": False,
        "clusters": [
            {
                "cluster": "south",
                "verdict": "chosen",
                "free_milli": 4000,
                "text": "taken: of those with room for all of it the one with least free, else the"
                " one where most of it starts",
            },
            {
                "cluster": stage.cluster.name,
                "verdict": "emptier",
                "free_milli": 16000,
                "text": "not asked: more was free there, which stays together for larger work",
            },
        ],
        "passed": [],
    }
    assert "Why there" in str(attempt["page"])
    assert "more was free there" in str(attempt["page"])


@pytest.mark.usefixtures("south")
def test_a_cluster_without_room_is_told_of(stage: Stage) -> None:
    attempt = told(stage, gpus=8)
    choice = attempt["choice"]
    assert isinstance(choice, dict)
    assert [(each["cluster"], each["verdict"]) for each in choice["clusters"]] == [
        (stage.cluster.name, "chosen"),
        ("south", "full"),
    ]


def test_where_there_is_one_cluster_nothing_is_told(stage: Stage) -> None:
    attempt = told(stage)
    assert attempt["choice"] is None
    assert "Why there" not in str(attempt["page"])
    assert Attempt.objects.get().choice is None
