"""A second factor: set up, asked for at the door, and first of all where a role asks for one."""

import io
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import hotp_value
from django.core import checks
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from controlplane.audit.models import AuditEvent
from controlplane.kernel import clock
from tenants.models import Delegation, User
from tests import factories
from tests.conftest import Cast
from tests.web.test_sessions import is_in, signed_in_as

URL = reverse("second-factor")
ENTER = reverse("mfa_authenticate")
PROOF = reverse("second-factor-proof")
HOME = reverse("home")


@pytest.fixture(autouse=True)
def _no_tries(db: None) -> Iterator[None]:
    yield
    cache.clear()


def code(secret: str, *, later: int = 0) -> str:
    """As an app shows it; `later` counts half minutes."""
    return f"{hotp_value(secret, int(time.time()) // 30 + later):06}"


def wrong_code(secret: str) -> str:
    """Six digits that the app shows nowhere near now: any fixed ones are right now and then."""
    near = {code(secret, later=later) for later in range(-3, 4)}
    return next(told for told in map("{:06}".format, range(10)) if told not in near)


def set_up(client: Client) -> tuple[str, list[str]]:
    """The secret, and the codes for a lost app."""
    secret = client.get(URL).context["secret"]
    answer = client.post(URL, {"code": code(secret)})
    assert answer.status_code == 201, answer.content
    return secret, answer.context["codes"]


def at_the_door(name: str) -> Client:
    """Whose password was right."""
    client = Client()
    answer = client.post(reverse("login"), {"username": name, "password": name})
    assert answer.headers["Location"] == ENTER
    return client


def remove_url() -> str:
    """Of the one app that there is."""
    return reverse("second-factor-remove", args=[Authenticator.objects.get(type="totp").pk])


def may_change(client: Client) -> bool:
    found: bool = client.get(URL).context["may_change"]
    return found


def actions() -> list[str]:
    rows = AuditEvent.objects.filter(action__startswith="second-factor").order_by("id")
    return [row.action for row in rows]


def test_it_is_set_up_by_a_code_and_asked_for_from_then_on(cast: Cast) -> None:
    secret, codes = set_up(signed_in_as("ben"))
    assert len(set(codes)) == 10
    client = at_the_door("ben")
    assert not is_in(client)
    assert client.post(ENTER, {"code": wrong_code(secret)}).status_code == 200
    assert not is_in(client)
    assert client.post(ENTER, {"code": code(secret)}).headers["Location"] == HOME
    assert is_in(client)
    assert actions() == ["second-factor.add"]


def test_a_wrong_code_sets_up_nothing(cast: Cast) -> None:
    client = signed_in_as("ben")
    secret = client.get(URL).context["secret"]
    assert client.post(URL, {"code": wrong_code(secret)}).status_code == 422
    assert client.post(URL, {}).status_code == 422
    assert not Authenticator.objects.exists()
    assert signed_in_as("ben").get(HOME).status_code == 200


def test_a_code_opens_once(cast: Cast) -> None:
    """Whoever looks over a shoulder comes too late, whichever process they meet."""
    secret, codes = set_up(signed_in_as("ben"))
    for told in (code(secret), codes[0]):
        first, second = at_the_door("ben"), at_the_door("ben")
        first.post(ENTER, {"code": told})
        second.post(ENTER, {"code": told})
        assert (is_in(first), is_in(second)) == (True, False)


def test_tries_have_an_end(cast: Cast) -> None:
    secret, _ = set_up(signed_in_as("ben"))
    client = at_the_door("ben")
    for _ in range(5):
        client.post(ENTER, {"code": wrong_code(secret)})
    client.post(ENTER, {"code": code(secret)})
    assert not is_in(client)


def test_sessions_that_a_password_alone_opened_end(cast: Cast) -> None:
    old, own = signed_in_as("ben"), signed_in_as("ben")
    set_up(own)
    assert (is_in(old), is_in(own)) == (False, True)


def test_new_codes_and_turning_it_off_want_a_proof(cast: Cast) -> None:
    client = signed_in_as("ben")
    secret, codes = set_up(client)
    urls = [reverse("second-factor-codes"), remove_url()]
    for url in urls:
        answer = client.post(url)
        assert answer.status_code == 403
        assert "Show first that it is you" in answer.content.decode()
    assert client.post(PROOF, {"code": wrong_code(secret)}).status_code == 422
    assert [client.post(url).status_code for url in urls] == [403, 403]
    assert client.post(PROOF, {"code": codes[0]}).headers["Location"] == URL
    answer = client.post(reverse("second-factor-codes"))
    assert answer.status_code == 201
    assert not set(answer.context["codes"]) & set(codes)
    assert client.post(remove_url()).status_code == 303
    assert not Authenticator.objects.exists()
    assert actions() == ["second-factor.add", "second-factor.codes", "second-factor.remove"]


def test_a_proof_is_good_for_five_minutes_and_one_session(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, at = signed_in_as("ben"), time.time()
    _, codes = set_up(client)
    other = at_the_door("ben")
    other.post(ENTER, {"code": codes[0]})  # to sign in is no proof
    assert client.post(PROOF, {"code": codes[1]}).status_code == 303
    assert (may_change(client), may_change(other)) == (True, False)
    monkeypatch.setattr(time, "time", lambda: at + 299)
    assert may_change(client)
    monkeypatch.setattr(time, "time", lambda: at + 301)
    assert not may_change(client)
    assert client.post(remove_url()).status_code == 403


def test_who_has_none_has_nothing_to_show_or_to_renew(cast: Cast) -> None:
    client = signed_in_as("ben")
    assert client.post(PROOF, {"code": "000000"}).status_code == 409
    assert client.post(reverse("second-factor-codes")).status_code == 409
    assert client.post(reverse("second-factor-remove", args=[1])).status_code == 404
    assert not Authenticator.objects.exists()


def test_there_is_one_app(cast: Cast) -> None:
    client = signed_in_as("ben")
    secret, codes = set_up(client)
    assert client.post(URL, {"code": code(secret)}).status_code == 403
    client.post(PROOF, {"code": codes[0]})
    session = client.session  # with the secret of a page that was open before
    session["mfa.totp.secret"] = secret
    session.save()
    answer = client.post(URL, {"code": code(secret)})
    assert answer.status_code == 409
    assert "You have an app already" in answer.content.decode()


def test_no_secret_lies_open_in_the_database(cast: Cast) -> None:
    client = signed_in_as("ben")
    secret, codes = set_up(client)
    stored = repr(list(Authenticator.objects.values()))
    assert secret not in stored
    assert not any(each in stored for each in codes)
    assert secret not in repr(dict(client.session))


@pytest.mark.parametrize(("name", "asked"), [("oz", True), ("pia", True), ("ben", False)])
def test_a_role_may_ask_for_it_before_anything_else(
    cast: Cast, settings: Settings, name: str, asked: bool
) -> None:
    settings.BERTH_MFA_ROLES = frozenset({"approver", "operator"})
    client = signed_in_as(name)
    page, api = client.get(HOME), client.get("/api/v1/me")
    assert page.status_code == (302 if asked else 200)
    assert api.status_code == (403 if asked else 200)
    if asked:
        assert page.headers["Location"] == URL
        assert "second factor" in api.json()["detail"]
        assert client.post(reverse("token-list"), {}).headers["Location"] == URL
        secret, _ = set_up(client)
        assert (is_in(client), client.get("/api/v1/me").status_code) == (True, 200)
        assert client.post(PROOF, {"code": code(secret, later=1)}).status_code == 303
        assert client.post(remove_url()).status_code == 403
        assert Authenticator.objects.exists()


def test_it_is_asked_of_who_decides_for_an_approver(cast: Cast, settings: Settings) -> None:
    settings.BERTH_MFA_ROLES = frozenset({"approver"})
    at = clock.now()
    given = Delegation.objects.create(
        approver=cast.pia, delegate=cast.vik, from_at=at, until_at=at + timedelta(days=1)
    )
    client = signed_in_as("vik")
    assert client.get(HOME).headers["Location"] == URL
    Delegation.objects.filter(id=given.id).update(withdrawn_at=at)
    assert is_in(client)


def test_tokens_that_a_password_alone_made_end_with_it(cast: Cast, settings: Settings) -> None:
    settings.BERTH_MFA_ROLES = frozenset({"operator"})
    for name, ends in (("oz", True), ("ben", False)):  # he need not have one
        token = factories.token(User.objects.get(username=name))
        set_up(signed_in_as(name))
        token.refresh_from_db()
        assert (token.revoked_at is not None) == ends


def test_who_has_to_and_does_not_may_still_sign_out(cast: Cast, settings: Settings) -> None:
    settings.BERTH_MFA_ROLES = frozenset({"operator"})
    client = signed_in_as("oz")
    assert client.post(reverse("logout")).headers["Location"] == reverse("login")


def test_a_token_is_not_asked(cast: Cast, settings: Settings) -> None:
    settings.BERTH_MFA_ROLES = frozenset({"operator"})
    headers = factories.bearer(factories.token(cast.oz, "operate"))
    assert Client(headers=headers).get("/api/v1/me").status_code == 200


def test_a_lost_app_is_taken_back_by_a_command(cast: Cast) -> None:
    client = signed_in_as("ben")
    set_up(client)
    call_command("reset_second_factor", "ben", stdout=io.StringIO())
    assert not is_in(client)
    assert is_in(signed_in_as("ben"))
    assert actions() == ["second-factor.add", "second-factor.reset"]
    for name, told in (("ben", "has no second factor"), ("nobody", "There is no user")):
        with pytest.raises(CommandError, match=told):
            call_command("reset_second_factor", name)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("", ["Of the roles approver and operator no second factor is asked."]),
        ("operator owner", ["Of the roles approver no second factor is asked."]),
        ("approver operator", []),
    ],
)
def test_who_deploys_is_warned_of_those_who_decide_with_a_password_alone(
    asked: str, told: list[str], settings: Settings
) -> None:
    settings.BERTH_MFA_ROLES = frozenset(asked.split())
    found = checks.run_checks(tags=[checks.Tags.security], include_deployment_checks=True)
    assert [each.msg for each in found if each.id == "berth.W001"] == told


def test_the_break_glass_account_gets_in_whatever_the_policy(
    cast: Cast, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.BERTH_MFA_ROLES = frozenset({"operator", "owner"})
    settings.BERTH_PASSWORDS = False
    out = io.StringIO()
    call_command("break_glass", stdout=out)
    sent = {"username": "break-glass", "password": out.getvalue().strip()}
    client = Client()
    assert client.post(reverse("login"), sent).status_code == 302
    assert is_in(client)
    assert "the break-glass account break-glass signed in from 127.0.0.1" in caplog.text
    assert [record.levelname for record in caplog.records if "glass" in record.message] == [
        "CRITICAL"
    ]
    rows = AuditEvent.objects.filter(action__startswith="break-glass").order_by("id")
    assert [row.action for row in rows] == ["break-glass.make", "break-glass.use"]
    assert sent["password"] not in repr(list(rows.values()))
    assert (
        Client().post(reverse("login"), {"username": "ben", "password": "ben"}).status_code == 422
    )


def test_there_is_one_and_to_make_it_again_is_to_reset_it(cast: Cast) -> None:
    passwords, clients = [], []
    for name in ("break-glass", "another"):
        out = io.StringIO()
        call_command("break_glass", username=name, stdout=out)
        passwords.append(out.getvalue().strip())
        client = Client()
        sent = {"username": "break-glass", "password": passwords[-1]}
        assert client.post(reverse("login"), sent).status_code == 302
        clients.append(client)
    assert len(set(passwords)) == 2
    assert [is_in(each) for each in clients] == [False, True]
    assert User.objects.filter(is_break_glass=True).count() == 1
    sent = {"username": "break-glass", "password": passwords[0]}
    assert Client().post(reverse("login"), sent).status_code == 422


def test_it_takes_nobodys_name(cast: Cast) -> None:
    with pytest.raises(CommandError, match="'ben', which reads like it"):
        call_command("break_glass", username="Ben")
