"""GET /audit-events and the files that it can be taken away in."""

import csv
from collections.abc import Callable
from io import StringIO
from uuid import uuid4

import pytest
from rest_framework.test import APIClient

from controlplane.audit.models import AuditEvent
from controlplane.audit.services import Entry, record
from tenants.models import Project, User
from tenants.web import audit_api
from tenants.web.audit_api import COLUMNS
from tests.conftest import Cast
from tests.factories import AT

type Api = Callable[[User | None], APIClient]

URL = "/api/v1/audit-events"


def write(*names: str, of: Project) -> None:
    record(
        actor="system:test",
        actor_name="test",
        at=AT,
        entries=[
            Entry(
                "project.create", "project", uuid4(), of.tenant_id, of.id,
                after={"name": name, "slug": "new"},
            )
            for name in names
        ],
    )  # fmt: skip


def test_a_list_goes_on_by_its_cursor(api: Api, cast: Cast) -> None:
    write("one", "two", "three", of=cast.detection)
    client = api(cast.ada)
    first = client.get(URL, {"limit": 2}).json()
    assert [item["after"]["name"] for item in first["items"]] == ["three", "two"]
    last = client.get(URL, {"limit": 2, "cursor": first["next"]}).json()
    [item] = last["items"]
    assert last["next"] is None
    row = AuditEvent.objects.get(id=item["id"])
    assert item == {
        "id": str(row.id),
        "at": "2026-11-21T09:00:00Z",
        "actor": "system:test",
        "actor_name": "test",
        "action": "project.create",
        "target_type": "project",
        "target_id": str(row.target_id),
        "tenant": str(cast.vision.id),
        "project": str(cast.detection.id),
        "before": {},
        "after": {"name": "one", "slug": "new"},
    }


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"action": "user.steal"}, "?action"),
        ({"since": "yesterday"}, "?since"),
        ({"target": "7"}, "?target"),
        ({"colour": "red"}, "?colour"),
    ],
)
@pytest.mark.parametrize("kind", ["", ".csv", ".json"])
def test_a_filter_that_is_none_is_refused(
    api: Api, cast: Cast, query: dict[str, str], pointer: str, kind: str
) -> None:
    answer = api(cast.ada).get(f"{URL}{kind}", query)
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_files_hold_the_newest_and_go_on_before_the_last(
    api: Api, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_api, "MOST_EXPORTED", 2)
    write("one", "two", "three", of=cast.detection)
    write("theirs", of=cast.dialogue)
    client = api(cast.ada)
    first = client.get(f"{URL}.json").json()
    assert [item["after"]["name"] for item in first["items"]] == ["three", "two"]
    rest = client.get(f"{URL}.json", {"before": first["items"][-1]["id"]}).json()
    assert [item["after"]["name"] for item in rest["items"]] == ["one"]
    answer = client.get(f"{URL}.csv", {"before": first["items"][-1]["id"]})
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="audit.csv"'
    [row] = csv.DictReader(StringIO(answer.content.decode()))
    assert tuple(row) == COLUMNS
    assert (row["id"], row["at"]) == (rest["items"][0]["id"], "2026-11-21T09:00:00+00:00")
    assert row["after"] == '{"name":"one","slug":"new"}'


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"])
def test_no_cell_is_a_formula(cast: Cast, name: str) -> None:
    event = AuditEvent(actor_name=name, at=AT)
    [row] = csv.DictReader(StringIO(audit_api.as_csv([event])))
    assert row["actor_name"] == f"'{name}"


def test_commas_quotes_and_lines_stay_in_their_cell() -> None:
    event = AuditEvent(actor_name='Ada, "the\nfirst"', at=AT)
    [row] = csv.DictReader(StringIO(audit_api.as_csv([event])))
    assert row["actor_name"] == 'Ada, "the\nfirst"'
