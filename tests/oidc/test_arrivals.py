"""Joiners, movers and leavers, by real providers: what their groups say is what they may do."""

import pytest
from allauth.socialaccount.models import SocialAccount, SocialToken
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from controlplane.audit.models import AuditEvent
from controlplane.kernel import clock
from tenants.access import actor_for
from tenants.models import Member, Role, Token, User
from tenants.services import group_roles, members
from tests import factories
from tests.arriving import give, is_in, roles, told
from tests.conftest import Cast, Unchanged
from tests.oidc.running import RunningProvider, signs_in
from tests.web.test_second_factor import set_up

QUEUE = reverse("queue")


def test_a_joiner_gets_an_account_with_the_roles_of_their_groups(
    acme: RunningProvider, cast: Cast, fay: User
) -> None:
    give(fay, "vision", Role.MEMBER, cast.detection)
    give(fay, "vision", Role.VIEWER, cast.vision)
    give(fay, "leads", Role.APPROVER, cast.vision)
    acme.knows(
        "dot", name="Dot Matrix", preferred_username="dot", email="dot@acme.example",
        email_verified=True, groups=["vision", "football"],
    )  # fmt: skip
    client = Client()
    answer = signs_in(client, "acme", "dot", then=QUEUE)
    assert (answer.status_code, answer.headers["Location"]) == (302, QUEUE)
    assert is_in(client)
    user = User.objects.get(username="dot")
    assert roles("dot") == {("member", cast.detection), ("viewer", cast.vision)}
    assert (user.get_full_name(), user.email) == ("Dot Matrix", "dot@acme.example")
    assert not user.has_usable_password()
    [made] = told("user.create")
    assert made == {"by": "provider:acme", "username": "dot", "provider": "acme"}
    assert [row["role"] for row in told("member.grant")] == ["member", "viewer"]


def test_who_comes_again_is_the_same_and_nothing_is_told_twice(
    acme: RunningProvider, cast: Cast, fay: User
) -> None:
    give(fay, "vision", Role.MEMBER, cast.detection)
    acme.knows("dot", preferred_username="dot", groups=["vision"])
    signs_in(Client(), "acme", "dot")
    before = AuditEvent.objects.count()
    acme.knows("dot", preferred_username="another", groups=["vision"])
    signs_in(Client(), "acme", "dot")
    assert AuditEvent.objects.count() == before
    assert User.objects.filter(socialaccount__uid="dot").count() == 1


def test_a_mover_loses_old_roles_and_gets_new_ones(
    acme: RunningProvider, cast: Cast, fay: User
) -> None:
    give(fay, "vision", Role.MEMBER, cast.detection)
    give(fay, "speech", Role.MEMBER, cast.dialogue)
    give(fay, "all", Role.VIEWER, cast.vision)
    acme.knows("dot", preferred_username="dot", groups=["vision", "all"])
    client = Client()
    signs_in(client, "acme", "dot")
    acme.knows("dot", preferred_username="dot", groups=["speech", "all"])
    signs_in(Client(), "acme", "dot")
    assert roles("dot") == {("member", cast.dialogue), ("viewer", cast.vision)}
    assert [row["role"] for row in told("member.revoke")] == ["member"]
    detection = reverse("project-people", args=[cast.detection.id])
    assert client.get(detection).status_code == 200  # as a viewer still
    give(fay, "elsewhere", Role.VIEWER, cast.speech)
    acme.knows("dot", preferred_username="dot", groups=["elsewhere"])
    signs_in(Client(), "acme", "dot")
    assert client.get(detection).status_code == 404  # in the session that was open all along


def test_a_leaver_loses_roles_sessions_tokens_and_the_account(
    acme: RunningProvider, cast: Cast, fay: User
) -> None:
    give(fay, "vision", Role.MEMBER, cast.detection)
    acme.knows("dot", preferred_username="dot", groups=["vision"])
    laptop = Client()
    signs_in(laptop, "acme", "dot")
    user = User.objects.get(username="dot")
    by_token = APIClient(headers=factories.bearer(factories.token(user)))
    assert (is_in(laptop), by_token.get("/api/v1/me").status_code) == (True, 200)
    acme.knows("dot", preferred_username="dot", groups=["football"])
    answer = signs_in(Client(), "acme", "dot")
    page = answer.content.decode()
    assert answer.status_code == 403
    assert "No group that your provider names has a role here." in page
    assert "<code>football</code>" in page
    assert roles("dot") == set()
    assert (is_in(laptop), by_token.get("/api/v1/me").status_code) == (False, 401)
    user.refresh_from_db()
    assert (user.is_active, user.left_at is not None) == (False, True)
    assert Token.objects.get(user=user).revoked_at is not None
    kinds = ("member.revoke", "session.end", "token.revoke", "user.leave")
    assert [len(told(kind)) for kind in kinds] == [1, 1, 1, 1]


def test_a_leaver_who_returns_has_the_account_again_and_no_old_key(
    acme: RunningProvider, cast: Cast, fay: User
) -> None:
    give(fay, "vision", Role.MEMBER, cast.detection)
    acme.knows("dot", preferred_username="dot", groups=["vision"])
    laptop = Client()
    signs_in(laptop, "acme", "dot")
    user = User.objects.get(username="dot")
    old = factories.token(user)
    acme.knows("dot", preferred_username="dot", groups=[])
    signs_in(Client(), "acme", "dot")
    acme.knows("dot", preferred_username="dot", groups=["vision"])
    back = Client()
    assert signs_in(back, "acme", "dot").status_code == 302
    assert (is_in(back), is_in(laptop)) == (True, False)
    assert APIClient(headers=factories.bearer(old)).get("/api/v1/me").status_code == 401
    assert roles("dot") == {("member", cast.detection)}
    assert told("user.return") == [{"by": "provider:acme", "provider": "acme"}]


def test_roles_that_somebody_gave_stay_and_with_them_the_account(
    acme: RunningProvider, cast: Cast, fay: User
) -> None:
    give(fay, "vision", Role.MEMBER, cast.detection)
    acme.knows("dot", preferred_username="dot", groups=["vision"])
    laptop = Client()
    signs_in(laptop, "acme", "dot")
    user = User.objects.get(username="dot")
    by = actor_for(user=fay)
    for role in (Role.MEMBER, Role.VIEWER):
        members.grant(actor=by, user=user, role=role, place=cast.detection, at=clock.now())
    assert Member.objects.filter(user=user, role="member").count() == 2  # by both ways
    acme.knows("dot", preferred_username="dot")
    again = Client()
    assert signs_in(again, "acme", "dot").status_code == 302
    assert roles("dot") == {("member", cast.detection), ("viewer", cast.detection)}
    assert (is_in(again), is_in(laptop)) == (True, False)


def test_who_is_in_no_group_with_a_role_gets_no_account(
    acme: RunningProvider, cast: Cast, nothing_stored: Unchanged
) -> None:
    acme.knows("eve", preferred_username="eve", groups=["football"])
    with nothing_stored():
        assert signs_in(Client(), "acme", "eve").status_code == 403
    assert not User.objects.filter(username="eve").exists()


def test_an_account_that_somebody_closed_stays_closed(
    acme: RunningProvider, cast: Cast, fay: User
) -> None:
    give(fay, "vision", Role.MEMBER, cast.detection)
    acme.knows("dot", preferred_username="dot", groups=["vision"])
    signs_in(Client(), "acme", "dot")
    User.objects.filter(username="dot").update(is_active=False)
    client = Client()
    answer = signs_in(client, "acme", "dot")
    assert answer.status_code == 403
    assert "This account is closed." in answer.content.decode()
    assert not is_in(client)


def test_a_group_of_one_provider_says_nothing_at_another(
    acme: RunningProvider, zen: RunningProvider, cast: Cast, fay: User
) -> None:
    give(fay, "vision", Role.MEMBER, cast.detection, provider="acme")
    give(fay, "vision", Role.VIEWER, cast.speech, provider="zen")
    for provider in (acme, zen):
        provider.knows("dot", preferred_username="dot", groups=["vision"])
        assert signs_in(Client(), provider.name, "dot").status_code == 302
    # One subject of two providers is two people.
    assert roles("dot") == {("member", cast.detection)}
    assert roles("dot-2") == {("viewer", cast.speech)}


def test_nobody_becomes_somebody_by_an_address_or_a_name(
    acme: RunningProvider, cast: Cast, fay: User
) -> None:
    """ada is an account with a password and that address, which the provider says is verified."""
    give(fay, "all", Role.VIEWER, cast.speech)
    for verified in (True, False):
        login = f"ada-{verified}"
        acme.knows(
            login, preferred_username="ada", email="ada@example.org", email_verified=verified,
            groups=["all"],
        )  # fmt: skip
        client = Client()
        signs_in(client, "acme", login)
        came = User.objects.get(socialaccount__uid=login)
        assert came != cast.ada
        assert client.session["_auth_user_id"] == str(came.id)
        assert came.email == ("ada@example.org" if verified else "")
    assert not SocialAccount.objects.filter(user=cast.ada).exists()
    assert set(User.objects.filter(username__startswith="ada").values_list("username")) == {
        ("ada",), ("ada-2",), ("ada-3",),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"preferred_username": "bеn", "email": "dot@acme.example"}, "dot"),
        ({"preferred_username": "Ben"}, "Ben-2"),
        ({"preferred_username": "a b", "email": "no address"}, "acme"),
        ({}, "acme"),
        (
            {"preferred_username": ["x"], "email": "x\u202ey@acme.example", "name": "x\u0000"},
            "acme",
        ),
    ],
)
def test_a_joiner_is_called_what_nobody_can_mistake(
    acme: RunningProvider, cast: Cast, fay: User, claims: dict[str, object], name: str
) -> None:
    give(fay, "all", Role.VIEWER, cast.speech)
    acme.knows("someone", groups=["all"], **claims)
    assert signs_in(Client(), "acme", "someone").status_code == 302
    assert User.objects.get(socialaccount__uid="someone").username == name


def test_who_says_what_a_group_is_has_nothing_of_it(
    acme: RunningProvider, cast: Cast, fay: User
) -> None:
    """ada's own account comes by the provider, and she owns Vision Lab by hand."""
    give(fay, "all", Role.VIEWER, cast.vision)
    acme.knows("dot", preferred_username="dot", groups=["all", "bosses"])
    signs_in(Client(), "acme", "dot")
    dot = User.objects.get(username="dot")
    factories.member(dot, Role.OWNER, at=cast.vision)
    give(dot, "bosses", Role.APPROVER, cast.vision)
    acme.knows("eva", preferred_username="eva", groups=["bosses"])
    for login in ("dot", "eva"):
        signs_in(Client(), "acme", login)
    assert roles("dot") == {("viewer", cast.vision), ("owner", cast.vision)}
    assert roles("eva") == {("approver", cast.vision)}


def test_to_take_a_role_from_a_group_takes_it_from_its_people_at_once(
    acme: RunningProvider, cast: Cast, fay: User
) -> None:
    give(fay, "vision", Role.MEMBER, cast.detection)
    acme.knows("dot", preferred_username="dot", groups=["vision"])
    client = Client()
    signs_in(client, "acme", "dot")
    [rule] = {member.group_role for member in Member.objects.filter(user__username="dot")}
    assert rule is not None
    assert group_roles.remove(actor=actor_for(user=fay), group_role=rule, at=clock.now()) == 1
    page = client.get(reverse("project-people", args=[cast.detection.id]))
    assert (roles("dot"), page.status_code) == (set(), 404)


def test_no_token_of_a_provider_and_no_claim_is_kept(
    acme: RunningProvider, cast: Cast, fay: User
) -> None:
    give(fay, "vision", Role.MEMBER, cast.detection)
    acme.knows("dot", preferred_username="dot", groups=["vision"], name="Canary Bird")
    signs_in(Client(), "acme", "dot")
    user = User.objects.get(username="dot")
    [account] = SocialAccount.objects.filter(user=user)
    assert account.extra_data == {}
    assert not SocialToken.objects.exists()
    kept = repr([session.get_decoded() for session in Session.objects.all()])
    assert "token" not in kept.lower()


def test_a_second_factor_is_asked_for_behind_a_provider_too(
    acme: RunningProvider, cast: Cast, fay: User
) -> None:
    give(fay, "vision", Role.MEMBER, cast.detection)
    acme.knows("dot", preferred_username="dot", groups=["vision"])
    first = Client()
    signs_in(first, "acme", "dot")
    _, codes = set_up(first)
    client = Client()
    answer = signs_in(client, "acme", "dot", then=QUEUE)
    assert (answer.headers["Location"], is_in(client)) == (reverse("mfa_authenticate"), False)
    kept = repr([session.get_decoded() for session in Session.objects.all()])
    assert "access_token" not in kept
    entered = client.post(reverse("mfa_authenticate"), {"code": codes[0]})
    assert (entered.headers["Location"], is_in(client)) == (QUEUE, True)
