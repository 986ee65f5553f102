"""Who is sent to when some never answer: mail waits for no channel, and a channel that works for
none that does not. Receivers and tarpits are real servers on loopback.
"""

import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import connection
from pytest_django import Settings

from controlplane.kernel import hints
from controlplane.kernel.deadlines import Watchdog
from tenants import tasks
from tenants.models import Channel, Delivery, Event, Notice, Project
from tenants.services import deliveries, webhooks
from tests.clusters.scripted import Scripted, answer, scripted
from tests.conftest import Cast
from tests.tenants import test_webhooks as of_webhooks
from tests.tenants.test_webhooks import AT, ask, make
from tests.waiting import PATIENCE_S

here, receiver = of_webhooks.here, of_webhooks.receiver  # fixtures
Receiver = of_webhooks.Receiver
SECOND = timedelta(seconds=1)
LOCAL = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever does not answer is hung up on after a fifth of a second."""
    monkeypatch.setattr(webhooks, "_watchdog", Watchdog(0.2))


@pytest.fixture
def tarpit() -> Iterator[Scripted]:
    """It takes what comes, and never answers."""
    with scripted(lambda server: server.silence) as server:
        yield server


def channel(cast: Cast, url: str, name: str, of: Project | None = None) -> Channel:
    """For its tests alone."""
    return make(cast.ada, of or cast.detection, url, name=name, events=["grant.ended"])[0]


def due(of: Channel, after: timedelta = timedelta()) -> None:
    """A test message, so much later."""
    notice = Notice(event=Event.TEST, body={"channel": of.name}, at=AT)
    notice.cause = f"test:{notice.id}"
    notice.save()
    Delivery.objects.create(notice=notice, channel=of, due_at=AT + after)


def post(rounds: int = 1) -> int:
    """How many were tried in so many rounds."""
    left = iter(range(rounds))
    at = AT + timedelta(minutes=1)
    return deliveries.post_due(at=lambda: at, goes_on=lambda: next(left, None) is not None)


def state(of: Channel) -> tuple[Any, Any]:
    of.refresh_from_db()
    return of.tried_at, of.failing_since


@pytest.mark.django_db(transaction=True)
def test_mail_goes_while_channels_hold(cast: Cast, settings: Settings) -> None:
    settings.MAILERS = LOCAL
    held, let_go = threading.Barrier(21, timeout=PATIENCE_S), threading.Event()

    def hold(line: socket.socket) -> None:
        held.wait()
        let_go.wait(10)
        answer("204 No Content", b"")(line)

    def tell() -> None:
        tasks.tell_channels()
        connection.close()

    with scripted(lambda _: hold) as server:
        for number in range(20):
            due(channel(cast, server.url, f"{number}"))
        ask(cast)
        teller = threading.Thread(target=tell)
        teller.start()
        held.wait()  # all twenty are sent to, and none has answered
        try:
            tasks.send_mail()
            assert [message.to for message in mail.outbox] == [["pia@example.org"]]
        finally:
            let_go.set()
            teller.join()
    assert Delivery.objects.filter(sent_at__isnull=False).count() == 21


def test_each_lane_takes_its_own(cast: Cast, settings: Settings, tarpit: Scripted) -> None:
    settings.MAILERS = LOCAL
    due(channel(cast, tarpit.url, "Chat"))
    ask(cast)
    assert [each.user for each in deliveries._turns(AT + SECOND)] == [None]
    assert deliveries.mail_due(at=lambda: AT + SECOND, goes_on=lambda: True) == 1
    assert (len(mail.outbox), tarpit.requests) == (1, [])


def test_one_lane_at_a_time_is_sent_by_one_process(cast: Cast, receiver: Receiver) -> None:
    due(channel(cast, receiver.url, "Chat"))
    assert hints.begin(hints.CHANNELS, for_s=30)
    try:
        tasks.tell_channels()
        assert not receiver.got
    finally:
        hints.end(hints.CHANNELS)
    tasks.tell_channels()
    assert len(receiver.got) == 1


def test_one_that_works_is_told_beside_twenty_that_hold(cast: Cast) -> None:
    """Each tarpit answers only once the sound one, which is due last, was told."""
    told = threading.Event()

    def hold(line: socket.socket) -> None:
        told.wait(PATIENCE_S)
        answer("204 No Content", b"")(line)

    def take(line: socket.socket) -> None:
        told.set()
        answer("204 No Content", b"")(line)

    with scripted(lambda _: hold) as tarpit, scripted(lambda _: take) as sound:
        for number in range(20):
            due(channel(cast, tarpit.url, f"{number}"))
        due(channel(cast, sound.url, "Sound", cast.segmentation), SECOND)
        assert post() == 21
    assert set(Delivery.objects.values_list("error", flat=True)) == {""}


def test_those_that_fail_come_after_those_that_work(
    cast: Cast, receiver: Receiver, tarpit: Scripted, impatient: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Though their messages are older, more than a round has places, and their last longer ago."""
    monkeypatch.setattr(deliveries, "MOST_AT_ONCE", 3)
    failing = [channel(cast, tarpit.url, f"{number}") for number in range(4)]
    for each in failing * 3:
        due(each)
    sound = channel(cast, receiver.url, "Sound", cast.segmentation)
    assert post(rounds=2) == 6  # four are known by now: the first of each, and two anew
    assert all(since for _, since in map(state, failing))
    due(sound, SECOND)
    Channel.objects.filter(id=sound.id).update(tried_at=AT + timedelta(minutes=2))
    before = len(tarpit.requests)
    assert post() == 3
    assert len(receiver.got) == 1
    assert len(tarpit.requests) == before + 2


def test_whose_turn_was_the_longest_ago_is_next(
    cast: Cast, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "MOST_AT_ONCE", 1)
    much, little = (channel(cast, receiver.url, name) for name in ("much", "little"))
    for _ in range(3):
        due(much)
    due(little, SECOND)
    moments = (AT + timedelta(minutes=1) + number * SECOND for number in range(100))
    deliveries.post_due(at=lambda: next(moments), goes_on=lambda: True)
    assert [b"little" in body for _, body in receiver.got] == [False, True, False, False]


def test_one_that_works_again_is_one_that_works(cast: Cast, receiver: Receiver) -> None:
    one = channel(cast, receiver.url, "Chat")
    assert state(one) == (None, None)
    receiver.status = 500
    at = AT + timedelta(minutes=1)
    due(one)
    due(one)
    post()
    assert state(one) == (at, at)
    deliveries.post_due(at=lambda: at + SECOND, goes_on=iter([True, False]).__next__)
    assert state(one) == (at + SECOND, at)
    receiver.status = 204
    later = at + timedelta(minutes=5)
    deliveries.post_due(at=lambda: later, goes_on=lambda: True)
    assert state(one) == (later, None)


def test_a_name_that_takes_long_to_be_looked_up_is_not_waited_for(
    cast: Cast, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can break a look-up off."""
    monkeypatch.setattr(deliveries, "ROUND_S", 0.5)
    asked, let_go = socket.getaddrinfo, threading.Event()

    def look_up(host: str, *how: Any, **further: Any) -> Any:  # Any: as the socket module's
        if host == "slow.test":
            let_go.wait(20)
        return asked(host, *how, **further)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    slow = channel(cast, "http://slow.test/", "Slow")
    due(slow)
    due(channel(cast, receiver.url, "Chat"))
    try:
        assert post() == 2
        assert not let_go.is_set()
        assert Delivery.objects.get(channel=slow).error == "It gave no answer in time."
        assert Delivery.objects.get(sent_at__isnull=False)
    finally:
        let_go.set()


def test_one_that_ends_by_a_defect_leaves_the_others(
    cast: Cast, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    broken = channel(cast, receiver.url, "Broken")
    due(broken)
    Notice.objects.update(body={})
    due(channel(cast, receiver.url, "Chat"))
    assert post() == 2
    left = Delivery.objects.get(sent_at=None)
    assert (left.channel, left.error) == (broken, "")
    assert left.due_at == AT + timedelta(minutes=1) + deliveries.LEASE
    assert f"delivery {left.id} failed by a defect" in caplog.text
