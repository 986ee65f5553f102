"""Gates on the pages: of work and of arrays, of a project, declared, and what waits for one."""

from datetime import timedelta

import pytest
from django.urls import reverse

from controlplane.kernel import clock
from scheduler.models import Gate, Workload, WorkloadArray
from tenants.models import StandingGate
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import Browse, Shop
from tests.web.test_workload_submit import form as filled


def page_of(work: Workload | WorkloadArray) -> str:
    name = "workload-detail" if isinstance(work, Workload) else "array-detail"
    return reverse(name, args=[work.id])


def action(gate: Gate) -> str:
    if gate.array_id is None:
        return reverse("workload-gate-decide", args=[gate.workload_id, gate.name])
    return reverse("array-gate-decide", args=[gate.array_id, gate.name])


@pytest.fixture
def work(cast: Cast, shop: Shop) -> Workload:
    return factories.workload(cast.detection, cast.ben, [shop.h100])


@pytest.mark.parametrize("of_array", [False, True])
def test_its_owner_opens_it_there_and_others_only_see_it(
    browse: Browse, cast: Cast, shop: Shop, work: Workload, *, of_array: bool
) -> None:
    of = factories.array(cast.detection, cast.ben, [shop.h100]) if of_array else work
    until = clock.now() + timedelta(days=2)
    gate = factories.gate(of, cast.vik, deadline_at=until)
    seen = browse(cast.ben).get(page_of(of)).content.decode()
    for told in ("Who lets it in", "Not open yet", "<dd>vik</dd>", "else it is cancelled"):
        assert told in seen
    assert action(gate) not in seen
    vik = browse(cast.vik)
    assert action(gate) in vik.get(page_of(of)).content.decode()
    done = vik.post(action(gate), {"state": "open", "note": "Copied."})
    assert (done.status_code, done["Location"]) == (303, page_of(of))
    seen = vik.get(page_of(of)).content.decode()
    assert "The gate data of " in seen
    assert "Copied." in seen
    assert action(gate) not in seen


def test_who_refuses_says_why_and_the_work_is_cancelled(
    browse: Browse, cast: Cast, work: Workload
) -> None:
    gate = factories.gate(work, cast.vik)
    vik = browse(cast.vik)
    answer = vik.post(action(gate), {"state": "refused", "note": ""})
    assert (answer.status_code, b"takes a note that says why" in answer.content) == (422, True)
    assert vik.post(action(gate), {"state": "ajar"}).status_code == 422
    assert vik.post(action(gate), {"state": "open", "x": "1"}).status_code == 422
    gate.refresh_from_db()
    assert gate.state == "waiting"
    assert vik.post(action(gate), {"state": "refused", "note": "No licence."}).status_code == 303
    seen = vik.get(page_of(work)).content.decode()
    assert "cancelled: its gate data was refused by vik: No licence." in seen
    late = vik.post(action(gate), {"state": "open"})
    assert (late.status_code, b"is refused since" in late.content) == (409, True)


@pytest.mark.parametrize("of_array", [False, True])
def test_no_gate_of_what_has_ended_is_there_to_decide(
    browse: Browse, cast: Cast, shop: Shop, work: Workload, *, of_array: bool
) -> None:
    of = factories.array(cast.detection, cast.ben, [shop.h100]) if of_array else work
    first, second = factories.gate(of, cast.vik), factories.gate(of, cast.vik, name="paid")
    vik = browse(cast.vik)
    assert action(second) in vik.get(page_of(of)).content.decode()
    vik.post(action(first), {"state": "refused", "note": "No licence."})
    assert action(second) not in vik.get(page_of(of)).content.decode()


def test_nobody_gets_the_button_that_approves_of_their_own_work(
    browse: Browse, cast: Cast, work: Workload
) -> None:
    gate = factories.gate(work, cast.ben, kind="approval")
    seen = browse(cast.ben).get(page_of(work)).content.decode()
    assert "Somebody else has to approve of your own work." in seen
    assert "Open it" not in seen
    answer = browse(cast.ben).post(action(gate), {"state": "open"})
    assert (answer.status_code, b"somebody else has to approve" in answer.content) == (403, True)


def test_what_waits_for_the_reader_stands_with_the_requests(
    browse: Browse, cast: Cast, work: Workload
) -> None:
    factories.gate(work, cast.vik)
    seen = browse(cast.vik).get(reverse("request-list")).content.decode()
    assert "Work that you let in" in seen
    assert f'href="{page_of(work)}#gates"' in seen
    others = browse(cast.ben).get(reverse("request-list")).content.decode()
    assert "Work that you let in" not in others


def test_a_projects_page_shows_its_gates_and_lets_operators_change_them(
    browse: Browse, cast: Cast
) -> None:
    url = reverse("project-detail", args=[cast.detection.id])
    add = reverse("project-gate-add", args=[cast.detection.id])
    assert "Nobody has to let its work in." in browse(cast.ben).get(url).content.decode()
    oz = browse(cast.oz)
    asked = {"name": "paid", "kind": "budget", "owner": "ada", "hours": "48"}
    for wrong, told in (
        ({"owner": "nobody"}, "nobody called"),
        ({"name": "A b"}, "Enter a valid value"),
        ({"hours": "0"}, "greater than or equal to 1"),
    ):
        answer = oz.post(add, asked | wrong)
        assert (answer.status_code, told in answer.content.decode()) == (422, True)
    assert oz.post(add, asked).status_code == 303
    assert oz.post(add, asked).status_code == 409
    assert StandingGate.objects.get().within_s == 48 * 3600
    seen = browse(cast.ben).get(url).content.decode()
    assert "for budget" in seen
    assert add not in seen
    remove = reverse("project-gate-remove", args=[cast.detection.id, "paid"])
    assert remove in oz.get(url).content.decode()
    assert oz.post(remove).status_code == 303
    assert oz.post(remove).status_code == 404
    assert not StandingGate.objects.exists()


def test_the_submit_page_declares_one(browse: Browse, cast: Cast, shop: Shop) -> None:
    url = reverse("workload-submit")
    asked = {"gate": "data-ready", "gate_kind": "data", "gate_owner": "vik", "gate_hours": "2"}
    form = filled(cast)
    answer = browse(cast.ben).post(url, form | asked | {"gate_owner": "nobody"})
    assert (answer.status_code, b"nobody called" in answer.content) == (422, True)
    answer = browse(cast.ben).post(url, form | asked | {"gate": ""})
    assert (answer.status_code, b"like a Kubernetes name" in answer.content) == (422, True)
    assert browse(cast.ben).post(url, form | asked).status_code == 303
    gate = Gate.objects.get()
    assert (gate.name, gate.kind, gate.owner) == ("data-ready", "data", cast.vik)
    assert gate.deadline_at == gate.created_at + timedelta(hours=2)
