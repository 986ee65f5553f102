"""Pages of a list: cursors, limits, filters, and the shape that every list has."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from clusters.models import Flavor
from scheduler.core.lifecycle import State
from scheduler.models import Workload
from tenants.models import Quota, User
from tests import factories
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]

URL = "/api/v1/workloads"


@pytest.fixture
def h100(db: None) -> Flavor:
    return factories.flavor()


def walk(client: APIClient, url: str) -> list[list[Any]]:  # Any: rows
    """Every page, by following Link."""
    pages = []
    while url:
        answer = client.get(url)
        page = answer.json()
        pages.append(page["items"])
        assert (page["next"] is None) == ("Link" not in answer)
        url = answer["Link"].partition(">")[0][1:] if page["next"] else ""
    return pages


def test_pages_hold_each_row_once_the_newest_first(api: Api, cast: Cast, h100: Flavor) -> None:
    made = [
        str(factories.workload(cast.detection, cast.ben, [h100], f"w{n}").id) for n in range(7)
    ]
    pages = walk(api(cast.ben), f"{URL}?limit=3")
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [row["id"] for page in pages for row in page] == made[::-1]


def test_a_new_row_does_not_shift_the_next_page(api: Api, cast: Cast, h100: Flavor) -> None:
    made = [str(factories.workload(cast.detection, cast.ben, [h100]).id) for _ in range(4)]
    client = api(cast.ben)
    first = client.get(f"{URL}?limit=2")
    factories.workload(cast.detection, cast.ben, [h100])
    second = client.get(first["Link"].partition(">")[0][1:])
    assert [row["id"] for row in second.json()["items"]] == made[1::-1]


def test_a_full_last_page_has_no_next(api: Api, cast: Cast, h100: Flavor) -> None:
    for _ in range(2):
        factories.workload(cast.detection, cast.ben, [h100])
    page = api(cast.ben).get(f"{URL}?limit=2").json()
    assert (len(page["items"]), page["next"]) == (2, None)


def test_a_list_has_no_total_and_says_as_of_when(api: Api, cast: Cast) -> None:
    page = api(cast.ben).get(URL).json()
    assert set(page) == {"items", "next", "as_of"}
    assert page["as_of"].endswith("Z")


def test_filters_narrow_and_stay_in_the_next_link(api: Api, cast: Cast, h100: Flavor) -> None:
    for state in (State.PENDING, State.RUNNING, State.PENDING):
        factories.workload(cast.detection, cast.ben, [h100], state=state)
    other = factories.workload(cast.segmentation, cast.ada, [h100], "b")
    late = factories.AT + timedelta(hours=2)
    factories.workload(cast.segmentation, cast.ada, [h100], "late", submitted_at=late)
    client = api(cast.ada)

    def count(query: str) -> list[int]:
        return [len(page) for page in walk(client, f"{URL}?{query}")]

    assert count("state=PENDING&limit=1") == [1, 1, 1, 1]
    assert count(f"project={cast.detection.id}") == [3]
    assert count("state=RUNNING,CANCELLED") == [1]
    assert count("name=late") == [1]
    assert count("mine=true") == [2]
    assert count(f"since={late.isoformat().replace('+00:00', 'Z')}") == [1]
    assert count(f"until={late.isoformat().replace('+00:00', 'Z')}") == [4]
    assert walk(client, f"{URL}?name=b")[0][0]["id"] == str(other.id)


def test_a_queue_is_in_the_planners_order_with_positions(
    api: Api, cast: Cast, h100: Flavor
) -> None:
    early = factories.AT - timedelta(hours=1)
    names: dict[str, dict[str, Any]] = {  # Any: model fields
        "second": {"submitted_at": early},
        "third": {},
        "first": {"priority_class": "high"},
        "fourth": {"priority_class": "low", "submitted_at": early},
    }
    for name, fields in names.items():
        factories.workload(cast.detection, cast.ben, [h100], name, **fields)
    factories.workload(cast.detection, cast.ben, [h100], "runs", state=State.RUNNING)
    pages = walk(api(cast.ben), f"/api/v1/queues/{cast.detection.id}?limit=3")
    assert [(row["position"], row["name"]) for page in pages for row in page] == [
        (1, "first"), (2, "second"), (3, "third"), (4, "fourth"),
    ]  # fmt: skip


def test_a_queue_tells_what_orders_it_one_term_after_the_other(
    api: Api, cast: Cast, h100: Flavor
) -> None:
    factories.quota(cast.detection, h100, 3000, used_milli=3000)
    factories.quota(cast.dialogue, h100, 1000)
    Quota.objects.filter(project=cast.detection).update(nominal_milli=1000)
    row = factories.workload(cast.detection, cast.ben, [h100], priority_class="high")
    standing = [
        {"name": "Vision Lab", "share_ppm": 1_000_000, "past_ppm": 0},
        {"name": "Detection", "share_ppm": 1_000_000, "past_ppm": 0},
    ]
    client = api(cast.ben)
    [queued] = client.get(f"/api/v1/queues/{cast.detection.id}").json()["items"]
    assert (queued["priority"], queued["standing"]) == (row.priority, standing)
    one = client.get(f"{URL}/{row.id}").json()
    assert (one["priority"], one["standing"]) == (row.priority, standing)
    Workload.objects.filter(id=row.id).update(state=State.ADMITTED, version=2)
    assert client.get(f"{URL}/{row.id}").json()["standing"] == []


def test_a_queue_shows_the_newest_estimate_and_the_reason(
    api: Api, cast: Cast, h100: Flavor
) -> None:
    reason = {"code": "quota-used", "numbers": {"used_milli": 8000}, "text": "All 8 are in use."}
    row = factories.workload(
        cast.detection, cast.ben, [h100], reason=reason, reason_at=factories.AT
    )
    old = factories.estimate(row)
    type(old).objects.filter(id=old.id).update(as_of=factories.AT - timedelta(minutes=1), p50_s=1)
    factories.estimate(row)
    unknown = factories.workload(cast.detection, cast.ben, [h100])
    factories.estimate(unknown, p50_s=None, p90_s=None)
    new = factories.workload(cast.detection, cast.ben, [h100])
    items = api(cast.ben).get(f"/api/v1/queues/{cast.detection.id}").json()["items"]
    assert [item["workload"] for item in items] == [str(row.id), str(unknown.id), str(new.id)]
    assert items[0]["reason"] == reason
    assert items[0]["estimate"] == {
        "p50_s": 600, "p90_s": 1800, "as_of": "2026-11-21T09:00:00Z", "basis": "plan",
    }  # fmt: skip
    assert items[1]["estimate"]["p50_s"] is None
    assert items[2]["estimate"] is None


def test_nobody_sees_another_tenants_rows_or_names(api: Api, cast: Cast, h100: Flavor) -> None:
    node = factories.node(factories.cluster(), gpus=1)
    row = factories.workload(cast.detection, cast.ben, [h100], "secret", state=State.RUNNING)
    placed = factories.place(row, node, h100)
    factories.span(placed, node.devices.get())
    factories.charge(factories.usage(placed), factories.rate(h100))
    factories.quota(cast.detection, h100)
    factories.quota_request(cast.detection, h100, cast.ben)
    client = api(cast.cleo)
    for path in (
        "me", "tenants", "projects", "quotas", "quota-requests", "workloads", "usage", "charges",
        "clusters", "nodes", "devices", "flavors", "rates", "tokens",
    ):  # fmt: skip
        text = client.get(f"/api/v1/{path}").content.decode()
        for word in ("Vision", "vision", "Detection", "secret", "ben", str(cast.detection.id)):
            assert word not in text, path
