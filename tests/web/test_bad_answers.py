"""What may not be asked or answered is refused with its reason, by page and API alike, and
changes nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from controlplane.audit.models import AuditEvent
from controlplane.kernel import clock
from tenants.access import actor_for
from tenants.models import Delegation, Quota, QuotaRequest, RequestStep, Role, User
from tenants.services import members
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import Browse, Shop


@pytest.fixture
def asked(cast: Cast, shop: Shop) -> QuotaRequest:
    return factories.quota_request(cast.detection, shop.h100, cast.ben)


@contextmanager
def nothing_changed() -> Iterator[None]:
    def rows() -> list[Any]:  # Any: rows as dicts
        tables = (Quota, QuotaRequest, RequestStep, AuditEvent)
        return [list(table.objects.order_by("id").values()) for table in tables]

    before = rows()
    yield
    assert rows() == before


def refused(
    browse: Browse, who: User, asked: QuotaRequest, *, version: int = 1, amount: str = "16"
) -> dict[str, tuple[int, str]]:
    """What page and API say to who grants it."""
    client = browse(who)
    seen = {"version": version, "quota_version": 1}
    with nothing_changed():
        page = client.post(
            reverse("request-decide", args=[asked.id]),
            seen | {"decision": "grant", "amount": amount},
        )
        api = client.post(
            f"/api/v1/quota-requests/{asked.id}/grant",
            seen | {"granted_milli": int(float(amount) * 1000)},
            content_type="application/json",
        )
    return {
        "page": (page.status_code, page.content.decode()),
        "api": (api.status_code, api.content.decode()),
    }


def test_a_delegate_whose_time_is_over(browse: Browse, cast: Cast, asked: QuotaRequest) -> None:
    at = clock.now()
    made = Delegation.objects.create(
        approver=cast.pia, delegate=cast.vik, from_at=at - timedelta(days=2),
        until_at=at - timedelta(days=1),
    )  # fmt: skip
    for status, said in refused(browse, cast.vik, asked).values():
        assert status == 403
        assert f"You stood in for pia until {made.until_at:%F %R} UTC." in said


def test_a_request_that_was_edited(browse: Browse, cast: Cast, asked: QuotaRequest) -> None:
    wish = {"amount": "64", "reason": "All of it.", "version": 1}
    browse(cast.ben).post(reverse("request-amend", args=[asked.id]), wish)
    for status, said in refused(browse, cast.pia, asked).values():
        assert status == 409
        assert "The request is at version 2 by now, not 1." in said


def test_a_second_account_that_who_asks_made_an_approver(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    """And one that such an account made an owner, to have it make an approver."""
    second, third = factories.user("ada2"), factories.user("ada3")
    for giver, user, role in ((cast.ada, second, Role.APPROVER), (cast.ada, second, Role.OWNER),
                              (second, third, Role.APPROVER)):  # fmt: skip
        members.grant(
            actor=actor_for(user=giver), user=user, role=role, place=cast.vision, at=clock.now()
        )
    asked = factories.quota_request(cast.detection, shop.h100, cast.ada)
    for who in (second, third):
        for status, said in refused(browse, who, asked).values():
            assert status == 403
            assert "whose role does not come from ada" in said


def test_who_asks_and_was_given_the_role_since(
    browse: Browse, cast: Cast, asked: QuotaRequest
) -> None:
    factories.member(cast.ben, Role.APPROVER, at=cast.vision)
    for status, said in refused(browse, cast.ben, asked).values():
        assert status == 403
        assert "Somebody else has to decide your own request." in said


def test_fewer_than_none_are_granted(browse: Browse, cast: Cast, asked: QuotaRequest) -> None:
    told = refused(browse, cast.pia, asked, amount="-2")
    assert {name: status for name, (status, _) in told.items()} == {"page": 422, "api": 400}
    assert "greater than or equal to 0" in told["page"][1]
    assert "/granted_milli" in told["api"][1]


@pytest.mark.parametrize(
    ("amount", "milli", "said"),
    [
        ("-1", -1000, "greater than or equal to 0"),
        ("0.0005", 0.5, "3 decimal places"),
        ("1e400", "1e400", "number"),
        ("NaN", "NaN", "number"),
    ],
)
def test_amounts_that_are_none_are_not_asked_for(
    browse: Browse, cast: Cast, shop: Shop, amount: str, milli: float | str, said: str
) -> None:
    """A page takes units, of which the thousandth is the least; the API takes thousandths."""
    client, project = browse(cast.ben), str(cast.detection.id)
    wish = {"project": project, "flavor": shop.h100.name, "reason": "More."}
    with nothing_changed():
        page = client.post(reverse("request-new"), wish | {"amount": amount})
        api = client.post(
            "/api/v1/quota-requests",
            wish | {"nominal_milli": milli},
            content_type="application/json",
        )
    assert (page.status_code, api.status_code) == (422, 400)
    assert said in page.content.decode()
    assert [each["pointer"] for each in api.json()["errors"]] == ["/nominal_milli"]
