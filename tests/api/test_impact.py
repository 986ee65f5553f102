"""GET /quota-requests/{id}/impact: what a grant would do to others, and a decision that tells of
it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from clusters.models import Flavor
from controlplane.audit.models import AuditEvent
from controlplane.kernel import clock
from controlplane.kernel.throttle import Throttle
from scheduler.core.lifecycle import State
from scheduler.core.simulating.estimate import HORIZON_S
from scheduler.services import asking
from tenants.models import Quota, QuotaRequest, Role, User
from tenants.services import previews
from tests import factories
from tests.conftest import Cast
from tests.factories import AT

type Api = Callable[[User | None], APIClient]
type Json = dict[str, Any]  # Any: JSON values

pytestmark = pytest.mark.usefixtures("one_moment")


@pytest.fixture(autouse=True)
def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: AT)


@pytest.fixture
def h100(cast: Cast) -> Flavor:
    """Four. Detection may hold one and asks for four, Dialogue may hold and waits for all four,
    and was first."""
    flavor = factories.flavor()
    factories.node(factories.cluster(), gpus=4)
    factories.quota(cast.detection, flavor, 1000, borrowing_limit_milli=0)
    factories.quota(cast.dialogue, flavor, 4000)
    factories.workload(cast.dialogue, cast.cleo, [flavor], gpus=4, run_time_limit_s=3600)
    factories.workload(cast.detection, cast.ben, [flavor], gpus=4)
    return flavor


@pytest.fixture
def asked(cast: Cast, h100: Flavor) -> QuotaRequest:
    return factories.quota_request(cast.detection, h100, cast.ben, nominal_milli=4000)


def url(of: QuotaRequest, act: str = "impact") -> str:
    return f"/api/v1/quota-requests/{of.id}/{act}"


def told(api: Api, user: User, of: QuotaRequest, **query: int) -> Json:
    answer = api(user).get(url(of), query)
    assert answer.status_code == 200, answer.content
    found: Json = answer.json()
    return found


def test_each_project_that_waits_is_told_the_one_that_asks_first(
    api: Api, cast: Cast, asked: QuotaRequest
) -> None:
    found = told(api, cast.pia, asked)
    assert (found["version"], found["quota_version"], found["nominal_milli"]) == (1, 1, 4000)
    assert found["passes"] == 100
    own, other = found["effects"]
    assert (own["project"], own["tenant"], own["own"]) == ("Detection", "Vision Lab", True)
    # It can't have four now, and after the grant does once Dialogue's hour is over.
    assert own["before_s"] == HORIZON_S
    assert 3600 <= own["after_s"] < 4000
    assert own["low_s"] == own["high_s"] == own["after_s"] - HORIZON_S
    assert (other["project"], other["own"], other["waiting_count"]) == ("Dialogue", False, 1)
    assert (other["before_s"], other["after_s"], other["low_s"], other["high_s"]) == (0, 0, 0, 0)


def test_it_is_of_the_amount_that_would_be_granted(
    api: Api, cast: Cast, asked: QuotaRequest
) -> None:
    found = told(api, cast.pia, asked, nominal_milli=2000)
    assert found["nominal_milli"] == 2000
    own = found["effects"][0]
    assert own["before_s"] == own["after_s"] == HORIZON_S


def test_what_it_costs_and_what_is_left_to_borrow_are_of_that_amount(
    api: Api, cast: Cast, asked: QuotaRequest, h100: Flavor
) -> None:
    """Four devices, five are promised: one to Detection, four to Dialogue."""
    assert told(api, cast.pia, asked)["cost"] is None
    factories.rate(h100, "2.50")
    found = told(api, cast.pia, asked)
    # Three more for the 30 days that stand for good.
    high = found["cost"].pop("high")
    assert found["cost"] == {"low": high, "currency": "EUR", "days": 30}
    assert float(high) == 3 * 30 * 24 * 2.5
    assert (found["unpromised_before_milli"], found["unpromised_after_milli"]) == (-1000, -4000)
    less = told(api, cast.pia, asked, nominal_milli=2000)
    assert float(less["cost"]["high"]) == 30 * 24 * 2.5
    assert less["unpromised_after_milli"] == -2000


def test_borrowing_that_ends_is_told(api: Api, cast: Cast) -> None:
    """Detection holds two, one of them borrowed of Dialogue, and nothing waits."""
    h100, node = factories.flavor(), factories.node(factories.cluster(), gpus=4)
    factories.quota(cast.detection, h100, 1000, borrowing_limit_milli=None)
    factories.quota(cast.dialogue, h100, 3000)
    running = factories.workload(
        cast.detection, cast.ben, [h100], gpus=2, state=State.RUNNING, started_at=AT
    )
    placed = factories.place(running, node, h100, started_at=AT, amount_milli=2000)
    for ordinal in (0, 1):
        factories.span(placed, node.devices.get(ordinal=ordinal))
    asked = factories.quota_request(cast.detection, h100, cast.ben, nominal_milli=2000)
    (own,) = told(api, cast.pia, asked)["effects"]
    assert own["borrowed"] == [{"flavor": h100.name, "before_milli": 1000, "after_milli": 0}]


def test_projects_for_which_the_reader_does_not_decide_have_no_name(
    api: Api, cast: Cast, asked: QuotaRequest
) -> None:
    zoe = factories.user("zoe")
    factories.member(zoe, Role.APPROVER, at=cast.vision)
    factories.workload(
        factories.project(cast.speech, "Secrets"), cast.cleo, [Flavor.objects.get()], gpus=4
    )
    answer = api(zoe).get(url(asked))
    own, others = answer.json()["effects"]
    assert own["project"] == "Detection"
    assert (others["project"], others["tenant"], others["projects_count"]) == ("", "", 2)
    assert others["waiting_count"] == 2
    assert others["before_s"] == HORIZON_S  # of the one that has no quota
    assert "Dialogue" not in answer.content.decode()
    assert "Secrets" not in answer.content.decode()


def test_a_decision_tells_of_the_preview_that_was_seen(
    api: Api, cast: Cast, asked: QuotaRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = told(api, cast.pia, asked)
    monkeypatch.setattr(clock, "now", lambda: AT + timedelta(minutes=10))
    body = {"version": 1, "quota_version": 1, "preview": found["preview"]}
    assert api(cast.pia).post(url(asked, "grant"), body, format="json").status_code == 200
    event = AuditEvent.objects.get(action="request.granted")
    assert event.after["previewed_at"] == AT.isoformat()
    assert len(event.after["preview"]) == 64


def test_the_digest_is_of_all_that_was_shown(
    api: Api, cast: Cast, asked: QuotaRequest, h100: Flavor
) -> None:
    def digest() -> str:
        return previews.read(told(api, cast.pia, asked)["preview"]).digest

    first = digest()
    assert digest() == first
    factories.workload(cast.dialogue, cast.cleo, [h100])
    assert digest() != first


def test_a_preview_that_somebody_else_saw_decides_nothing(
    api: Api, cast: Cast, asked: QuotaRequest
) -> None:
    zoe = factories.user("zoe")
    factories.member(zoe, Role.APPROVER, at=cast.vision)
    body = {"version": 1, "quota_version": 1, "preview": told(api, cast.pia, asked)["preview"]}
    answer = api(zoe).post(url(asked, "grant"), body, format="json")
    assert (answer.status_code, answer.json()["code"]) == (409, "stale-preview")
    asked.refresh_from_db()
    assert asked.decision == ""
    body["preview"] = told(api, zoe, asked)["preview"]
    assert api(zoe).post(url(asked, "grant"), body, format="json").status_code == 200


@pytest.mark.parametrize("what", ["old", "request", "quota", "amount", "other"])
def test_a_preview_of_something_else_decides_nothing(
    api: Api,
    cast: Cast,
    asked: QuotaRequest,
    h100: Flavor,
    what: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    preview = told(api, cast.pia, asked)["preview"]
    body: Json = {"version": 1, "quota_version": 1, "preview": preview}
    match what:
        case "old":
            monkeypatch.setattr(clock, "now", lambda: AT + timedelta(minutes=10, seconds=1))
        case "request":
            QuotaRequest.objects.filter(id=asked.id).update(version=2)
            body["version"] = 2
        case "quota":
            Quota.objects.filter(project=cast.detection).update(version=2)
            body["quota_version"] = 2
        case "amount":
            body |= {"granted_milli": 3000, "note": "For now."}
        case "other":
            asked = factories.quota_request(cast.detection, h100, cast.ben, nominal_milli=4000)
    answer = api(cast.pia).post(url(asked, "grant"), body, format="json")
    assert (answer.status_code, answer.json()["code"]) == (409, "stale-preview")
    assert "ook at" in answer.json()["detail"]
    asked.refresh_from_db()
    assert asked.decision == ""
    assert Quota.objects.get(project=cast.detection).nominal_milli == 1000


def test_a_preview_that_berth_did_not_give_is_none(
    api: Api, cast: Cast, asked: QuotaRequest
) -> None:
    preview = told(api, cast.pia, asked)["preview"]
    for text in ("", "x", preview[:-1], f"a{preview}"):
        body = {"version": 1, "quota_version": 1, "preview": text}
        answer = api(cast.pia).post(url(asked, "grant"), body, format="json")
        assert answer.status_code == 400
        assert [error["pointer"] for error in answer.json()["errors"]] == ["/preview"]


def test_without_a_preview_the_audit_says_so(api: Api, cast: Cast, asked: QuotaRequest) -> None:
    body = {"version": 1, "quota_version": 1}
    assert api(cast.pia).post(url(asked, "grant"), body, format="json").status_code == 200
    event = AuditEvent.objects.get(action="request.granted")
    assert (event.after["preview"], event.after["previewed_at"]) == (None, None)


def test_what_can_not_be_previewed_is_refused(
    api: Api, cast: Cast, asked: QuotaRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = api(cast.pia)
    less = client.get(url(asked), {"nominal_milli": 1000})
    assert (less.status_code, less.json()["code"]) == (400, "adds-nothing")
    assert client.get(url(asked), {"nominal_milli": -1}).status_code == 400
    QuotaRequest.objects.filter(id=asked.id).update(
        decision="denied", decided_by=cast.pia, decided_at=AT, note="No."
    )
    assert client.get(url(asked)).status_code == 409
    monkeypatch.setattr(asking, "ASKED", Throttle(most=1, window=timedelta(minutes=1)))
    other = factories.quota_request(cast.detection, asked.flavor, cast.ben, nominal_milli=4000)
    assert client.get(url(other)).status_code == 200
    answer = client.get(url(other))
    assert (answer.status_code, "Retry-After" in answer.headers) == (429, True)
