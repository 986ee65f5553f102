"""Channels by which other systems are told: sealed, at their places, made by who may."""

from datetime import timedelta

import pytest
from pytest_django import Settings

from clusters.sealing import PrivateKey
from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed, NotFound, Unavailable
from controlplane.kernel.throttle import Throttle, TooOften
from tenants.access import actor_for
from tenants.models import Channel, Delivery, Notice
from tenants.services import channels, webhooks
from tests.conftest import Cast
from tests.tenants.test_webhooks import AT, CANARY, ask, make, send

URL = f"https://hooks.example/{CANARY}"


@pytest.fixture(autouse=True)
def no_mail(settings: Settings) -> None:
    settings.MAILERS = {}


def test_address_and_secret_lie_sealed(cast: Cast) -> None:
    channel, secret = make(cast.ada, cast.vision, URL)
    other, _ = make(cast.ada, cast.detection, URL)
    assert channels.target(channel) == webhooks.Target(URL, secret)
    assert channel.host == "hooks.example"
    for word in (CANARY, secret):
        assert word.encode() not in bytes(channel.sealed)
        assert word not in repr(channels.target(channel))
    other.sealed = channel.sealed  # moved to another's row it does not open
    other.save()
    channels.try_out(actor=actor_for(user=cast.ada), channel=other, at=AT)
    assert send().error == "it was changed, or sealed for another place"


def test_without_the_private_key_it_waits(cast: Cast, settings: Settings) -> None:
    make(cast.ada, cast.vision, URL)
    settings.BERTH_OPEN_KEYS = []
    ask(cast)
    delivery = send()
    assert delivery.error.startswith("this process has no key")
    assert delivery.failed_at is None


def test_sealing_anew_under_another_key(cast: Cast, settings: Settings) -> None:
    channel, secret = make(cast.ada, cast.vision, URL)
    fresh = PrivateKey.fresh()
    settings.BERTH_SEAL_KEY = fresh.public.raw
    with pytest.raises(Conflict):
        channels.reseal()
    settings.BERTH_OPEN_KEYS = [fresh.raw, *settings.BERTH_OPEN_KEYS]
    assert (channels.reseal(), channels.reseal()) == (1, 0)
    settings.BERTH_OPEN_KEYS = [fresh.raw]
    channel.refresh_from_db()
    assert channels.target(channel) == webhooks.Target(URL, secret)


def test_without_a_key_none_is_made(cast: Cast, settings: Settings) -> None:
    settings.BERTH_SEAL_KEY = b""
    with pytest.raises(Unavailable):
        make(cast.ada, cast.vision, URL)


def test_who_may_not(cast: Cast) -> None:
    for user, of in ((cast.ben, cast.detection), (cast.vik, cast.vision), (cast.ada, None)):
        with pytest.raises(NotAllowed):
            make(user, of, URL)
    for place in (cast.detection, cast.vision):
        with pytest.raises(NotFound):
            make(cast.cleo, place, URL)
    assert not Channel.objects.exists()


def test_a_name_is_there_once_and_a_place_has_few(cast: Cast) -> None:
    for number in range(channels.MAX_CHANNELS):
        make(cast.ada, cast.vision, URL, name=f"{number}")
    with pytest.raises(Conflict):
        make(cast.ada, cast.vision, URL, name="3")
    with pytest.raises(Invalid, match="remove one first"):
        make(cast.ada, cast.vision, URL, name="more")
    make(cast.ada, cast.detection, URL, name="3")


def test_what_waits_goes_with_its_channel(cast: Cast) -> None:
    channel, _ = make(cast.ada, cast.vision, URL)
    ask(cast)
    channels.remove(actor=actor_for(user=cast.ada), channel=channel, at=AT)
    assert not Delivery.objects.exists()


def test_tests_are_few_in_a_minute(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each person, whichever channel it is."""
    monkeypatch.setattr(channels, "TRIED", Throttle(most=2, window=timedelta(minutes=1)))
    ada = actor_for(user=cast.ada)
    made = [make(cast.ada, cast.detection, URL, name=name)[0] for name in "abc"]
    for channel in made[:2]:
        channels.try_out(actor=ada, channel=channel, at=AT)
    with pytest.raises(TooOften):
        channels.try_out(actor=ada, channel=made[2], at=AT)
    assert (Notice.objects.count(), Delivery.objects.count()) == (2, 2)
    assert AuditEvent.objects.filter(action="channel.test").count() == 2
    channels.try_out(actor=ada, channel=made[2], at=AT + timedelta(minutes=1))
