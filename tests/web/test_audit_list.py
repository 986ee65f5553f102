"""/audit: who did what, with filters, for those who may read it."""

from html import unescape
from uuid import uuid4

import pytest
from django.urls import reverse

from controlplane.audit.services import Entry, record
from tenants.models import Project
from tests.conftest import Cast
from tests.factories import AT
from tests.web.conftest import Browse

URL = reverse("audit-list")


def write(action: str, of: Project, *, by: str = "ada", **after: object) -> None:
    entry = Entry(action, "project", of.id, of.tenant_id, of.id, after=after)
    record(actor=f"user:{uuid4()}", actor_name=by, entries=[entry], at=AT)


@pytest.fixture(autouse=True)
def written(cast: Cast) -> None:
    write("project.weight", cast.detection, weight=7)
    write("project.least-isolation", cast.segmentation, by="oz", least_isolation="<b>none</b>")
    write("project.weight", cast.dialogue, by="cleo", weight=9)


def test_an_owner_sees_what_was_done_in_their_projects(browse: Browse, cast: Cast) -> None:
    answer = browse(cast.ada).get(URL)
    html = answer.content.decode()
    assert [line.event.actor_name for line in answer.context["page"].lines] == ["oz", "ada"]
    assert "Vision Lab / Segmentation" in html
    assert "&lt;b&gt;none&lt;/b&gt;" in html
    assert "cleo" not in html


def test_it_is_narrowed_and_what_is_exported_with_it(browse: Browse, cast: Cast) -> None:
    client = browse(cast.ada)
    project = str(cast.detection.id)
    answer = client.get(
        URL, {"project": project, "action": "project.weight", "until": "2026-11-21"}
    )
    assert [line.event.actor_name for line in answer.context["page"].lines] == ["ada"]
    html = answer.content.decode()
    start = html.index("/api/v1/audit-events.csv?")
    url = html[start : html.index('"', start)].replace("&amp;", "&")
    exported = client.get(url).content.decode().splitlines()
    assert len(exported) == 2
    assert '"{""weight"":7}"' in exported[1]
    nothing = client.get(URL, {"until": "2026-11-20"})
    assert "No event matches" in nothing.content.decode()


@pytest.mark.parametrize(
    "query", [{"since": "soon"}, {"action": "user.steal"}, {"colour": "red"}, {"project": "7"}]
)
def test_a_filter_that_is_none_is_told(browse: Browse, cast: Cast, query: dict[str, str]) -> None:
    answer = browse(cast.ada).get(URL, query)
    assert answer.status_code == 422
    assert answer.context["page"].lines == ()
    assert answer.context["form"].fault in unescape(answer.content.decode())


def test_a_project_of_others_can_not_be_asked_for(browse: Browse, cast: Cast) -> None:
    answer = browse(cast.ada).get(URL, {"project": str(cast.dialogue.id)})
    assert answer.status_code == 422


def test_who_may_read_none_is_told_who_does(browse: Browse, cast: Cast) -> None:
    html = browse(cast.ben).get(URL).content.decode()
    assert "Not yours to read" in html
    assert "project.weight</code>" not in html
