"""A device is its cluster's, by its uuid: another cluster that tells of it does not get it while
its own may still have it."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.db import transaction

from clusters.adapters.kubernetes.resource_slices import resource_slice
from clusters.models import Cluster, Device
from clusters.port import Change, Listing, NodeReport, WatchEvent
from clusters.services.inventory import STAYS
from scheduler.core.lifecycle import State
from scheduler.loop.watching.hardware import Hardware
from scheduler.loop.watching.readers import SliceList
from scheduler.models import Placement, PlacementSpan
from tests import factories
from tests.factories import AT
from tests.kube import resource_slices as made

pytestmark = pytest.mark.django_db

UUID = made.uuid("a", 0)
NODE = NodeReport("a", "a", "u1", True, True, 64_000, 262_144)


class Site:
    """What a cluster tells, at moments of this clock."""

    def __init__(self, name: str) -> None:
        self.cluster: Cluster = factories.cluster(name)
        self.at = AT
        self._hardware = Hardware(self.cluster, lambda: self.at)
        self.is_listed(NODE)

    def is_listed(self, *nodes: NodeReport) -> None:
        self._hardware.nodes_listed(nodes)

    def tells(self, *uuids: str, at: datetime = AT) -> None:
        """Its driver does, of these and no others; without any it is away."""
        self.at = at
        devices = [
            made.whole("a", nth) | {"attributes": _of(nth, uuid)} for nth, uuid in enumerate(uuids)
        ]
        items = (resource_slice(made.published("a", devices)),) if devices else ()
        self._hardware.slices_listed(SliceList(Listing(items, "1")))

    def loses_its_node(self) -> None:
        self._hardware.nodes_changed([WatchEvent(Change.DELETE, NODE, "2")])

    def has_its_node(self) -> None:
        self._hardware.nodes_changed([WatchEvent(Change.UPSERT, NODE, "3")])

    @property
    def has(self) -> bool:
        return Device.objects.filter(
            node__cluster=self.cluster, uuid=UUID, gone_at=None, usable=True
        ).exists()

    @property
    def told(self) -> list[str]:
        self.cluster.refresh_from_db()
        return list(self.cluster.left_out.get("devices", {}).get("first", []))


def _of(nth: int, uuid: str) -> made.Json:
    attributes: made.Json = made.whole("a", nth)["attributes"]
    return attributes | {"uuid": {"string": uuid}}


@pytest.fixture
def north() -> Site:
    site = Site("north")
    site.tells(UUID)
    assert site.has
    return site


@pytest.fixture
def south(north: Site) -> Site:
    return Site("south")


STRANGE = [f"a: {UUID} is a device of another node"]


def test_while_its_driver_is_away_nobody_else_gets_it(north: Site, south: Site) -> None:
    north.tells()
    assert not north.has
    south.tells(UUID, made.uuid("b", 1))
    assert (south.has, south.told) == (False, STRANGE)
    assert Device.objects.filter(node__cluster=south.cluster, gone_at=None).count() == 1
    north.tells(UUID)
    assert north.has


def test_nor_while_its_driver_tells_of_others_only(north: Site, south: Site) -> None:
    north.tells(made.uuid("a", 1))
    south.tells(UUID)
    assert (south.has, south.told) == (False, STRANGE)


def test_a_day_after_it_went_it_is_whose_driver_tells_of_it(north: Site, south: Site) -> None:
    north.tells(at=AT)
    south.tells(UUID, at=AT + STAYS - timedelta(seconds=1))
    assert not south.has
    south.tells(UUID, at=AT + STAYS)
    assert (south.has, south.told) == (True, [])
    north.tells(UUID, at=AT + STAYS)
    assert (north.has, north.told) == (False, STRANGE)


def test_a_node_that_its_cluster_took_away_may_be_anothers_at_once(
    north: Site, south: Site
) -> None:
    north.loses_its_node()
    south.tells(UUID)
    assert south.has
    north.has_its_node()
    assert (north.has, north.told) == (False, STRANGE)
    assert south.has


@pytest.mark.parametrize("loses", [Site.tells, Site.loses_its_node])
def test_while_work_is_on_it_nobody_else_gets_it(
    north: Site, south: Site, loses: Callable[[Site], None]
) -> None:
    device = Device.objects.get(uuid=UUID)
    flavor = factories.flavor(model=device.model)
    project = factories.project(factories.tenant())
    work = factories.workload(project, factories.user("cleo"), [flavor], state=State.RUNNING)
    placement = factories.place(work, device.node, flavor)
    factories.span(placement, device)
    loses(north)
    south.tells(UUID, at=AT + 2 * STAYS)
    assert (south.has, south.told) == (False, STRANGE)
    with transaction.atomic():  # both together, as the loop does
        PlacementSpan.objects.update(released_at=AT)
        Placement.objects.update(released_at=AT, ended_at=AT)
    north.is_listed()
    south.tells(UUID, at=AT + 2 * STAYS)
    assert (south.has, south.told) == (True, [])
