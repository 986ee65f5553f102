"""Who runs Berth sees that mail does not arrive; who owns a channel that it fails."""

from datetime import timedelta

from django.urls import reverse
from pytest_django import Settings

from controlplane.kernel import clock
from tenants.models import Channel, Delivery
from tests.conftest import Cast
from tests.tenants.test_notices import closed_port, send, smtp
from tests.tenants.test_webhooks import ask, make
from tests.web.conftest import Browse

type Told = dict[str, float]

SAID = "The mail server can&#x27;t be reached (ConnectionRefusedError)."
STATES = ("waiting", "failing", "given-up")


def test_mail_that_does_not_arrive_is_told_and_counted(
    browse: Browse, cast: Cast, settings: Settings
) -> None:
    oz, ada = browse(cast.oz), browse(cast.ada)

    def told() -> Told:
        lines = oz.get("/metrics").content.decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if line.startswith("berth_deliver"))
        return {name: float(value) for name, value in pairs}

    def of_mail() -> list[float]:
        found = told()
        return [found[f'berth_deliveries{{lane="mail",state="{state}"}}'] for state in STATES]

    def page() -> str:
        return oz.get(reverse("channels")).content.decode()

    lanes = ("mail", "channels")
    names = [f'berth_deliveries{{lane="{x}",state="{y}"}}' for x in lanes for y in STATES]
    ages = [f'berth_delivery_oldest_seconds{{lane="{lane}"}}' for lane in lanes]
    assert told() == dict.fromkeys([*names, *ages], 0)
    with closed_port() as port:
        settings.MAILERS = smtp(port)
        ask(cast, at=clock.now() - timedelta(minutes=2))
        assert of_mail() == [1, 0, 0]
        assert 120 <= told()['berth_delivery_oldest_seconds{lane="mail"}'] < 180
        assert "Mail does not arrive" not in page()
        send(clock.now())
        assert of_mail() == [0, 1, 0]
        assert "1 tried again, 0 given up within a day" in page()
        assert f"The last error: {SAID}" in page()
        while not (delivery := Delivery.objects.get()).failed_at:
            send(delivery.due_at)
    assert of_mail() == [0, 0, 1]
    assert told()['berth_delivery_oldest_seconds{lane="mail"}'] == 0
    assert "0 tried again, 1 given up within a day" in page()
    of_ada = reverse("tenant-channels", args=[cast.vision.id])
    assert "Mail does not arrive" not in ada.get(of_ada).content.decode()
    Delivery.objects.update(failed_at=clock.now() - timedelta(hours=25))
    assert of_mail() == [0, 0, 0]
    assert "Mail does not arrive" not in page()


def test_a_channel_says_since_when_it_fails(browse: Browse, cast: Cast) -> None:
    channel, _ = make(cast.ada, cast.vision, "https://hooks.example/")
    client, url = browse(cast.ada), reverse("tenant-channels", args=[cast.vision.id])
    assert "fails since" not in client.get(url).content.decode()
    Channel.objects.filter(id=channel.id).update(failing_since=clock.now())
    assert "fails since" in client.get(url).content.decode()
    lines = client.get(f"/api/v1/tenants/{cast.vision.id}/channels").json()["items"]
    assert lines[0]["failing_since"] is not None
