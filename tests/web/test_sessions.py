"""/sessions and /accounts: who is signed in where, and ending it."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse

from controlplane.audit.models import AuditEvent
from controlplane.kernel import clock
from controlplane.kernel.errors import NotAllowed
from controlplane.portal import signed_in
from tenants.access import actor_for
from tenants.models import Role, User, UserSession
from tenants.selectors.sessions import device
from tenants.services import sessions
from tests import factories
from tests.conftest import Cast

URL = reverse("session-list")
HOME = reverse("home")
MINUTE = timedelta(minutes=1)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
EDGE = "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0"  # noqa: E501


def signed_in_as(name: str, *, agent: str = FIREFOX, address: str = "192.0.2.1") -> Client:
    """Through the form."""
    client = Client(headers={"User-Agent": agent}, REMOTE_ADDR=address)
    sent = {"username": name, "password": name}
    assert client.post(reverse("login"), sent).status_code == 302
    return client


def is_in(client: Client) -> bool:
    return client.get(HOME).status_code == 200


def test_a_session_is_listed_from_signing_in_on(cast: Cast) -> None:
    signed_in_as("ben")  # never asks for a page
    row = UserSession.objects.get()
    assert (row.user, row.address, row.agent) == (cast.ben, "192.0.2.1", FIREFOX)
    page = signed_in_as("ben", agent=EDGE, address="192.0.2.2").get(URL).content.decode()
    assert page.count("<tr id=") == 2
    for told in ("Firefox on Linux", "192.0.2.1", "Edge on Windows", "192.0.2.2"):
        assert told in page
    assert page.index("Edge on Windows") < page.index("this one") < page.index("Firefox on Linux")


def test_it_ends_when_it_was_to_whatever_is_written_into_it(cast: Cast) -> None:
    client = signed_in_as("ben")
    lasts = timedelta(seconds=settings.SESSION_COOKIE_AGE)
    [ends_at] = Session.objects.values_list("expire_date", flat=True)
    assert clock.now() - MINUTE + lasts < ends_at <= clock.now() + lasts
    before = dict(client.session)
    client.get(reverse("second-factor"))
    assert dict(client.session) != before
    assert list(Session.objects.values_list("expire_date", flat=True)) == [ends_at]
    Session.objects.update(expire_date=clock.now())
    assert not is_in(client)


def test_one_that_is_ended_is_out_at_its_next_request(cast: Cast) -> None:
    stolen, own = signed_in_as("ben", agent=EDGE), signed_in_as("ben")
    [row] = UserSession.objects.filter(agent=EDGE)
    answer = own.post(reverse("session-end", args=[row.id]))
    assert answer.headers["Location"] == URL
    assert "Edge on Windows is signed out" in own.get(URL).content.decode()
    assert (is_in(stolen), is_in(own)) == (False, True)
    event = AuditEvent.objects.get(action="session.end")
    assert (event.actor_name, event.after) == ("ben", {"user": str(cast.ben.id)})


def test_the_one_that_asks_may_end_itself(cast: Cast) -> None:
    client = signed_in_as("ben")
    client.post(reverse("session-end", args=[UserSession.objects.get().id]))
    assert not is_in(client)
    assert not UserSession.objects.exists()
    assert not Session.objects.filter(session_key=client.session.session_key).exists()


def test_all_others_are_ended_at_once(cast: Cast) -> None:
    others = [signed_in_as("ben") for _ in range(2)]
    own, cleos = signed_in_as("ben"), signed_in_as("cleo")
    answer = own.post(reverse("session-end-others"), follow=True)
    assert "Signed out elsewhere: 2." in answer.content.decode()
    assert [is_in(each) for each in (*others, own, cleos)] == [False, False, True, True]


def test_signing_out_takes_it_off_the_list(cast: Cast) -> None:
    signed_in_as("ben").post(reverse("logout"))
    assert not UserSession.objects.exists()


def test_a_session_that_has_expired_is_not_shown(cast: Cast) -> None:
    signed_in_as("ben", agent=EDGE)
    Session.objects.update(expire_date=clock.now() - timedelta(seconds=1))
    assert "Edge" not in signed_in_as("ben").get(URL).content.decode()


def test_it_is_told_as_seen_once_a_minute(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    at = clock.now()
    monkeypatch.setattr(clock, "now", lambda: at)
    client = signed_in_as("ben")
    expires = Session.objects.get().expire_date
    for later, told in ((59, 0), (60, 60), (119, 60), (120, 120)):
        monkeypatch.setattr(clock, "now", lambda later=later: at + timedelta(seconds=later))
        client.get(HOME)
        row = UserSession.objects.get()
        assert row.seen_at - at == timedelta(seconds=told)
        assert row.began_at == at
    assert Session.objects.get().expire_date == expires  # to be seen makes it last no longer


def test_another_process_that_is_late_takes_nothing_back(cast: Cast) -> None:
    client, at = signed_in_as("ben"), clock.now()
    key = client.session.session_key
    assert key
    for seen_at in (at + timedelta(hours=1), at):
        sessions.seen(user=cast.ben, key=key, address="", agent="", at=seen_at)
    assert UserSession.objects.get().seen_at == at + timedelta(hours=1)


def test_a_new_password_lists_the_session_under_its_new_key(cast: Cast) -> None:
    root = factories.user("root", is_superuser=True, is_staff=True)
    client = signed_in_as("root")
    before = client.session.session_key
    sent = {"password1": "correct horse 1", "password2": "correct horse 1"}
    url = reverse("admin:auth_user_password_change", args=[root.id])
    client.post(url, sent | {"usable_password": "true"})
    assert client.session.session_key != before
    assert [row.session_id for row in UserSession.objects.all()] == [client.session.session_key]


def test_an_agent_that_no_table_holds_breaks_nothing(cast: Cast) -> None:
    signed_in_as("ben", agent="x\x00\x07" + "y" * 5000)
    assert UserSession.objects.get().agent == "x" + "y" * 299


def test_what_a_process_remembers_has_an_end(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signed_in, "_MOST", 3)
    for _ in range(5):
        signed_in_as("ben")
    assert len(signed_in._noted) <= 3
    assert UserSession.objects.count() == 5


def test_nobody_ends_anothers(cast: Cast) -> None:
    bens, cleos = signed_in_as("ben"), signed_in_as("cleo")
    row = UserSession.objects.get(user=cast.ben)
    assert cleos.post(reverse("session-end", args=[row.id])).status_code == 404
    assert is_in(bens)


def test_a_token_ends_no_session(cast: Cast) -> None:
    signed_in_as("oz")
    actor = actor_for(user=cast.oz, token=factories.token(cast.oz, "operate"))
    row, at = UserSession.objects.get(), clock.now()
    with pytest.raises(NotAllowed):
        sessions.end(actor=actor, session=row, at=at)
    with pytest.raises(NotAllowed):
        sessions.end_others(actor=actor, key="", at=at)
    with pytest.raises(NotAllowed):
        sessions.end_all(actor=actor, user=cast.oz, at=at)


def test_an_operator_ends_all_of_an_account(cast: Cast) -> None:
    bens, operator = [signed_in_as("ben"), signed_in_as("ben")], signed_in_as("oz")
    page = operator.get(reverse("account-list")).content.decode()
    assert "End sessions<span" in page
    answer = operator.post(reverse("account-sign-out", args=[cast.ben.id]), follow=True)
    assert "ben is signed out everywhere: 2 sessions." in answer.content.decode()
    assert [is_in(each) for each in (*bens, operator)] == [False, False, True]
    told = AuditEvent.objects.filter(action="session.end", actor_name="oz")
    assert [event.after for event in told] == [{"user": str(cast.ben.id)}] * 2


def test_an_owner_of_the_fleet_sees_accounts_and_one_of_a_tenant_does_not(cast: Cast) -> None:
    factories.member(cast.cleo, Role.OWNER)
    url = reverse("account-list")
    assert signed_in_as("cleo").get(url).status_code == 200
    assert signed_in_as("ada").get(url).status_code == 403
    assert url in signed_in_as("oz").get(reverse("tenant-list")).content.decode()
    assert url not in signed_in_as("ada").get(reverse("tenant-list")).content.decode()


def test_berths_own_users_are_no_accounts(cast: Cast) -> None:
    User.objects.create(username="system:kubernetes", is_active=False)
    assert "system:" not in signed_in_as("oz").get(reverse("account-list")).content.decode()


def test_who_may_not_sign_in_any_more_is_out_and_stays_out(cast: Cast) -> None:
    factories.user("root", is_superuser=True, is_staff=True)
    bens, root = signed_in_as("ben"), signed_in_as("root")
    sent = {"username": "ben", "email": "", "first_name": "", "last_name": ""}
    url = reverse("admin:tenants_user_change", args=[cast.ben.id])
    assert root.post(url, sent).status_code == 302
    assert not is_in(bens)
    assert root.post(url, sent | {"is_active": "on"}).status_code == 302
    assert not is_in(bens)


@pytest.mark.parametrize(
    ("agent", "told"),
    [(FIREFOX, "Firefox on Linux"), (EDGE, "Edge on Windows"), ("curl/8", "A browser")],
)
def test_a_device_is_told_in_words(agent: str, told: str) -> None:
    assert device(agent) == told
