"""/channels, and those of each tenant and project: made, listed without their secrets, tried."""

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from controlplane.audit.models import AuditEvent
from controlplane.kernel import clock
from tenants.models import Channel, Delivery, User
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]

CANARY = "canary-in-an-address"
ASKED = {
    "name": "Chat",
    "kind": "json",
    "url": f"https://hooks.example/{CANARY}",
    "events": ["request.opened", "grant.ended"],
}


def of_detection(cast: Cast) -> str:
    return f"/api/v1/projects/{cast.detection.id}/channels"


def made(api: Api, cast: Cast, **fields: Any) -> dict[str, Any]:  # Any: JSON values
    answer = api(cast.ada).post(of_detection(cast), ASKED | fields, format="json")
    assert answer.status_code == 201, answer.json()
    found: dict[str, Any] = answer.json()
    return found


def test_the_secret_is_told_once_and_the_address_never(api: Api, cast: Cast) -> None:
    first = made(api, cast)
    secret = first.pop("secret")
    assert secret.startswith("berth_hook_")
    assert (first["host"], first["events"]) == ("hooks.example", ["grant.ended", "request.opened"])
    answer = api(cast.ada).get(of_detection(cast))
    [row] = answer.json()["items"]
    standing = {
        "sent_count": 0, "waiting_count": 0, "failed_count": 0, "last_sent_at": None,
        "last_error": None, "failing_since": None,
    }  # fmt: skip
    assert row == first | standing
    audited = str(list(AuditEvent.objects.filter(action="channel.make").values("after")))
    assert "hooks.example" in audited
    for word in (CANARY, secret):
        assert word not in answer.content.decode() + audited
    assert CANARY not in str(first)


def test_what_came_of_what_was_sent_is_told(api: Api, cast: Cast) -> None:
    channel = Channel.objects.get(id=made(api, cast)["id"])
    other = Channel.objects.get(id=made(api, cast, name="Other")["id"])
    ada = api(cast.ada)
    for each in (channel, channel, channel, other):
        assert ada.post(f"/api/v1/channels/{each.id}/test").status_code == 202
    first, second, third = Delivery.objects.filter(channel=channel).order_by("id")
    at = clock.now()
    Delivery.objects.filter(id=first.id).update(sent_at=at)
    Delivery.objects.filter(id=second.id).update(failed_at=at, error="It answered 500.")
    Delivery.objects.filter(id=third.id).update(error="It answered 404.")
    row, beside = ada.get(of_detection(cast)).json()["items"]
    counts = ("sent_count", "waiting_count", "failed_count")
    assert [row[name] for name in counts] == [1, 1, 1]
    assert row["last_error"] == "It answered 404."
    assert row["last_sent_at"] is not None
    assert [beside[name] for name in counts] == [0, 1, 0]


@pytest.mark.parametrize(
    ("field", "value", "pointer"),
    [
        ("url", "http://hooks.example/", "/url"),
        ("url", "https://ada:word@hooks.example/", "/url"),
        ("events", [], "/events"),
        ("events", ["channel.test"], "/events/0"),
        ("kind", "fax", "/kind"),
        ("name", "a\u202eb", "/name"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_kept(
    api: Api, cast: Cast, field: str, value: object, pointer: str
) -> None:
    answer = api(cast.ada).post(of_detection(cast), ASKED | {field: value}, format="json")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert not Channel.objects.exists()


def test_a_name_that_is_there_is_a_conflict(api: Api, cast: Cast) -> None:
    made(api, cast)
    assert api(cast.ada).post(of_detection(cast), ASKED, format="json").status_code == 409


def test_a_removed_one_is_gone_and_audited(api: Api, cast: Cast) -> None:
    id = made(api, cast)["id"]
    assert api(cast.cleo).delete(f"/api/v1/channels/{id}").status_code == 404
    assert api(cast.ben).delete(f"/api/v1/channels/{id}").status_code == 403
    assert api(cast.ada).delete(f"/api/v1/channels/{id}").status_code == 204
    assert api(cast.ada).delete(f"/api/v1/channels/{id}").status_code == 404
    row = AuditEvent.objects.get(action="channel.remove")
    assert (row.project_id, row.after["host"]) == (cast.detection.id, "hooks.example")
