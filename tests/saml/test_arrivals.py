"""Joiners, movers and leavers by a real SAML provider. What becomes of them is as for every other
provider (tests/oidc): here is what SAML has of its own."""

from dataclasses import replace

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from lxml import etree
from pytest_django import Settings

from tenants.models import Member, Role, User
from tests.arriving import HERE, asked, give, is_in, roles, told
from tests.conftest import Cast, Unchanged
from tests.saml.keys import Signer
from tests.saml.running import RunningProvider as Campus
from tests.saml.running import answered, posts, signs_in
from tests.web.test_second_factor import set_up

QUEUE = reverse("queue")


def test_a_joiner_gets_an_account_with_the_roles_of_their_groups(
    campus: Campus, cast: Cast, fay: User
) -> None:
    give(fay, "vision", Role.MEMBER, cast.detection, provider="campus")
    give(fay, "leads", Role.APPROVER, cast.vision, provider="campus")
    campus.knows(
        "dot", name_id="7f3a", uid="dot", displayName="Dot Ada May", mail="dot@campus.example",
        memberOf=["vision", "leads", "football"],
    )  # fmt: skip
    client = Client()
    assert signs_in(client, "campus", "dot", then=QUEUE).headers["Location"] == QUEUE
    user = User.objects.get(username="dot")
    assert client.session["_auth_user_id"] == str(user.id)
    assert (user.get_full_name(), user.email) == ("Dot Ada May", "dot@campus.example")
    assert roles("dot") == {("member", cast.detection), ("approver", cast.vision)}
    account = SocialAccount.objects.get(user=user)
    assert (account.provider, account.uid, account.extra_data) == ("campus", "7f3a", {})
    joined = {"by": "provider:campus", "provider": "campus", "username": "dot"}
    assert told("user.create") == [joined]


def test_a_mover_has_other_roles_and_a_leaver_none(campus: Campus, cast: Cast, fay: User) -> None:
    give(fay, "vision", Role.MEMBER, cast.detection, provider="campus")
    give(fay, "speech", Role.VIEWER, cast.speech, provider="campus")
    campus.knows("dot", uid="dot", memberOf=["vision"])
    laptop = Client()
    signs_in(laptop, "campus", "dot")
    campus.knows("dot", uid="renamed", memberOf=["speech"])
    signs_in(Client(), "campus", "dot")
    assert roles("dot") == {("viewer", cast.speech)}
    campus.knows("dot", uid="dot")
    answer = signs_in(Client(), "campus", "dot")
    assert answer.status_code == 403
    assert "No group that your provider names has a role here." in answer.content.decode()
    assert (roles("dot"), is_in(laptop)) == (set(), False)
    assert not User.objects.get(username="dot").is_active


def test_nobody_becomes_somebody_by_an_address_or_a_name(
    campus: Campus, cast: Cast, fay: User
) -> None:
    give(fay, "all", Role.VIEWER, cast.speech, provider="campus")
    campus.knows("ada", uid="ada", mail="ada@example.org", memberOf=["all"])
    client = Client()
    signs_in(client, "campus", "ada")
    came = User.objects.get(socialaccount__provider="campus")
    assert (came != cast.ada, came.username) == (True, "ada-2")
    assert client.session["_auth_user_id"] == str(came.id)


def test_who_they_are_may_be_told_by_an_attribute(
    campus: Campus, cast: Cast, fay: User, settings: Settings
) -> None:
    of = replace(campus.told, subject_attribute="employeeNumber")
    settings.BERTH_PROVIDERS = {"campus": of}
    give(fay, "all", Role.VIEWER, cast.speech, provider="campus")
    campus.knows("dot", name_id="old@campus.example", employeeNumber="7", memberOf=["all"])
    signs_in(Client(), "campus", "dot")
    campus.knows("dot", name_id="new@campus.example", employeeNumber="7", memberOf=["all"])
    signs_in(Client(), "campus", "dot")
    assert SocialAccount.objects.get(provider="campus").uid == "7"
    for none in ([], ["7", "8"]):
        campus.knows("dot", employeeNumber=none, memberOf=["all"])
        assert signs_in(Client(), "campus", "dot").status_code == 403


def test_a_provider_that_tells_no_groups_gives_accounts_without_roles(
    campus: Campus, cast: Cast, settings: Settings
) -> None:
    of = replace(campus.told, groups_attribute="")
    settings.BERTH_PROVIDERS = {"campus": of}
    campus.knows("dot", uid="dot", memberOf=["all"])
    client = Client()
    assert signs_in(client, "campus", "dot").status_code == 302
    assert not Member.objects.filter(user__username="dot").exists()


def test_who_is_not_signed_in_there_is_told_so(
    campus: Campus, cast: Cast, nothing_stored: Unchanged
) -> None:
    client = Client()
    sent = answered(asked(client, "campus"), "nobody")
    with nothing_stored():
        answer = posts(client, "campus", sent)
    assert (answer.status_code, is_in(client)) == (403, False)
    assert "Campus signed nobody in." in answer.content.decode()


def test_a_message_may_be_signed_besides(campus: Campus, cast: Cast, fay: User) -> None:
    give(fay, "all", Role.VIEWER, cast.speech, provider="campus")
    campus.settings["signs_response"] = True
    campus.knows("dot", uid="dot", memberOf=["all"])
    assert signs_in(Client(), "campus", "dot").status_code == 302


def test_what_is_encrypted_can_not_be_read(
    campus: Campus, cast: Cast, nothing_stored: Unchanged, caplog: pytest.LogCaptureFixture
) -> None:
    """Berth's metadata name no key to encrypt for."""
    key = Signer()
    campus.settings["encrypts_for"] = {"certificate": key.certificate, "key": key.public_pem}
    campus.knows("dot", uid="dot", memberOf=["all"])
    client = Client()
    sent = answered(asked(client, "campus"), "dot")
    with nothing_stored():
        assert posts(client, "campus", sent).status_code == 403
    assert "No private key available to decrypt the assertion" in caplog.text


def test_two_tabs_come_in_each_by_its_own_answer(campus: Campus, cast: Cast, fay: User) -> None:
    give(fay, "all", Role.VIEWER, cast.speech, provider="campus")
    campus.knows("dot", uid="dot", memberOf=["all"])
    client = Client()
    first, second = (asked(client, "campus", then) for then in (QUEUE, reverse("spend")))
    for url, there in ((second, reverse("spend")), (first, QUEUE)):
        assert posts(client, "campus", answered(url, "dot")).headers["Location"] == there


def test_a_second_factor_is_asked_for_and_nothing_of_the_answer_kept(
    campus: Campus, cast: Cast, fay: User
) -> None:
    give(fay, "vision", Role.MEMBER, cast.detection, provider="campus")
    campus.knows("dot", uid="dot", displayName="Canary Bird", memberOf=["vision"])
    first = Client()
    signs_in(first, "campus", "dot")
    _, codes = set_up(first)
    client = Client()
    answer = signs_in(client, "campus", "dot", then=QUEUE)
    assert (answer.headers["Location"], is_in(client)) == (reverse("mfa_authenticate"), False)
    kept = repr([session.get_decoded() for session in Session.objects.all()])
    assert "samlp" not in kept.lower()
    entered = client.post(reverse("mfa_authenticate"), {"code": codes[0]})
    assert (entered.headers["Location"], is_in(client)) == (QUEUE, True)


def test_the_first_answer_without_a_session_leaves_nothing(
    campus: Campus, cast: Cast, nothing_stored: Unchanged
) -> None:
    """Whoever posts whatever fills no table by it."""
    before = Session.objects.count()
    with nothing_stored():
        answer = Client().post(
            reverse("provider-answer", args=["campus"]), {"SAMLResponse": '"><script>x</script>'}
        )
    assert (answer.status_code, answer.cookies) == (200, {})
    assert "<script>x" not in answer.content.decode()
    assert Session.objects.count() == before


def test_berth_says_what_the_provider_has_to_know(campus: Campus, cast: Cast) -> None:
    answer = Client().get(reverse("provider-metadata", args=["campus"]))
    assert answer.headers["Content-Type"] == "application/samlmetadata+xml"
    of = etree.fromstring(answer.content)
    names = {"md": "urn:oasis:names:tc:SAML:2.0:metadata"}
    assert of.get("entityID") == HERE + reverse("provider-metadata", args=["campus"])
    assert (of.get("validUntil"), of.get("cacheDuration")) == (None, None)
    [sso] = of.findall("md:SPSSODescriptor", names)
    assert sso.get("WantAssertionsSigned") == "true"
    [service] = of.findall("md:SPSSODescriptor/md:AssertionConsumerService", names)
    assert service.get("Binding") == "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"
    assert service.get("Location") == HERE + reverse("provider-answer", args=["campus"])


@pytest.mark.parametrize(
    ("method", "route", "status"),
    [
        ("post", "provider-answer", 200),
        ("get", "provider-answer", 405),
        ("get", "provider-back", 404),
        ("get", "provider-metadata", 200),
    ],
)
def test_each_kind_has_its_own_way_back(
    campus: Campus, cast: Cast, method: str, route: str, status: int
) -> None:
    answer = getattr(Client(), method)(reverse(route, args=["campus"]))
    assert answer.status_code == status
