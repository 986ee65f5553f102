"""Bearer tokens: shown once, stored as a hash, narrow, and dead as soon as they should be."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from rest_framework.test import APIClient

from controlplane.audit.models import AuditEvent
from tenants.models import Role, Token, User
from tests import factories
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]

URL = "/api/v1/tokens"


def by(header: str) -> APIClient:
    return APIClient(headers={"Authorization": header})


def test_a_token_works_and_only_its_hash_is_kept(api: Api, cast: Cast) -> None:
    answer = api(cast.ben).post(
        URL, {"name": "ci", "scopes": ["submit", "read"], "expires_in_s": 3600}, format="json"
    )
    assert answer.status_code == 201
    made = answer.json()
    prefix, ident, secret = made["token"].split("_")
    assert (prefix, ident) == ("berth", made["id"].replace("-", ""))
    assert len(secret) == 64
    row = Token.objects.get()
    assert (row.scopes, row.user) == (["read", "submit"], cast.ben)
    assert row.expires_at - row.created_at == timedelta(hours=1)
    stored = str(Token.objects.values().get()) + str(list(AuditEvent.objects.values()))
    assert secret not in stored
    me = by(f"Bearer {made['token']}").get("/api/v1/me").json()
    assert (me["username"], me["token"]["id"]) == ("ben", made["id"])
    assert "token" not in api(cast.ben).get(URL).json()["items"][0]


def test_it_lives_90_days_at_most_and_by_default(api: Api, cast: Cast) -> None:
    client = api(cast.ben)
    too_long = {"name": "ci", "scopes": ["read"], "expires_in_s": 90 * 24 * 3600 + 1}
    assert client.post(URL, too_long, format="json").status_code == 400
    client.post(URL, {"name": "ci", "scopes": ["read"]}, format="json")
    row = Token.objects.get()
    assert row.expires_at - row.created_at == timedelta(days=90)


@pytest.mark.parametrize(
    "body",
    [
        {"name": "ci", "scopes": []},
        {"name": "ci", "scopes": ["admin"]},
        {"name": "ci", "scopes": "read"},
        {"name": "", "scopes": ["read"]},
        {"name": "a\u202eb", "scopes": ["read"]},
        {"name": "ci", "scopes": ["read"], "user": "ada"},
        {"name": "ci", "scopes": ["read"], "expires_in_s": 0},
        {"name": "ci", "scopes": ["read"], "project": "x"},
        {"name": "ci"},
    ],
)
def test_it_refuses_a_bad_token(api: Api, cast: Cast, body: dict[str, object]) -> None:
    assert api(cast.ben).post(URL, body, format="json").status_code == 400
    assert not Token.objects.exists()


def test_a_foreign_project_can_not_narrow_it(api: Api, cast: Cast) -> None:
    body = {"name": "ci", "scopes": ["read"], "project": str(cast.detection.id)}
    assert api(cast.cleo).post(URL, body, format="json").status_code == 404


@pytest.mark.parametrize(
    "fields",
    [
        {"revoked_at": datetime.now(UTC)},
        {"expires_at": datetime.now(UTC) - timedelta(seconds=1)},
    ],
)
def test_a_dead_token_is_nobody(cast: Cast, fields: dict[str, datetime]) -> None:
    token = factories.token(cast.ben, **fields)
    answer = APIClient(headers=factories.bearer(token)).get("/api/v1/me")
    assert answer.status_code == 401
    assert answer.json()["code"] == "bad-token"
    assert answer["WWW-Authenticate"] == 'Bearer realm="berth"'


def test_a_token_dies_with_its_user(cast: Cast) -> None:
    token = factories.token(cast.ben)
    User.objects.filter(id=cast.ben.id).update(is_active=False)
    assert APIClient(headers=factories.bearer(token)).get("/api/v1/me").status_code == 401


def test_every_wrong_token_gets_the_same_answer(cast: Cast) -> None:
    good = factories.bearer(factories.token(cast.ben))["Authorization"]
    wrong = [
        good[:-1] + ("0" if good[-1] != "0" else "1"),
        good.replace("berth_", "other_"),
        good.rpartition("_")[0],
        good.rpartition("_")[0] + "_",
        "Bearer",
        "Bearer berth_x_y",
        "Bearer berth_" + "0" * 32 + "_" + "0" * 64,
        "Bearer berth_" + "\u0661" * 32 + "_x",
        "Bearer \xff",
    ]
    bodies = {by(header).get("/api/v1/me").content for header in wrong}
    assert len(bodies) == 1
    assert b"bad-token" in bodies.pop()


def test_other_schemes_and_places_are_ignored(cast: Cast) -> None:
    text = factories.bearer(factories.token(cast.ben))["Authorization"].partition(" ")[2]
    assert by(f"Token {text}").get("/api/v1/me").json()["code"] == "not-signed-in"
    for url in (f"/api/v1/me?token={text}", f"/api/v1/me?access_token={text}"):
        assert APIClient().get(url).status_code == 401


def test_last_use_is_noted_at_most_once_a_minute(cast: Cast) -> None:
    token = factories.token(cast.ben)
    client = APIClient(headers=factories.bearer(token))
    client.get("/api/v1/me")
    first = Token.objects.get().last_used_at
    assert first is not None
    client.get("/api/v1/me")
    assert Token.objects.get().last_used_at == first
    Token.objects.update(last_used_at=first - timedelta(minutes=2))
    client.get("/api/v1/me")
    again = Token.objects.get().last_used_at
    assert again is not None
    assert again > first - timedelta(minutes=1)


def test_revoking_ends_it_at_once_and_is_written_down_once(api: Api, cast: Cast) -> None:
    token = factories.token(cast.ben)
    for _ in range(2):
        assert api(cast.ben).delete(f"{URL}/{token.id}").status_code == 204
    assert APIClient(headers=factories.bearer(token)).get("/api/v1/me").status_code == 401
    assert AuditEvent.objects.filter(action="token.revoke").count() == 1


def test_a_session_needs_its_csrf_token(cast: Cast) -> None:
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(cast.ben)
    answer = client.post(URL, {"name": "ci", "scopes": ["read"]}, format="json")
    assert answer.status_code == 403
    assert answer["Content-Type"] == "application/problem+json"


def test_a_user_has_at_most_50_live_tokens(api: Api, cast: Cast) -> None:
    for _ in range(49):
        factories.token(cast.ben)
    factories.token(cast.ben, revoked_at=datetime.now(UTC))
    body = {"name": "ci", "scopes": ["read"]}
    assert api(cast.ben).post(URL, body, format="json").status_code == 201
    assert api(cast.ben).post(URL, body, format="json").status_code == 400


def test_a_token_of_a_project_learns_of_nothing_elsewhere(cast: Cast) -> None:
    other = factories.project(cast.vision, "Other")
    factories.member(cast.ben, Role.VIEWER, at=other)
    factories.token(cast.ben)
    narrow = factories.token(cast.ben, project=other)
    api = APIClient(headers=factories.bearer(narrow))
    me = api.get("/api/v1/me").json()
    assert {row["project"] for row in me["memberships"]} <= {str(other.id), None}
    assert [row["role"] for row in me["memberships"]] == ["viewer"]
    assert [row["id"] for row in api.get("/api/v1/tokens").json()["items"]] == [str(narrow.id)]
