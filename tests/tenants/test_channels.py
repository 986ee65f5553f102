"""Channels: who makes them, and what is kept of their address and secret."""

import pytest
from pytest_django import Settings

from clusters.sealing import PrivateKey
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed, NotFound, Unavailable
from tenants.access import actor_for
from tenants.models import Channel, Delivery
from tenants.services import channels, deliveries, webhooks
from tests.conftest import Cast
from tests.tenants.test_webhooks import AT, CANARY, Receiver, ask, make, send
from tests.tenants.test_webhooks import here as here
from tests.tenants.test_webhooks import receiver as receiver


class TestChannels:
    def test_address_and_secret_lie_sealed(self, cast: Cast, receiver: Receiver) -> None:
        channel, secret = make(cast.ada, cast.vision, receiver.url)
        other, _ = make(cast.ada, cast.detection, receiver.url)
        assert channels.target(channel) == webhooks.Target(receiver.url, secret)
        assert channel.host == f"127.0.0.1:{receiver.port}"
        for word in (CANARY, secret):
            assert word.encode() not in bytes(channel.sealed)
            assert word not in repr(channels.target(channel))
        other.sealed = channel.sealed  # moved to another's row it does not open
        other.save()
        channels.try_out(actor=actor_for(user=cast.ada), channel=other, at=AT)
        assert send().error == "it was changed, or sealed for another place"
        assert receiver.got == []

    def test_without_the_private_key_it_waits(
        self, cast: Cast, receiver: Receiver, settings: Settings
    ) -> None:
        make(cast.ada, cast.vision, receiver.url)
        settings.BERTH_OPEN_KEYS = []
        ask(cast)
        delivery = send()
        assert delivery.error.startswith("this process has no key")
        assert delivery.failed_at is None

    def test_sealing_anew_under_another_key(self, cast: Cast, settings: Settings) -> None:
        channel, secret = make(cast.ada, cast.vision, "https://hooks.example/x")
        fresh = PrivateKey.fresh()
        settings.BERTH_SEAL_KEY = fresh.public.raw
        with pytest.raises(Conflict):
            channels.reseal()
        settings.BERTH_OPEN_KEYS = [fresh.raw, *settings.BERTH_OPEN_KEYS]
        assert (channels.reseal(), channels.reseal()) == (1, 0)
        settings.BERTH_OPEN_KEYS = [fresh.raw]
        channel.refresh_from_db()
        assert channels.target(channel) == webhooks.Target("https://hooks.example/x", secret)

    def test_without_a_key_none_is_made(self, cast: Cast, settings: Settings) -> None:
        settings.BERTH_SEAL_KEY = b""
        with pytest.raises(Unavailable):
            make(cast.ada, cast.vision, "https://hooks.example/x")

    def test_who_may_not(self, cast: Cast) -> None:
        url = "https://hooks.example/x"
        for user, of in ((cast.ben, cast.detection), (cast.vik, cast.vision), (cast.ada, None)):
            with pytest.raises(NotAllowed):
                make(user, of, url)
        for place in (cast.detection, cast.vision):
            with pytest.raises(NotFound):
                make(cast.cleo, place, url)
        assert not Channel.objects.exists()

    def test_a_name_is_there_once_and_a_place_has_few(self, cast: Cast) -> None:
        url = "https://hooks.example/x"
        for number in range(channels.MAX_CHANNELS):
            make(cast.ada, cast.vision, url, name=f"{number}")
        with pytest.raises(Conflict):
            make(cast.ada, cast.vision, url, name="3")
        with pytest.raises(Invalid, match="remove one first"):
            make(cast.ada, cast.vision, url, name="more")
        make(cast.ada, cast.detection, url, name="3")

    def test_what_waits_goes_with_its_channel(self, cast: Cast, receiver: Receiver) -> None:
        channel, _ = make(cast.ada, cast.vision, receiver.url)
        ask(cast)
        channels.remove(actor=actor_for(user=cast.ada), channel=channel, at=AT)
        assert not Delivery.objects.exists()
        deliveries.send_due(at=lambda: AT, goes_on=lambda: True)
        assert receiver.got == []
