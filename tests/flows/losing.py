"""Two simulated clusters under one installation, either of which may fall silent and come back."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from django.db import connection

from clusters.models import Cluster
from clusters.port import ClusterError, Fault
from clusters.services import clusters
from controlplane.kernel.clock import now
from scheduler.loop.checking import invariants, rules
from scheduler.loop.observing import requeue
from tests.flows.world import World, build
from tests.simulation import simulation
from tests.waiting import eventually

HOUR_S = 3600
UNANSWERED = ClusterError(Fault.UNREACHABLE, "it does not answer")


@dataclass
class Pair:
    """`north` and `south` are alike, and share users, projects and quotas."""

    north: World
    south: World

    def turn(self, *heard: World) -> None:
        """One of everything in the clusters that are heard, both when none is named."""
        self.north.cycle()
        for world in heard or (self.north, self.south):
            world.dispatch()
            world.observe()

    def hear(self, world: World) -> None:
        """As the watch does: what there is goes before the word that it is heard."""
        world.observe()
        clusters.heard(cluster=world.cluster)

    def wait_for_deaths(self, world: World) -> None:
        """Until none of our pods is there, of which nothing is stored."""
        pods = world.port.list_pods
        eventually("they are gone", lambda: not any(pod.workload for pod in pods().items))

    def until_gone(self, world: World) -> None:
        """Until none of our pods is there, and that is stored."""

        def none() -> bool:
            self.turn()
            return not any(pod.workload for pod in world.port.list_pods().items)

        eventually(f"the pods in {world.cluster.name} are gone", none)
        self.turn()


@contextmanager
def pair(*, layout: str = "demo-north") -> Iterator[Pair]:
    with (
        simulation(layout=layout, window=200_000, bookmark_s=0.2) as first,
        simulation(layout=layout, window=200_000, bookmark_s=0.2) as second,
    ):
        north = build(first)
        by = {"actor": "system:test", "actor_name": "test"}
        cluster = clusters.register(name="south", region="lab", at=now(), **by)
        south = replace(north, port=second.connect(), cluster=cluster, simulator=second)
        clusters.heard(cluster=cluster)
        south.sync()
        for world in (north, south):
            world.simulator.store_credential(world.cluster)
        yield Pair(north, south)


def silence(cluster: Cluster, *, for_s: int = HOUR_S) -> None:
    """It was last heard so long ago, and every try since has failed."""
    clusters.failed(cluster=cluster, error=UNANSWERED)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE clusters_cluster SET seen_at = since.at, failing_since = since.at"
            " FROM (SELECT clock_timestamp() - %s * interval '1 second' AS at) since"
            " WHERE id = %s",
            [for_s, cluster.id],
        )
    clusters.mark_silent()


def lose(cluster: Cluster, *, for_s: int = HOUR_S) -> int:
    """How many start elsewhere for it."""
    silence(cluster, for_s=for_s)
    return requeue.requeue_lost(at=now())


def broken() -> list[str]:
    """What rule does not hold."""
    return rules.told(invariants.violations())
