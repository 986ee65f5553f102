"""Whoever sends what people are told dies: nothing is lost, and what goes twice has one id."""

from datetime import timedelta
from pathlib import Path

import pytest

from tenants.access import actor_for
from tenants.models import Delivery
from tenants.services import deliveries, requests
from tenants.services.grants import Allotment
from tests import factories
from tests.conftest import Cast
from tests.crash.children import Children

TELLING = {"T1": 0, "T2": 1}
"""Crash point → the mails that were out by then."""
AT = factories.AT


@pytest.mark.parametrize(("crash", "sent"), TELLING.items())
@pytest.mark.django_db(transaction=True)
def test_dying_while_sending_at(
    crash: str, sent: int, cast: Cast, children: Children, tmp_path: Path
) -> None:
    requests.open(
        actor=actor_for(user=cast.ben),
        project=cast.detection,
        flavor=factories.flavor(),
        allotment=Allotment(nominal_milli=1000),
        reason="A larger model.",
        at=AT,
    )

    def lines() -> list[str]:
        return [line for file in tmp_path.iterdir() for line in file.read_text().splitlines()]

    def send(after: timedelta, crash: str = "") -> int:
        at = (AT + after).isoformat()
        children.run("send_notices", crash=crash, at=at, folder=str(tmp_path))
        return sum(line.startswith("Message-ID:") for line in lines())

    assert send(timedelta(), crash) == sent
    assert Delivery.objects.get().sent_at is None
    assert send(timedelta()) == sent  # whoever died may be but slow
    assert send(deliveries.LEASE) == sent + 1
    assert Delivery.objects.get().sent_at == AT + deliveries.LEASE
    ids = {line for line in lines() if line.startswith(("Message-ID:", "X-Berth-Notice:"))}
    assert len(ids) == 2
