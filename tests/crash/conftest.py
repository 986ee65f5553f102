"""Fixtures of the crash points: the children, and a world that they share with the test."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from django.db import connection
from django.db.models.functions import Now
from pytest_django import Settings

from controlplane.kernel import hints
from scheduler.core.lifecycle import TERMINAL
from scheduler.models import Attempt, Workload
from tests.crash import diary, verdict
from tests.crash.children import SHORT_S, Children
from tests.flows.world import World, build
from tests.simulation import simulation
from tests.waiting import eventually


@dataclass
class Scene:
    """A world, the children who act in it, and where its pods' story begins."""

    world: World
    children: Children
    begun: str = field(init=False)

    def __post_init__(self) -> None:
        self.begun = self.world.port.list_pods().resource_version

    def end_well(self) -> None:
        """Healthy steps until all has ended; then nothing may be wrong."""
        self.world.until(self._all_ended)
        self.world.dispatch()
        port = self.world.port
        faults = verdict.faults(
            told=diary.read(port, since=self.begun),
            pods=port.list_pods().items,
            services=self.world.simulator.stats()["objects"]["services"],
        )
        assert faults == []

    def wait_for_claims(self) -> None:
        """Until those of the dead have run out, by the database's clock."""
        live = Attempt.objects.filter(claimed_until__gt=Now())
        eventually("the claims of the dead have run out", lambda: not live.exists())

    def wait_for_dispatch(self) -> None:
        """Until a dead process's hold on the cluster's dispatch has run out, by Redis's clock."""
        work = f"dispatch:{self.world.cluster.id}"
        eventually("the dispatch is free", lambda: hints.begin(work, for_s=SHORT_S))
        hints.end(work)

    def _all_ended(self) -> bool:
        return not Workload.objects.exclude(state__in=sorted(TERMINAL)).exists()


@pytest.fixture(scope="session")
def children(django_db_setup: None) -> Iterator[Children]:
    children = Children.start(database=str(connection.settings_dict["NAME"]))
    yield children
    children.stop()


@pytest.fixture
def scene(transactional_db: None, children: Children, settings: Settings) -> Iterator[Scene]:
    settings.BERTH_LEASE_S = settings.BERTH_CLAIM_S = SHORT_S
    # The verdict reads every pod's whole story.
    with simulation(layout="demo-north", window=200_000, bookmark_s=0.2) as simulator:
        world = build(simulator)
        simulator.store_credential(world.cluster)
        yield Scene(world, children)
