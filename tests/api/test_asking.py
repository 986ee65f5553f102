"""Asking for quota of several flavors at once: all or none, and each is decided for itself."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from clusters.models import Flavor
from controlplane.audit.models import AuditEvent
from controlplane.kernel import clock
from controlplane.kernel.errors import Invalid
from tenants.access import actor_for
from tenants.models import Notice, Quota, QuotaRequest, User
from tenants.services import asking, asking_bounds, requests
from tests import factories
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]

URL = "/api/v1/quota-requests"
WHOLE = {"flavor": "h100-80gb", "nominal_milli": 8000}
SLICE = {"flavor": "h100-1g.10gb", "nominal_milli": 4000}


@pytest.fixture(autouse=True)
def flavors(cast: Cast) -> tuple[Flavor, Flavor]:
    return factories.flavor(), factories.mig_flavor()


# Any: JSON values, and a test client's answer
def ask(client: APIClient, cast: Cast, lines: Any, *, key: str = "", **fields: Any) -> Any:
    body = {"project": str(cast.detection.id), "reason": "For one paper.", **fields}
    if lines is not None:
        body["lines"] = lines
    headers = {"Idempotency-Key": key} if key else {}
    return client.post(URL, body, format="json", headers=headers)


def faults(answer: Any) -> list[tuple[str, str]]:  # Any: a test client's answer
    assert answer.status_code == 400
    assert not QuotaRequest.objects.exists()
    assert not AuditEvent.objects.exists()
    assert not Notice.objects.exists()
    return [(each["pointer"], each["code"]) for each in answer.json()["errors"]]


def test_a_request_for_each_and_the_answer_names_the_others(api: Api, cast: Cast) -> None:
    answer = ask(api(cast.ben), cast, [WHOLE, SLICE])
    assert answer.status_code == 201
    whole, cut = QuotaRequest.objects.order_by("id")
    assert whole.together == cut.together is not None
    assert {whole.reason, cut.reason} == {"For one paper."}
    told = answer.json()
    assert (told["id"], told["flavor"], told["nominal_milli"]) == (
        str(whole.id), "h100-80gb", 8000,
    )  # fmt: skip
    assert told["beside"] == [{"id": str(cut.id), **SLICE, "decision": ""}]
    listed = api(cast.pia).get(URL).json()["items"]
    assert [each["beside"][0]["flavor"] for each in listed] == ["h100-80gb", "h100-1g.10gb"]
    opened = AuditEvent.objects.filter(action="request.open")
    assert set(opened.values_list("target_id", flat=True)) == {whole.id, cut.id}


def test_each_is_decided_for_itself(api: Api, cast: Cast) -> None:
    ask(api(cast.ben), cast, [WHOLE, SLICE])
    whole, cut = QuotaRequest.objects.order_by("id")
    pia = actor_for(user=cast.pia)
    requests.grant(actor=pia, request=whole, at=factories.AT)
    assert [quota.flavor.name for quota in Quota.objects.select_related("flavor")] == ["h100-80gb"]
    requests.deny(actor=pia, request=cut, note="No.", at=factories.AT)
    [answered] = api(cast.ben).get(f"{URL}/{whole.id}").json()["beside"]
    assert answered["decision"] == "denied"


def test_one_of_another_project_is_never_beside(api: Api, cast: Cast) -> None:
    ask(api(cast.ben), cast, [WHOLE, SLICE])
    whole, cut = QuotaRequest.objects.order_by("id")
    QuotaRequest.objects.filter(id=cut.id).update(project=cast.dialogue)
    assert api(cast.ben).get(f"{URL}/{whole.id}").json()["beside"] == []


def test_one_alone_is_as_it_was(api: Api, cast: Cast) -> None:
    assert (
        ask(api(cast.ben), cast, None, flavor="h100-80gb", nominal_milli=8000).json()["beside"]
        == []
    )
    assert ask(api(cast.ben), cast, [SLICE]).json()["beside"] == []
    assert set(QuotaRequest.objects.values_list("together", flat=True)) == {None}


@pytest.mark.parametrize(
    ("lines", "fields", "expected"),
    [
        (None, {}, [("/flavor", "required"), ("/nominal_milli", "required")]),
        (None, {"flavor": "h100-80gb"}, [("/nominal_milli", "required")]),
        ([WHOLE], {"flavor": "h100-80gb"}, [("/flavor", "ambiguous")]),
        ([], {}, [("/lines", "empty")]),
        ([WHOLE] * 21, {}, [("/lines", "max-length")]),
        ([WHOLE, {**SLICE, "flavor": "b900"}], {}, [("/lines/1/flavor", "unknown-flavor")]),
        ([WHOLE, SLICE, WHOLE], {}, [("/lines/2/flavor", "repeated")]),
        ([WHOLE, {"flavor": "cpu"}], {}, [("/lines/1/nominal_milli", "required")]),
        ([WHOLE, {**SLICE, "until_at": None}], {}, [("/lines/1/until_at", "unknown-field")]),
        ([WHOLE, {**SLICE, "nominal_milli": 0}], {}, [("/lines/1/nominal_milli", "out-of-range")]),
        ([WHOLE, SLICE], {"until_at": "2001-01-01T00:00:00Z"}, [("/until_at", "out-of-range")]),
    ],
)  # fmt: skip
def test_a_line_at_fault_is_named_and_nothing_is_asked(
    api: Api, cast: Cast, lines: Any, fields: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert faults(ask(api(cast.ben), cast, lines, **fields)) == expected


def test_the_bound_on_open_requests_counts_each(
    api: Api, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_bounds, "MOST_OPEN", 1)
    answer = ask(api(cast.ben), cast, [WHOLE, SLICE])
    assert faults(answer) == []
    assert answer.json()["detail"] == "Detection has 0 undecided requests, of at most 1."


def test_how_often_one_asks_counts_each_and_it_is_told_when_all_of_them_can_be(
    api: Api, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_bounds, "MOST", 3)
    assert ask(api(cast.ben), cast, [WHOLE]).status_code == 201
    assert ask(api(cast.ben), cast, [SLICE]).status_code == 201
    QuotaRequest.objects.filter(flavor__name=SLICE["flavor"]).update(
        requested_at=clock.now() - timedelta(minutes=30)
    )
    answer = ask(api(cast.ben), cast, [WHOLE, SLICE])
    assert answer.status_code == 429
    assert 29 * 60 < int(answer["Retry-After"]) <= 30 * 60  # only the older one has to leave
    assert QuotaRequest.objects.count() == 2


def test_the_same_key_asks_once(api: Api, cast: Cast) -> None:
    first = ask(api(cast.ben), cast, [WHOLE, SLICE], key="one")
    again = ask(api(cast.ben), cast, [WHOLE, SLICE], key="one")
    assert first.json() == again.json()
    assert QuotaRequest.objects.count() == 2


def test_who_may_not_ask_for_one_may_not_for_several(api: Api, cast: Cast) -> None:
    for who, status in ((cast.vik, 403), (cast.pia, 403), (cast.cleo, 404)):
        assert ask(api(who), cast, [WHOLE, SLICE]).status_code == status
    assert not QuotaRequest.objects.exists()


def test_no_line_is_no_request(cast: Cast) -> None:
    with pytest.raises(Invalid, match="1 to 20 flavors"):
        asking.open_all(
            actor=actor_for(user=cast.ben), project=cast.detection, lines=[], reason="x",
            at=factories.AT,
        )  # fmt: skip
