"""A project's queue over the API: its state, its caps, and what a bad body is told."""

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from tenants.models import CAPS, MAX_CAP, Project, User
from tests.api.test_bad_input import refused
from tests.conftest import Cast, Unchanged

type Api = Callable[[User | None], APIClient]
type Json = dict[str, Any]  # Any: JSON values

NONE: Json = dict.fromkeys(CAPS)


def url(cast: Cast, end: str = "") -> str:
    return f"/api/v1/projects/{cast.detection.id}{end}"


def post(api: Api, cast: Cast, end: str, body: Json) -> Any:  # Any: an answer of the test client
    return api(cast.ada).post(url(cast, end), body, format="json")


def test_a_queue_is_held_drained_and_opened(api: Api, cast: Cast) -> None:
    before = api(cast.ben).get(url(cast)).json()
    assert [before[name] for name in ("queue_state", "queue_note", "queue_changed_by")] == [
        "open", "", None,
    ]  # fmt: skip
    answer = post(api, cast, "/queue", {"state": "held", "note": "New racks."})
    assert answer.status_code == 200
    held = api(cast.ben).get(url(cast)).json()
    alone = ("roles", "preferred_flavors")
    told_there = {name: held[name] for name in held if name in alone or "_in_force_s" in name}
    assert answer.json() | told_there == held
    assert (held["queue_state"], held["queue_note"]) == ("held", "New racks.")
    assert held["queue_changed_by"] == "ada"
    assert held["queue_changed_at"]
    assert post(api, cast, "/queue", {"state": "held", "note": "x"}).status_code == 409
    assert post(api, cast, "/queue", {"state": "draining", "note": "x"}).status_code == 200
    assert post(api, cast, "/queue", {"state": "open"}).json()["queue_note"] == ""


def test_caps_are_given_all_at_once(api: Api, cast: Cast) -> None:
    wanted = NONE | {"max_running": 4, "user_max_gpus_milli": 2500}
    made = post(api, cast, "/caps", wanted).json()
    assert {name: made[name] for name in CAPS} == wanted
    listed = api(cast.ben).get("/api/v1/projects").json()["items"]
    assert [one["max_running"] for one in listed if one["id"] == made["id"]] == [4]
    assert made["caps_from_above"] == ["max_running", "user_max_gpus_milli"]
    assert post(api, cast, "/caps", NONE).json()["max_running"] is None


@pytest.mark.parametrize(
    ("end", "body", "fault"),
    [
        ("/queue", {"state": "held"}, ("/note", "invalid")),
        ("/queue", {"state": "held", "note": "  "}, ("/note", "invalid")),
        ("/queue", {"state": "held", "note": "x" * 501}, ("/note", "max-length")),
        ("/queue", {"state": "held", "note": "a\u202eb"}, ("/note", "bad-character")),
        ("/queue", {"state": "closed", "note": "x"}, ("/state", "invalid-choice")),
        ("/queue", {"note": "x"}, ("/state", "required")),
        ("/queue", {"state": "held", "note": "x", "by": "me"}, ("/by", "unknown-field")),
        ("/caps", {}, ("/max_running", "required")),
        ("/caps", NONE | {"max_running": 0}, ("/max_running", "min-value")),
        ("/caps", NONE | {"max_pending": MAX_CAP + 1}, ("/max_pending", "max-value")),
        ("/caps", NONE | {"user_max_running": 1.0}, ("/user_max_running", "wrong-type")),
        ("/caps", NONE | {"user_max_pending": "2"}, ("/user_max_pending", "wrong-type")),
        ("/caps", NONE | {"max_gpus": 2}, ("/max_gpus", "unknown-field")),
    ],
)
def test_a_bad_body_is_told_where_it_is_wrong_and_changes_nothing(
    api: Api, cast: Cast, nothing_stored: Unchanged, end: str, body: Json, fault: tuple[str, str]
) -> None:
    before = Project.objects.values().get(id=cast.detection.id)
    with nothing_stored():
        answer = post(api, cast, end, body)
    assert fault in refused(answer)
    assert Project.objects.values().get(id=cast.detection.id) == before
