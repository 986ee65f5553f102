"""Whoever sends what people are told dies: nothing is lost, and what goes twice has one id."""

import re
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from clusters.models import Flavor
from tenants.access import Actor, actor_for
from tenants.models import Delivery, Project, QuotaRequest, Role
from tenants.services import deliveries, requests
from tenants.services.grants import Allotment
from tests import factories
from tests.conftest import Cast
from tests.crash.children import Children
from tests.crash.conftest import Scene
from tests.crash.rounds import Rounds, over_and_over

TELLING = {"T1": 0, "T2": 1}
"""Crash point → the mails that were out by then."""
AT = factories.AT


def ask(
    actor: Actor, project: Project, flavor: Flavor, at: datetime = factories.AT
) -> QuotaRequest:
    return requests.open(
        actor=actor,
        project=project,
        flavor=flavor,
        allotment=Allotment(nominal_milli=17_000),
        reason="A larger model.",
        at=at,
    )


def mails(folder: Path) -> Counter[str]:
    """How often each delivery went out, by the ids that receivers drop the second of."""
    lines = (line for file in folder.iterdir() for line in file.read_text().splitlines())
    found = (re.fullmatch(r"Message-ID: <(.+)@.+>", line) for line in lines)
    return Counter(each[1] for each in found if each)


@pytest.mark.parametrize(("crash", "sent"), TELLING.items())
@pytest.mark.django_db(transaction=True)
def test_dying_while_sending_at(
    crash: str, sent: int, cast: Cast, children: Children, tmp_path: Path
) -> None:
    ask(actor_for(user=cast.ben), cast.detection, factories.flavor())

    def send(after: timedelta, crash: str = "") -> int:
        at = (AT + after).isoformat()
        children.run("send_notices", crash=crash, at=at, folder=str(tmp_path))
        return mails(tmp_path).total()

    assert send(timedelta(), crash) == sent
    assert Delivery.objects.get().sent_at is None
    assert send(timedelta()) == sent  # whoever died may be but slow
    assert send(deliveries.LEASE) == sent + 1
    assert Delivery.objects.get().sent_at == AT + deliveries.LEASE
    assert len(mails(tmp_path)) == 1


def test_dying_over_and_over_while_sending(scene: Scene, tmp_path: Path) -> None:
    """Each who may decide is told of each request, and nobody more often than somebody died of it
    and once more."""

    world = scene.world
    for name in ("pia", "oz"):
        factories.member(factories.user(name), Role.APPROVER)

    def sending(of: Rounds) -> None:
        at = AT + of.nth * timedelta(hours=1)
        count = of.chance.randint(1, 3)
        opened = [ask(world.ada, world.vision, world.flavors["h100"], at) for _ in range(count)]
        due = Delivery.objects.filter(sent_at=None)
        told = set(due.values_list("id", flat=True))
        assert len(told) == 2 * count
        for crash in of.chance.sample(sorted(TELLING), 2):
            of.die("send_notices", crash, at=at.isoformat(), folder=str(tmp_path))
            at += deliveries.LEASE
        scene.children.run("send_notices", at=at.isoformat(), folder=str(tmp_path))
        assert not due.exists()
        for request in opened:
            requests.withdraw(actor=world.ada, request=request, at=at)
        times = mails(tmp_path)
        assert all(times[str(each)] >= 1 for each in told)
        assert times.total() - len(times) == of.deaths["T2"]

    over_and_over(scene, sending, points=TELLING)
