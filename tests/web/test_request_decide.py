"""/requests/<id>/decision: grant or deny, by somebody else, once."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F
from django.urls import reverse

from clusters.models import Cluster
from controlplane.audit.models import AuditEvent
from scheduler.models import Confinement
from tenants.models import Decision, Grant, Quota, QuotaRequest
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse, Shop


@pytest.fixture
def quota_request(cast: Cast, shop: Shop) -> QuotaRequest:
    return factories.quota_request(cast.detection, shop.h100, cast.ben)


SEEN = {"version": 1, "quota_version": 1}


def url(quota_request: QuotaRequest) -> str:
    return reverse("request-decide", args=[quota_request.id])


def nominal(cast: Cast, shop: Shop) -> int:
    return Quota.objects.get(project=cast.detection, flavor=shop.h100).nominal_milli


def test_a_grant_changes_the_quota_at_once_and_is_audited(
    browse: Browse, cast: Cast, shop: Shop, quota_request: QuotaRequest
) -> None:
    answer = browse(cast.pia).post(
        url(quota_request), SEEN | {"decision": "grant", "amount": "16"}, follow=True
    )
    assert answer.redirect_chain == [(reverse("request-list"), 303)]
    quota_request.refresh_from_db()
    assert (quota_request.decision, quota_request.decided_by, quota_request.granted_milli) == (
        Decision.GRANTED, cast.pia, 16_000,
    )  # fmt: skip
    assert nominal(cast, shop) == 16_000
    assert AuditEvent.objects.filter(action="request.granted", target_id=quota_request.id).exists()
    assert AuditEvent.objects.filter(action="quota.grant").exists()
    page = answer.content.decode()
    assert "Detection may hold 16 h100-80gb from now on." in page
    # Dialogue has 4 of the 16 that there are.
    assert "20 h100-80gb are guaranteed in the whole fleet, which has 16: 4 too many." in page


def test_less_may_be_given_with_a_note(
    browse: Browse, cast: Cast, shop: Shop, quota_request: QuotaRequest
) -> None:
    client = browse(cast.pia)
    bare = client.post(url(quota_request), SEEN | {"decision": "grant", "amount": "12"})
    assert bare.status_code == 422
    assert "Say why it is less than asked." in bare.content.decode()
    assert nominal(cast, shop) == 8000
    client.post(
        url(quota_request), SEEN | {"decision": "grant", "amount": "12", "note": "For now."}
    )
    quota_request.refresh_from_db()
    assert (quota_request.granted_milli, quota_request.note) == (12_000, "For now.")
    assert nominal(cast, shop) == 12_000


def test_a_denial_needs_a_note_and_changes_no_quota(
    browse: Browse, cast: Cast, shop: Shop, quota_request: QuotaRequest
) -> None:
    client = browse(cast.pia)
    bare = client.post(url(quota_request), SEEN | {"decision": "deny"})
    assert bare.status_code == 422
    assert "Say why it is denied." in bare.content.decode()
    client.post(url(quota_request), SEEN | {"decision": "deny", "note": "No room until March."})
    quota_request.refresh_from_db()
    assert (quota_request.decision, quota_request.note) == (
        Decision.DENIED,
        "No room until March.",
    )
    assert nominal(cast, shop) == 8000


def test_the_requester_is_refused_in_words(
    browse: Browse, cast: Cast, shop: Shop, quota_request: QuotaRequest
) -> None:
    answer = browse(cast.ben).post(url(quota_request), SEEN | {"decision": "grant"})
    assert answer.status_code == 403
    assert "does not permit: decide-request" in answer.content.decode()
    assert nominal(cast, shop) == 8000


def test_an_approver_can_not_answer_their_own(browse: Browse, cast: Cast, shop: Shop) -> None:
    own = factories.quota_request(cast.detection, shop.h100, cast.pia)
    answer = browse(cast.pia).post(url(own), SEEN | {"decision": "grant"})
    assert answer.status_code == 403
    assert "Somebody else has to decide your own request." in answer.content.decode()
    own.refresh_from_db()
    assert own.decision == ""
    assert nominal(cast, shop) == 8000


@pytest.mark.parametrize(("who", "status"), [("ada", 403), ("oz", 403), ("vik", 403),
                                             ("cleo", 404)])  # fmt: skip
def test_roles(
    browse: Browse, cast: Cast, shop: Shop, quota_request: QuotaRequest, who: str, status: int
) -> None:
    answer = browse(getattr(cast, who)).post(url(quota_request), SEEN | {"decision": "grant"})
    assert answer.status_code == status
    quota_request.refresh_from_db()
    assert quota_request.decision == ""


def test_twice_is_told_and_changes_nothing(
    browse: Browse, cast: Cast, shop: Shop, quota_request: QuotaRequest
) -> None:
    client = browse(cast.pia)
    client.post(url(quota_request), SEEN | {"decision": "grant"})
    again = client.post(url(quota_request), SEEN | {"decision": "deny", "note": "After all, no."})
    assert again.status_code == 409
    assert "has been decided already" in again.content.decode()
    quota_request.refresh_from_db()
    assert quota_request.decision == Decision.GRANTED


@pytest.mark.parametrize(
    "sent",
    [
        {},
        SEEN | {"decision": "maybe"},
        {"decision": "grant"},
        SEEN | {"decision": "grant", "until_at": "soon"},
        SEEN | {"decision": "grant", "until_at": "2001-01-01T12:00"},
        SEEN | {"decision": "grant", "amount": "-2"},
        SEEN | {"decision": "grant", "amount": "lots"},
        SEEN | {"decision": "grant", "amount": "1e40"},
        SEEN | {"decision": "deny", "note": "x" * 2001},
        SEEN | {"decision": "deny", "note": "a\u202eb"},
        SEEN | {"decision": "deny", "note": "a\x00b"},
    ],
    ids=str,
)
def test_bad_input_is_told_and_nothing_is_stored(
    browse: Browse, cast: Cast, shop: Shop, quota_request: QuotaRequest, sent: dict[str, object]
) -> None:
    answer = browse(cast.pia).post(url(quota_request), sent)
    assert answer.status_code == 422
    quota_request.refresh_from_db()
    assert quota_request.decision == ""
    assert nominal(cast, shop) == 8000


def test_htmx_is_told_where_to_go(
    browse: Browse, cast: Cast, shop: Shop, quota_request: QuotaRequest
) -> None:
    answer = browse(cast.pia).post(url(quota_request), SEEN | {"decision": "grant"}, headers=HTMX)
    assert answer.headers["HX-Redirect"] == reverse("request-list")


def test_it_rejects_get(browse: Browse, cast: Cast, quota_request: QuotaRequest) -> None:
    assert browse(cast.pia).get(url(quota_request)).status_code == 405


def test_it_is_given_for_a_time(
    browse: Browse, cast: Cast, shop: Shop, quota_request: QuotaRequest
) -> None:
    """In the zone of its reader, and taken away again."""
    client = browse(cast.pia)
    until = (datetime.now(UTC) + timedelta(days=30)).replace(second=0, microsecond=0)
    sent = SEEN | {"decision": "grant", "until_at": f"{until:%FT%R}", "take_back": "on"}
    assert "Say why it is less" in client.post(url(quota_request), sent).content.decode()
    answer = client.post(url(quota_request), sent | {"note": "A month."}, follow=True)
    assert f"h100-80gb from now on, until {until:%F %R}." in answer.content.decode()
    grant = quota_request.grant
    assert (grant.until_at, grant.take_back) == (until, True)
    assert nominal(cast, shop) == 16_000
    ended = client.post(reverse("grant-end", args=[quota_request.id]), follow=True)
    assert "grant of h100-80gb has ended. What runs beyond" in ended.content.decode()
    assert nominal(cast, shop) == 8000


def test_what_was_changed_since_it_was_seen_is_not_granted(
    browse: Browse, cast: Cast, shop: Shop, quota_request: QuotaRequest
) -> None:
    asking = browse(cast.ben)
    page = asking.get(reverse("request-amend", args=[quota_request.id])).content.decode()
    assert "Change what you ask for" in page
    wish = {"amount": "64", "reason": "All of it.", "version": 1}
    asking.post(reverse("request-amend", args=[quota_request.id]), wish)
    answer = browse(cast.pia).post(url(quota_request), SEEN | {"decision": "grant"})
    assert answer.status_code == 409
    assert "The request is at version 2 by now, not 1." in answer.content.decode()
    assert nominal(cast, shop) == 8000
    late = asking.post(reverse("request-amend", args=[quota_request.id]), wish)
    assert late.status_code == 409


def test_who_asked_withdraws_it(
    browse: Browse, cast: Cast, shop: Shop, quota_request: QuotaRequest
) -> None:
    where = reverse("request-withdraw", args=[quota_request.id])
    assert browse(cast.ada).post(where).status_code == 403
    told = browse(cast.ben).post(where, follow=True).content.decode()
    assert "The request for h100-80gb is withdrawn." in told
    again = browse(cast.ben).post(where, follow=True).content.decode()
    assert "has been decided already: it is withdrawn." in again
    quota_request.refresh_from_db()
    assert quota_request.decision == Decision.WITHDRAWN


def test_it_says_where_a_grant_is_not_applied_yet(
    browse: Browse, cast: Cast, shop: Shop, quota_request: QuotaRequest
) -> None:
    Confinement.objects.create(
        cluster=Cluster.objects.get(), project=cast.detection, digest="x", error="it is away"
    )
    client = browse(cast.pia)
    sent = SEEN | {"decision": "grant"}
    told = client.post(url(quota_request), sent, follow=True).content.decode()
    name = Cluster.objects.get().name
    assert f"approved, not yet applied: {name} (it is away)" in told
    of_it = Grant.objects.get()

    def shown() -> str:
        return client.get(reverse("request-list")).content.decode()

    Confinement.objects.update(error="", quotas={str(quota_request.flavor_id): 0})
    assert f"approved, not yet applied: {name}<" in shown()
    found = {str(quota_request.flavor_id): of_it.quota_version}
    Confinement.objects.update(quotas=found)
    assert "not yet applied" not in shown()
    Quota.objects.update(version=F("version") + 1)  # somebody sets another limit: that is not it
    assert "not yet applied" not in shown()
    Grant.objects.update(ended_at=factories.AT, quota_version=9)
    assert f"ended, not yet applied: {name}<" in shown()
