"""/tokens: one's own keys; their text is shown once."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from controlplane.audit.models import AuditEvent
from controlplane.kernel import clock
from tenants.models import Scope, Token
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse

URL = reverse("token-list")


def form(**changes: Any) -> dict[str, Any]:  # Any: form values
    return {"name": "ci", "scopes": ["read", "submit"], "project": "", "days": "7"} | changes


def revoke_url(token: Token) -> str:
    return reverse("token-revoke", args=[token.id])


def everything_stored() -> str:
    """Every row of every table, as text."""
    with connection.cursor() as cursor:
        rows = []
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT * FROM "{table}"')
            rows += cursor.fetchall()
    sessions = [session.get_decoded() for session in Session.objects.all()]
    return repr(rows) + repr(sessions)


def test_a_token_is_made_shown_once_and_works(browse: Browse, cast: Cast) -> None:
    client = browse(cast.ben)
    answer = client.post(URL, form())
    assert answer.status_code == 201
    assert "no-store" in answer.headers["Cache-Control"]
    name, text = answer.context["made"]
    assert name == "ci"
    assert answer.content.decode().count(text) == 1
    token = Token.objects.get()
    assert (token.user, token.scopes, token.project) == (cast.ben, ["read", "submit"], None)
    assert token.expires_at - token.created_at == timedelta(days=7)
    assert AuditEvent.objects.filter(action="token.issue", target_id=token.id).exists()
    secret = text.rpartition("_")[2]
    assert secret not in client.get(URL).content.decode()
    assert secret not in everything_stored()
    me = APIClient(headers={"Authorization": f"Bearer {text}"}).get("/api/v1/me")
    assert me.json()["username"] == "ben"


def test_it_says_how_to_use_it_and_what_there_is(browse: Browse, cast: Cast) -> None:
    factories.token(cast.ben, Scope.READ, last_used_at=clock.now() - timedelta(hours=2))
    bound = factories.token(cast.ben, Scope.SUBMIT, project=cast.detection)
    gone = factories.token(cast.ben, revoked_at=clock.now())
    theirs = factories.token(cast.cleo)
    answer = browse(cast.ben).post(URL, form())
    page = answer.content.decode()
    assert "berth login --server http://testserver" in page
    assert "2 h ago" in page
    assert ">never<" in page
    assert '<td data-label="Where">Detection</td>' in page
    assert f"{gone.name} (revoked " in page
    assert [token.name for token in answer.context["ended"]] == [gone.name]
    assert theirs.name not in page
    assert bound in answer.context["live"]


@pytest.mark.parametrize(
    ("who", "scopes"),
    [
        ("ben", ["read", "submit", "gate", "quota"]),
        ("vik", ["read", "gate"]),
        ("pia", ["read", "gate"]),
        ("oz", ["read", "submit", "gate", "operate"]),
    ],
)
def test_only_scopes_that_one_has_a_use_for_are_offered(
    browse: Browse, cast: Cast, who: str, scopes: list[str]
) -> None:
    client = browse(getattr(cast, who))
    shown = client.get(URL).context["form"].fields["scopes"].choices
    assert [value for value, _ in shown] == scopes
    for scope in set(Scope.values) - set(scopes):
        answer = client.post(URL, form(scopes=["read", scope]))
        assert answer.status_code == 422
        assert "scopes" in answer.context["form"].errors
    assert not Token.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "a\u202eb"}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["admin"]}, "scopes"),
        ({"days": "91"}, "days"),
        ({"days": ""}, "days"),
        ({"project": "7"}, "project"),
        ({"owner": "ada"}, "__all__"),
    ],
    ids=str,
)
def test_bad_input_is_told_and_nothing_is_stored(
    browse: Browse, cast: Cast, changes: dict[str, Any], field: str
) -> None:
    answer = browse(cast.ben).post(URL, form(**changes))
    assert answer.status_code == 422
    assert field in answer.context["form"].errors
    assert not Token.objects.exists()
    assert not AuditEvent.objects.exists()


def test_more_tokens_than_one_may_have_are_refused(browse: Browse, cast: Cast) -> None:
    for _ in range(50):
        factories.token(cast.ben)
    answer = browse(cast.ben).post(URL, form())
    assert answer.status_code == 422
    assert "You have 50 live tokens; revoke one first." in answer.content.decode()


def test_a_project_narrows_it_and_a_foreign_one_is_404(browse: Browse, cast: Cast) -> None:
    client = browse(cast.ben)
    assert client.post(URL, form(project=str(cast.dialogue.id))).status_code == 404
    assert not Token.objects.exists()
    assert client.post(URL, form(project=str(cast.detection.id))).status_code == 201
    assert Token.objects.get().project == cast.detection


def test_htmx_gets_the_block_with_the_text_or_the_faults(browse: Browse, cast: Cast) -> None:
    client = browse(cast.ben)
    made = client.post(URL, form(), headers=HTMX)
    assert (made.status_code, made.content.lstrip()[:17]) == (201, b'<div id="tokens">')
    assert b'id="secret"' in made.content
    refused = client.post(URL, form(name=""), headers=HTMX)
    assert (refused.status_code, refused.content.lstrip()[:17]) == (422, b'<div id="tokens">')


def test_a_revoked_token_is_dead_at_once(browse: Browse, cast: Cast) -> None:
    token = factories.token(cast.ben)
    answer = browse(cast.ben).post(revoke_url(token), follow=True)
    assert answer.redirect_chain == [(URL, 303)]
    assert f"{token.name} is revoked" in answer.content.decode()
    assert APIClient(headers=factories.bearer(token)).get("/api/v1/me").status_code == 401
    assert AuditEvent.objects.filter(action="token.revoke", target_id=token.id).count() == 1


def test_somebody_elses_token_is_404_and_lives_on(browse: Browse, cast: Cast) -> None:
    token = factories.token(cast.ada)
    assert browse(cast.ben).post(revoke_url(token)).status_code == 404
    token.refresh_from_db()
    assert token.revoked_at is None


def test_revoking_takes_no_field(browse: Browse, cast: Cast) -> None:
    token = factories.token(cast.ben)
    assert browse(cast.ben).post(revoke_url(token), {"at": "now"}).status_code == 400
    token.refresh_from_db()
    assert token.revoked_at is None


def test_a_token_opens_no_page(cast: Cast) -> None:
    client = APIClient(headers=factories.bearer(factories.token(cast.ben, *Scope.values)))
    assert client.post(URL, form()).status_code == 302
    assert Token.objects.count() == 1


def test_a_post_without_the_token_of_the_form_is_refused(cast: Cast) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.ben)
    assert client.post(URL, form()).status_code == 403
    assert not Token.objects.exists()


def test_the_menu_of_every_page_leads_there(browse: Browse, cast: Cast) -> None:
    assert f'href="{URL}"' in browse(cast.ben).get(reverse("home")).content.decode()
