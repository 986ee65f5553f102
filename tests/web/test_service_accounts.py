"""Service accounts as their managers see them, and what gets in by one."""

import pytest
from django.contrib.auth import authenticate
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from controlplane.audit.models import AuditEvent
from controlplane.kernel import clock
from controlplane.kernel.errors import NotAllowed
from scheduler.models import Workload
from tenants.access import actor_for
from tenants.models import QuotaRequest, Role, Scope, Token, User
from tenants.services import requests, service_accounts
from tests import factories
from tests.conftest import Cast
from tests.constraints.catalog import walls
from tests.web.conftest import HTMX, Browse


@pytest.fixture
def account(cast: Cast) -> User:
    return service_accounts.make(
        actor=actor_for(user=cast.ada),
        place=cast.detection,
        name="ci",
        role=Role.MEMBER,
        at=clock.now(),
    )


def list_url(cast: Cast) -> str:
    return reverse("project-service-accounts", args=[cast.detection.id])


def url(account: User) -> str:
    return reverse("service-account", args=[account.id])


def token_form(**changes: str) -> dict[str, str]:
    return {"name": "runner 1", "scopes": "submit", "project": "", "days": "7"} | changes


def test_one_is_made_gets_a_token_and_its_work_is_its_own(browse: Browse, cast: Cast) -> None:
    flavor = factories.flavor()
    factories.node(factories.cluster(), gpus=8)
    factories.quota(cast.detection, flavor)
    ada = browse(cast.ada)
    answer = ada.post(list_url(cast), {"name": "ci", "role": "member"})
    account = User.objects.get(username__startswith="service:")
    assert (answer.status_code, answer.headers["Location"]) == (303, url(account))
    answer = ada.post(url(account), token_form())
    name, text = answer.context["made"]
    assert (answer.status_code, name) == (201, "runner 1")
    assert answer.content.decode().count(text) == 1
    assert text.rpartition("_")[2] not in ada.get(url(account)).content.decode()
    token = Token.objects.get()
    assert (token.user, token.made_by) == (account, cast.ada)
    program = APIClient(headers={"Authorization": f"Bearer {text}"})
    assert program.get("/api/v1/me").json()["username"] == "service:vision-lab.detection:ci"
    body = factories.submission(cast.detection)
    assert program.post("/api/v1/workloads", body, format="json").status_code == 201
    assert Workload.objects.get().submitted_by == account
    told = AuditEvent.objects.get(action="workload.submit")
    assert (told.actor, told.actor_name) == (f"token:{token.id}", account.username)
    page = ada.get(url(account)).content.decode()
    assert "by ada" in page
    assert ">never<" not in page


def test_the_list_says_what_there_is(browse: Browse, cast: Cast, account: User) -> None:
    factories.token(account)
    factories.token(account, revoked_at=clock.now())
    [shown] = browse(cast.ada).get(list_url(cast)).context["accounts"]
    assert (shown, shown.live_tokens) == (account, 1)
    people = browse(cast.ada).get(reverse("project-people", args=[cast.detection.id]))
    assert account.username in people.content.decode()
    assert f'href="{list_url(cast)}"' in people.content.decode()
    people = browse(cast.ben).get(reverse("project-people", args=[cast.detection.id]))
    assert f'href="{list_url(cast)}"' not in people.content.decode()


@pytest.mark.parametrize(
    ("form", "status", "told"),
    [
        ({"name": "C I", "role": "member"}, 422, "a-z, 0-9 and -"),
        ({"name": "c-i", "role": "member"}, 409, "reads like it"),
        ({"name": "new", "role": "approver"}, 422, "Select a valid choice"),
        ({"name": "new", "role": "member", "password": "x"}, 422, "password"),
    ],
    ids=str,
)
def test_what_can_not_be_is_told_and_nothing_is_made(
    browse: Browse, cast: Cast, account: User, form: dict[str, str], status: int, told: str
) -> None:
    before = AuditEvent.objects.count()
    for headers in ({}, HTMX):
        answer = browse(cast.ada).post(list_url(cast), form, headers=headers)
        assert answer.status_code == status
        assert told in answer.content.decode()
    assert AuditEvent.objects.count() == before
    assert User.objects.filter(username__startswith="service:").get() == account


def test_only_scopes_and_projects_of_its_own_are_offered(
    browse: Browse, cast: Cast, account: User
) -> None:
    fields = browse(cast.ada).get(url(account)).context["form"].fields
    assert [value for value, _ in fields["scopes"].choices] == ["read", "submit"]
    assert [value for value, _ in fields["project"].choices] == ["", str(cast.detection.id)]
    for changes in ({"scopes": "quota"}, {"project": str(cast.segmentation.id)}, {"days": "91"}):
        assert browse(cast.ada).post(url(account), token_form(**changes)).status_code == 422
    foreign = token_form(project=str(cast.dialogue.id))
    assert browse(cast.ada).post(url(account), foreign).status_code == 404
    assert not Token.objects.exists()


def test_a_token_of_it_is_revoked_at_once_and_closing_ends_all(
    browse: Browse, cast: Cast, account: User
) -> None:
    tokens = [factories.token(account) for _ in range(3)]
    programs = [APIClient(headers=factories.bearer(token)) for token in tokens]
    ada = browse(cast.ada)
    answer = ada.post(reverse("token-revoke", args=[tokens[0].id]))
    assert (answer.status_code, answer.headers["Location"]) == (303, url(account))
    assert [each.get("/api/v1/me").status_code for each in programs] == [401, 200, 200]
    answer = ada.post(reverse("service-account-close", args=[account.id]), follow=True)
    assert answer.redirect_chain == [(list_url(cast), 303)]
    assert "with 2 live tokens" in answer.content.decode()
    assert [each.get("/api/v1/me").status_code for each in programs] == [401, 401, 401]
    assert 'action="' + url(account) not in ada.get(url(account)).content.decode()


def test_no_door_lets_it_in(cast: Cast, account: User) -> None:
    for password in ("", "!", account.password, account.username):
        assert authenticate(username=account.username, password=password) is None
        answer = Client().post(
            reverse("login"), {"username": account.username, "password": password}
        )
        assert answer.status_code == 422
    with_session = Client()
    with_session.force_login(account)  # as if there were a door that nobody knows of
    assert with_session.get("/api/v1/me").status_code == 401
    for name in ("home", "token-list"):
        assert with_session.get(reverse(name)).headers["Location"].startswith(reverse("login"))
    account.set_password("secret")
    with pytest.raises(IntegrityError, match="user_who_serves_never_signs_in"):
        account.save()


def test_the_back_office_has_no_service_accounts(account: User) -> None:
    boss = factories.user("boss", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(boss)
    assert account.username not in client.get("/admin/tenants/user/").content.decode()
    assert client.get(f"/admin/tenants/user/{account.id}/password/").status_code != 200


def test_by_the_api_the_same_and_no_token_may(cast: Cast, account: User) -> None:
    api = APIClient()
    api.force_login(cast.ada)
    path = "/api/v1/service-accounts"
    made = api.post(
        path, {"name": "nightly", "role": "viewer", "tenant": str(cast.vision.id)}, format="json"
    )
    assert (made.status_code, made.json()["username"]) == (201, "service:vision-lab:nightly")
    listed = api.get(f"{path}?project={cast.detection.id}").json()["items"]
    assert [each["id"] for each in listed] == [str(account.id)]
    assert api.get(path).status_code == 400
    tokens = f"{path}/{account.id}/tokens"
    issued = api.post(tokens, {"name": "t", "scopes": ["submit"]}, format="json")
    assert issued.status_code == 201
    program = APIClient(headers={"Authorization": f"Bearer {issued.json()['token']}"})
    for refused in (
        program.post(tokens, {"name": "t", "scopes": ["submit"]}, format="json"),
        program.post("/api/v1/tokens", {"name": "t", "scopes": ["read"]}, format="json"),
        program.post(
            "/api/v1/members",
            {"user": "cleo", "role": "viewer", "project": str(cast.detection.id)},
            format="json",
        ),
    ):
        assert refused.status_code == 403, refused.json()
    [told] = api.get(tokens).json()["items"]
    assert "token" not in told
    assert api.delete(f"/api/v1/tokens/{told['id']}").status_code == 204
    assert program.get("/api/v1/me").status_code == 401
    assert api.delete(f"{path}/{account.id}").status_code == 204
    assert api.get(f"{path}/{account.id}").json()["is_active"] is False
    again = api.post(tokens, {"name": "t", "scopes": ["submit"]}, format="json")
    assert (again.status_code, "closed" in again.content.decode()) == (400, True)


def test_it_decides_no_request_though_somebody_made_it_an_approver(
    cast: Cast, account: User
) -> None:
    asked = factories.quota_request(cast.detection, factories.flavor(), cast.ben)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    walls()["member_serves_its_place"].drop()
    factories.member(account, Role.APPROVER, at=cast.detection)
    token = factories.token(account, *Scope)
    program = APIClient(headers=factories.bearer(token))
    answer = program.post(
        f"/api/v1/quota-requests/{asked.id}/deny", {"note": "No.", "version": 1}, format="json"
    )
    assert answer.status_code == 403
    at = clock.now()
    with pytest.raises(NotAllowed):
        requests.deny(actor=actor_for(user=account, token=token), request=asked, note="No.", at=at)
    with pytest.raises(IntegrityError, match="is no person"), transaction.atomic():
        requests.deny(actor=actor_for(user=account), request=asked, note="No.", at=at)
    assert not QuotaRequest.objects.get().decision
