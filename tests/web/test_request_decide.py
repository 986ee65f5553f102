"""/requests/<id>/decision: grant or deny, by somebody else, once."""

import pytest
from django.urls import reverse

from controlplane.audit.models import AuditEvent
from tenants.models import Decision, Quota, QuotaRequest
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop


@pytest.fixture
def wish(cast: Cast, shop: Shop) -> QuotaRequest:
    return factories.quota_request(cast.detection, shop.h100, cast.ben)


def url(wish: QuotaRequest) -> str:
    return reverse("request-decide", args=[wish.id])


def nominal(cast: Cast, shop: Shop) -> int:
    return Quota.objects.get(project=cast.detection, flavor=shop.h100).nominal_milli


def test_a_grant_changes_the_quota_at_once_and_is_audited(
    browse: Browse, cast: Cast, shop: Shop, wish: QuotaRequest
) -> None:
    answer = browse(cast.pia).post(url(wish), {"decision": "grant", "amount": "16"}, follow=True)
    assert answer.redirect_chain == [(reverse("request-list"), 303)]
    wish.refresh_from_db()
    assert (wish.decision, wish.decided_by, wish.granted_milli) == (
        Decision.GRANTED, cast.pia, 16_000,
    )  # fmt: skip
    assert nominal(cast, shop) == 16_000
    assert AuditEvent.objects.filter(action="request.granted", target_id=wish.id).exists()
    assert AuditEvent.objects.filter(action="quota.grant").exists()
    assert "Detection may hold 16 h100-80gb from now on." in answer.content.decode()


def test_less_may_be_given_with_a_note(
    browse: Browse, cast: Cast, shop: Shop, wish: QuotaRequest
) -> None:
    client = browse(cast.pia)
    bare = client.post(url(wish), {"decision": "grant", "amount": "12"})
    assert bare.status_code == 422
    assert "Say why it is less than asked." in bare.content.decode()
    assert nominal(cast, shop) == 8000
    client.post(url(wish), {"decision": "grant", "amount": "12", "note": "For now."})
    wish.refresh_from_db()
    assert (wish.granted_milli, wish.note) == (12_000, "For now.")
    assert nominal(cast, shop) == 12_000


def test_a_denial_needs_a_note_and_changes_no_quota(
    browse: Browse, cast: Cast, shop: Shop, wish: QuotaRequest
) -> None:
    client = browse(cast.pia)
    bare = client.post(url(wish), {"decision": "deny"})
    assert bare.status_code == 422
    assert "Say why it is denied." in bare.content.decode()
    client.post(url(wish), {"decision": "deny", "note": "No room until March."})
    wish.refresh_from_db()
    assert (wish.decision, wish.note) == (Decision.DENIED, "No room until March.")
    assert nominal(cast, shop) == 8000


def test_the_requester_is_refused_in_words(
    browse: Browse, cast: Cast, shop: Shop, wish: QuotaRequest
) -> None:
    answer = browse(cast.ben).post(url(wish), {"decision": "grant"})
    assert answer.status_code == 403
    assert "does not permit: decide-request" in answer.content.decode()
    assert nominal(cast, shop) == 8000


def test_an_approver_can_not_answer_their_own(browse: Browse, cast: Cast, shop: Shop) -> None:
    own = factories.quota_request(cast.detection, shop.h100, cast.pia)
    answer = browse(cast.pia).post(url(own), {"decision": "grant"})
    assert answer.status_code == 403
    assert "Somebody else has to decide your own request." in answer.content.decode()
    own.refresh_from_db()
    assert own.decision == ""
    assert nominal(cast, shop) == 8000


@pytest.mark.parametrize(("who", "status"), [("ada", 403), ("oz", 403), ("vik", 403),
                                             ("cleo", 404)])  # fmt: skip
def test_roles(
    browse: Browse, cast: Cast, shop: Shop, wish: QuotaRequest, who: str, status: int
) -> None:
    answer = browse(getattr(cast, who)).post(url(wish), {"decision": "grant"})
    assert answer.status_code == status
    wish.refresh_from_db()
    assert wish.decision == ""


def test_twice_is_told_and_changes_nothing(
    browse: Browse, cast: Cast, shop: Shop, wish: QuotaRequest
) -> None:
    client = browse(cast.pia)
    client.post(url(wish), {"decision": "grant"})
    again = client.post(url(wish), {"decision": "deny", "note": "After all, no."})
    assert again.status_code == 409
    assert "has been decided already" in again.content.decode()
    wish.refresh_from_db()
    assert wish.decision == Decision.GRANTED


@pytest.mark.parametrize(
    "sent",
    [
        {}, {"decision": "maybe"}, {"decision": "grant", "amount": "-2"},
        {"decision": "grant", "amount": "lots"}, {"decision": "grant", "amount": "1e40"},
        {"decision": "deny", "note": "x" * 2001}, {"decision": "deny", "note": "a\u202eb"},
        {"decision": "deny", "note": "a\x00b"},
    ],
    ids=str,
)  # fmt: skip
def test_bad_input_is_told_and_nothing_is_stored(
    browse: Browse, cast: Cast, shop: Shop, wish: QuotaRequest, sent: dict[str, str]
) -> None:
    answer = browse(cast.pia).post(url(wish), sent)
    assert answer.status_code == 422
    wish.refresh_from_db()
    assert wish.decision == ""
    assert nominal(cast, shop) == 8000


def test_htmx_is_told_where_to_go(
    browse: Browse, cast: Cast, shop: Shop, wish: QuotaRequest
) -> None:
    answer = browse(cast.pia).post(url(wish), {"decision": "grant"}, headers=HTMX)
    assert answer.headers["HX-Redirect"] == reverse("request-list")


def test_it_rejects_get(browse: Browse, cast: Cast, wish: QuotaRequest) -> None:
    assert browse(cast.pia).get(url(wish)).status_code == 405
