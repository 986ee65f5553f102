"""What failed and what was lost: on a workload, by project, and in the metrics."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from scheduler.core.lifecycle import State
from scheduler.models import Attempt, AttemptOutcome, Workload
from scheduler.selectors import losses
from tenants.models import Project, User
from tests import factories
from tests.conftest import Cast
from tests.factories import AT

type Api = Callable[[User | None], APIClient]
URL = "/api/v1/losses"
HOUR = timedelta(hours=1)


def ended(
    of: Workload, number: int, outcome: AttemptOutcome, failure: str = "", **fields: Any
) -> None:
    """An hour later for each number; Any: model fields."""
    fields = {"epoch": 1, "created_at": AT, "ended_at": AT + number * HOUR} | fields
    cluster = factories.cluster(f"north-{Attempt.objects.count()}")
    Attempt.objects.create(
        workload=of, number=number, cluster=cluster, outcome=outcome, failure=failure, **fields
    )


@pytest.fixture
def failed(cast: Cast) -> Workload:
    """Evicted after 0.8 GPU-hours, then without its node, then out of memory; another project's
    was evicted too."""
    flavor = factories.flavor()
    row = factories.workload(cast.detection, cast.ben, [flavor], state=State.FAILED)
    ended(row, 1, AttemptOutcome.PREEMPTED, lost_milli_s=2_880_000)
    ended(row, 2, AttemptOutcome.LOST, "node-lost", trouble="its node was lost: NodeLost")
    ended(row, 3, AttemptOutcome.FAILED, "out-of-memory", lost_milli_s=7000)
    other = factories.workload(cast.dialogue, cast.cleo, [flavor])
    ended(other, 1, AttemptOutcome.PREEMPTED, lost_milli_s=1000)
    ended(other, 2, AttemptOutcome.SUCCEEDED)
    return row


def summed(client: APIClient, **query: str) -> list[tuple[str, str, int, int]]:
    names = {str(project.id): project.name for project in Project.objects.all()}
    items = client.get(URL, query).json()["items"]
    return [
        (names[row["project"]], row["cause"], row["count"], row["lost_milli_s"]) for row in items
    ]


def test_a_workload_tells_of_its_attempts_the_newest_first(
    api: Api, cast: Cast, failed: Workload
) -> None:
    shown = api(cast.ben).get(f"/api/v1/workloads/{failed.id}").json()["attempts"]
    told = [(row["number"], row["outcome"], row["failure"], row["lost_milli_s"]) for row in shown]
    assert told == [
        (3, "failed", "out-of-memory", 7000),
        (2, "lost", "node-lost", 0),
        (1, "preempted", "", 2_880_000),
    ]
    assert shown[1]["trouble"] == "its node was lost: NodeLost"


def test_a_project_sums_what_it_lost_by_cause(api: Api, cast: Cast, failed: Workload) -> None:
    of_detection = [
        ("Detection", "preempted", 1, 2_880_000),
        ("Detection", "node-lost", 1, 0),
        ("Detection", "out-of-memory", 1, 7000),
    ]
    assert summed(api(cast.ben)) == of_detection
    assert summed(api(cast.cleo)) == [("Dialogue", "preempted", 1, 1000)]
    everywhere = [*of_detection, ("Dialogue", "preempted", 1, 1000)]
    assert sorted(summed(api(cast.oz))) == sorted(everywhere)
    assert summed(api(cast.oz), project=str(cast.detection.id)) == of_detection


def test_what_it_lost_is_narrowed_to_when_it_ended(api: Api, cast: Cast, failed: Workload) -> None:
    since, until = (AT + 2 * HOUR).isoformat(), (AT + 3 * HOUR).isoformat()
    found = summed(api(cast.ben), since=since, until=until)
    assert found == [("Detection", "node-lost", 1, 0)]
    assert api(cast.ben).get(URL, {"since": "yesterday"}).status_code == 400


def test_of_a_period_only_that_period_is_read(cast: Cast, failed: Workload) -> None:
    like = failed.attempts.get(number=3)
    Attempt.objects.bulk_create(
        Attempt(
            workload=failed, number=number, cluster_id=like.cluster_id, epoch=1, created_at=AT,
            ended_at=AT + number * HOUR, outcome=like.outcome, failure=like.failure,
        )
        for number in range(4, 1000)
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE scheduler_attempt")
    rows = Attempt.objects.filter(ended_at__gte=AT + 990 * HOUR)
    plan = losses.summed(rows, "failure").explain()
    assert "attempt_failed_at" in plan
    assert "Index Cond: ((ended_at >=" in plan


def test_the_metrics_count_each_class_and_name_no_project(cast: Cast, failed: Workload) -> None:
    token = factories.token(cast.oz)
    text = APIClient(headers=factories.bearer(token)).get("/metrics").content.decode()
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert lines['berth_attempts_failed_total{failure="node-lost"}'] == "1.0"
    assert lines['berth_attempts_failed_total{failure="start-error"}'] == "0.0"
    assert lines['berth_lost_device_seconds_total{why="preempted"}'] == "2881.0"
    assert lines['berth_lost_device_seconds_total{why="out-of-memory"}'] == "7.0"
    assert "Detection" not in text
