"""Who is told what, that it is written down with what it tells, and that it goes out once."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from pytest_django import Settings

from clusters.models import Flavor
from controlplane.settings.env import mailers, origin
from tenants.access import actor_for
from tenants.models import Delivery, Grant, Member, Notice, QuotaRequest, Role, User
from tenants.services import deliveries, grants, notices, quotas, requests
from tenants.services.grants import Allotment
from tenants.services.quotas import Amounts
from tests import factories
from tests.conftest import Cast
from tests.waiting import PATIENCE_S

AT = factories.AT
DAY = timedelta(days=1)


@pytest.fixture
def h100(db: None) -> Flavor:
    return factories.flavor()


@pytest.fixture(autouse=True)
def public(settings: Settings) -> None:
    settings.BERTH_PUBLIC_URL = "https://berth.example"


def ask(cast: Cast, h100: Flavor, until_at: datetime | None = None) -> QuotaRequest:
    return requests.open(
        actor=actor_for(user=cast.ben),
        project=cast.detection,
        flavor=h100,
        allotment=Allotment(nominal_milli=16_000, until_at=until_at),
        reason="A private word.",
        at=AT,
    )


def granted(cast: Cast, h100: Flavor, *, lasts: timedelta) -> Grant:
    """For a time, and all that was told of it until now has gone out."""
    request = ask(cast, h100, AT + lasts)
    requests.grant(actor=actor_for(user=cast.pia), request=request, at=AT)
    send(AT)
    mail.outbox.clear()
    return Grant.objects.get()


def send(at: datetime) -> int:
    return deliveries.mail_due(at=lambda: at, goes_on=lambda: True)


def taken(at: datetime) -> Sequence[Delivery]:
    return deliveries._take(deliveries._mails(at), at)


def told(at: datetime) -> list[tuple[str, str]]:
    """To whom and what of the mails sent by then."""
    mail.outbox.clear()
    send(at)
    return sorted(
        (message.to[0].partition("@")[0], str(message.subject)) for message in mail.outbox
    )


class TestWhoIsTold:
    def test_of_a_request_those_who_may_decide_it(self, cast: Cast, h100: Flavor) -> None:
        lab, beside = factories.user("lia"), factories.user("sid")
        factories.member(lab, Role.APPROVER, at=cast.vision)
        factories.member(beside, Role.APPROVER, at=cast.speech)
        factories.member(cast.ben, Role.APPROVER, at=cast.detection)  # who asks decides nothing
        quiet = factories.user("quiet")
        User.objects.filter(id=quiet.id).update(email="")
        factories.member(quiet, Role.APPROVER)
        factories.member(factories.user("gone", is_active=False), Role.APPROVER)
        ask(cast, h100)
        what = "Berth: ben asks for 16 h100-80gb in Detection."
        assert told(AT) == [("lia", what), ("pia", what)]
        text = str(mail.outbox[0].body)
        assert "https://berth.example/requests" in text
        assert "private" not in text

    def test_of_the_answer_who_asked(self, cast: Cast, h100: Flavor) -> None:
        first, second = ask(cast, h100, AT + DAY), ask(cast, h100)
        send(AT)
        pia = actor_for(user=cast.pia)
        requests.grant(actor=pia, request=first, at=AT)
        requests.deny(actor=pia, request=second, note="A private word.", at=AT)
        assert told(AT) == [
            ("ben", "Berth: 16 h100-80gb in Detection is granted until 2026-11-22 09:00 UTC."),
            ("ben", "Berth: The request for 16 h100-80gb in Detection was denied."),
        ]
        assert not any("private" in str(message.body) for message in mail.outbox)

    def test_who_withdraws_is_told_nothing(self, cast: Cast, h100: Flavor) -> None:
        request = ask(cast, h100)
        send(AT)
        requests.withdraw(actor=actor_for(user=cast.ben), request=request, at=AT)
        assert told(AT) == []

    def test_of_the_end_who_asked_and_the_owners(self, cast: Cast, h100: Flavor) -> None:
        factories.member(cast.oz, Role.OWNER)  # of the fleet: they own everything
        grant = granted(cast, h100, lasts=DAY)
        assert grant.until_at
        grants.begin_and_end_due(at=grant.until_at)
        what = "Berth: 16 h100-80gb in Detection has ended."
        assert told(grant.until_at) == [("ada", what), ("ben", what)]

    def test_who_asked_and_sees_the_project_no_more_is_told_nothing(
        self, cast: Cast, h100: Flavor
    ) -> None:
        granted(cast, h100, lasts=30 * DAY)
        other = ask(cast, h100)
        Member.objects.filter(user=cast.ben).delete()
        send(AT)
        for reminded in (AT + 16 * DAY, AT + 27 * DAY):
            notices.remind(at=reminded)
            assert {to for to, _ in told(reminded)} == {"ada"}
        requests.deny(actor=actor_for(user=cast.pia), request=other, note="No.", at=AT)
        grants.begin_and_end_due(at=AT + 30 * DAY)
        assert {to for to, _ in told(AT + 30 * DAY)} == {"ada"}

    def test_of_an_end_by_an_operator_too(self, cast: Cast, h100: Flavor) -> None:
        granted(cast, h100, lasts=DAY)
        quotas.set_quota(
            actor=actor_for(user=cast.oz),
            project=cast.detection,
            flavor=h100,
            amounts=Amounts(nominal_milli=1000),
            at=AT,
        )
        assert [to for to, _ in told(AT)] == ["ada", "ben"]


class TestReminders:
    def reminded(self, at: datetime) -> list[str]:
        """What ada is told by a beat at that moment."""
        notices.remind(at=at)
        return [subject.partition("ends ")[2] for to, subject in told(at) if to == "ada"]

    def test_fourteen_and_three_days_before_once_each(self, cast: Cast, h100: Flavor) -> None:
        end = AT + 30 * DAY
        granted(cast, h100, lasts=30 * DAY)
        second = timedelta(seconds=1)
        assert self.reminded(end - 14 * DAY - second) == []
        assert self.reminded(end - 14 * DAY) == ["in 14 days, on 2026-12-21 09:00 UTC."]
        assert self.reminded(end - 14 * DAY) == []
        assert self.reminded(end - 3 * DAY - second) == []
        assert self.reminded(end - 3 * DAY) == ["in 3 days, on 2026-12-21 09:00 UTC."]
        assert self.reminded(end - second) == []
        assert {to for to, _ in told(end)} == set()

    @pytest.mark.parametrize(("days", "expected"), [(14, [14, 3]), (13, [3]), (3, [3]), (2, [])])
    def test_a_shorter_one_is_not_told_of_as_it_begins(
        self, cast: Cast, h100: Flavor, days: int, expected: list[int]
    ) -> None:
        granted(cast, h100, lasts=days * DAY)
        found = [what for day in range(days) for what in self.reminded(AT + day * DAY)]
        assert [int(what.split()[1]) for what in found] == expected

    def test_after_a_standstill_only_the_later_is_told(self, cast: Cast, h100: Flavor) -> None:
        granted(cast, h100, lasts=30 * DAY)
        assert len(self.reminded(AT + 28 * DAY)) == 1
        assert self.reminded(AT + 28 * DAY) == []

    def test_what_ended_before_its_time_is_not_told_of(self, cast: Cast, h100: Flavor) -> None:
        grant = granted(cast, h100, lasts=30 * DAY)
        grants.end(actor=actor_for(user=cast.pia), grant=grant, at=AT)
        assert self.reminded(AT + 28 * DAY) == [""]  # that it has ended
        assert not Notice.objects.filter(event="grant.ending").exists()


class TestTheOutbox:
    def test_what_is_not_done_is_not_told(self, cast: Cast, h100: Flavor) -> None:
        with transaction.atomic():
            ask(cast, h100)
            assert Delivery.objects.exists()
            transaction.set_rollback(True)
        assert not QuotaRequest.objects.exists()
        assert not Notice.objects.exists()

    def test_each_goes_out_once_with_its_ids(self, cast: Cast, h100: Flavor) -> None:
        ask(cast, h100)
        assert (send(AT), send(AT)) == (1, 0)
        delivery = Delivery.objects.get()
        assert (delivery.sent_at, delivery.tries) == (AT, 1)
        headers = mail.outbox[0].extra_headers
        assert headers["Message-ID"] == f"<{delivery.id}@localhost>"
        assert headers["X-Berth-Notice"] == str(delivery.notice_id)

    def test_without_a_mail_server_nothing_waits_for_one(
        self, cast: Cast, h100: Flavor, settings: Settings
    ) -> None:
        settings.MAILERS = {}
        ask(cast, h100)
        assert Notice.objects.exists()
        assert not Delivery.objects.exists()

    def test_one_that_fails_is_tried_again_ever_later_and_then_given_up(
        self, cast: Cast, h100: Flavor, settings: Settings
    ) -> None:
        with closed_port() as port:
            settings.MAILERS = smtp(port)
            ask(cast, h100)
            at, waits = AT, []
            while not (delivery := Delivery.objects.get()).failed_at:
                waits.append(delivery.due_at - at)
                at = delivery.due_at
                assert send(at - timedelta(seconds=1)) == 0
                assert send(at) == 1
        assert [wait // timedelta(minutes=1) for wait in waits] == [0, 1, 2, 4, 8, 16, 32]
        assert (delivery.tries, delivery.sent_at) == (deliveries.MOST_TRIES, None)
        assert delivery.error == "The mail server can't be reached (ConnectionRefusedError)."
        assert send(at + DAY) == 0

    def test_one_that_nobody_finished_is_taken_over_and_given_up_at_last(
        self, cast: Cast, h100: Flavor
    ) -> None:
        ask(cast, h100)
        at = AT
        for _ in range(deliveries.MOST_TRIES):
            assert taken(at)
            assert not taken(at)  # whoever took it may still be at it
            at += deliveries.LEASE
        assert send(at) == 1
        assert not mail.outbox
        assert Delivery.objects.get().error == "No try came to an end."

    def test_a_late_word_of_an_old_try_counts_no_more(self, cast: Cast, h100: Flavor) -> None:
        ask(cast, h100)
        [old] = taken(AT)
        taken(AT + deliveries.LEASE)
        deliveries._note(old, "Too late.", at=AT)
        assert Delivery.objects.get().error == ""

    def test_a_mail_server_takes_it(self, cast: Cast, h100: Flavor, settings: Settings) -> None:
        with mail_server(b"250 taken") as (port, said):
            settings.MAILERS = smtp(port)
            ask(cast, h100)
            send(AT)
        assert Delivery.objects.get().sent_at == AT
        assert b"rcpt to:<pia@example.org>" in b"".join(said)
        assert b"Auto-Submitted: auto-generated" in b"".join(said)

    def test_what_a_mail_server_says_of_it_is_not_kept(
        self, cast: Cast, h100: Flavor, settings: Settings
    ) -> None:
        with mail_server(b"554 canary") as (port, _):
            settings.MAILERS = smtp(port)
            ask(cast, h100)
            send(AT)
        assert Delivery.objects.get().error == "The mail server answered 554."


@pytest.mark.django_db(transaction=True)
def test_what_another_is_at_is_passed_over(cast: Cast) -> None:
    h100 = factories.flavor()
    ask(cast, h100)
    found: list[object] = []

    def another() -> None:
        found.extend(taken(AT))
        connection.close()

    with transaction.atomic():
        Delivery.objects.select_for_update().get()
        thread = threading.Thread(target=another)
        thread.start()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        assert found == []
    assert taken(AT)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("smtp://u%40x:p@mail.example", ("mail.example", 587, "u@x", "p", True, False)),
        ("smtps://mail.example", ("mail.example", 465, "", "", False, True)),
        ("smtp+plain://localhost:2525", ("localhost", 2525, "", "", False, False)),
    ],
)
def test_a_mail_server_is_told_by_one_url(
    monkeypatch: pytest.MonkeyPatch, url: str, options: tuple[object, ...]
) -> None:
    monkeypatch.setenv("MAIL", url)
    found = mailers("MAIL")["default"]["OPTIONS"]
    names = ("host", "port", "username", "password", "use_tls", "use_ssl")
    assert tuple(found[name] for name in names) == options


@pytest.mark.parametrize("url", ["mail.example", "http://mail.example", "smtp://", "file://"])
def test_what_is_no_mail_server_stops_the_start(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("MAIL", url)
    with pytest.raises(ImproperlyConfigured, match="MAIL has to be smtp://"):
        mailers("MAIL")


def test_where_berth_is_has_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URL", "https://berth.example/")
    assert (origin("URL"), origin("UNSET")) == ("https://berth.example", "")
    for bad in ("berth.example", "https://berth.example/x", "ftp://berth.example"):
        monkeypatch.setenv("URL", bad)
        with pytest.raises(ImproperlyConfigured, match="URL has to be as https://berth"):
            origin("URL")


def smtp(port: int) -> dict[str, object]:
    options = {"host": "127.0.0.1", "port": port, "use_tls": False, "timeout": 5}
    return {"default": {"BACKEND": "django.core.mail.backends.smtp.EmailBackend",
                        "OPTIONS": options}}  # fmt: skip


@contextmanager
def closed_port() -> Iterator[int]:
    """That nobody listens at, nor will meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@contextmanager
def mail_server(verdict: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """One that takes one mail, and answers its text with `verdict`; and what it was told."""
    said: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        line, _ = listener.accept()
        with line, line.makefile("rb") as heard:
            line.sendall(b"220 here\r\n")
            is_text = False
            for piece in heard:
                said.append(piece)
                if is_text and piece != b".\r\n":
                    continue
                answer = b"250 well" if not is_text else verdict
                is_text = piece.upper().startswith(b"DATA")
                line.sendall((b"354 go on" if is_text else answer) + b"\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=[listener], daemon=True)
        thread.start()
        yield listener.getsockname()[1], said
        thread.join(PATIENCE_S)
