"""What page tests share: a small installation with one of everything, and browsers of the cast."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.db import transaction
from django.db.models import F
from django.test import Client

from clusters.models import Cluster, Device, Flavor, Node
from controlplane.kernel import clock
from scheduler.core.lifecycle import State
from scheduler.models import Placement, PlacementSpan, Workload
from tenants.models import Rate, User
from tests import factories
from tests.conftest import Cast

HTMX = {"HX-Request": "true"}
Browse = Callable[[User], Client]


@dataclass(frozen=True)
class Shop:
    """A cluster with two nodes of H100, one workload of Detection that runs and one that waits."""

    h100: Flavor
    slice: Flavor
    cpu: Flavor
    north: Cluster
    node: Node
    device: Device
    rate: Rate
    running: Workload
    placed: Placement
    waiting: Workload


@pytest.fixture
def browse(db: None) -> Browse:
    def signed_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return signed_in


@pytest.fixture
def shop(cast: Cast) -> Shop:
    h100, cut, cpu = factories.flavor(), factories.mig_flavor(), factories.cpu_flavor()
    north = factories.cluster()
    node = factories.node(north, "n1", gpus=8)
    factories.node(north, "n2", gpus=8)
    factories.quota(cast.detection, h100, 8000, borrowing_limit_milli=4000)
    factories.quota(cast.detection, cpu, 64_000)
    factories.quota(cast.dialogue, h100, 4000)
    rate = factories.rate(h100)
    device = node.devices.get(ordinal=0)
    running = factories.workload(
        cast.detection, cast.ben, [h100], "detector", state=State.RUNNING,
        started_at=factories.AT, submitted_at=factories.AT,
    )  # fmt: skip
    placed = factories.place(running, node, h100, started_at=factories.AT)
    factories.span(placed, device)
    waiting = factories.workload(
        cast.detection, cast.ben, [h100], "sweep", reason_at=factories.AT,
        reason={
            "code": "no-free-capacity", "text": "1 asked, 0 free in one cluster.",
            "numbers": {"asked_milli": 1000, "free_milli": 0},
        },
    )  # fmt: skip
    factories.estimate(waiting)
    return Shop(h100, cut, cpu, north, node, device, rate, running, placed, waiting)


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still, so that only changes of data change a page."""
    monkeypatch.setattr(clock, "now", lambda: factories.AT)


def move(workload: Workload, state: State, **fields: object) -> None:
    """Put it in that state behind the services' back; a version grows with the state."""
    Workload.objects.filter(id=workload.id).update(state=state, version=F("version") + 1, **fields)


def release(placed: Placement) -> None:
    """Give back what it holds: a placement and its spans together."""
    with transaction.atomic():
        Placement.objects.filter(id=placed.id).update(released_at=factories.AT)
        PlacementSpan.objects.filter(placement=placed).update(released_at=factories.AT)
