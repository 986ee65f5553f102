"""A cluster's credential is replaced: whoever watches takes up the new one without a restart."""

import threading

from django.db import connection

from clusters.models import Cluster, Node
from scheduler.management.commands.watch_clusters import follow_all
from tests.flows.world import World
from tests.scheduler.watching import world
from tests.simulation import Simulator, simulation, store_credential
from tests.waiting import PATIENCE_S, eventually

__all__ = ["world"]


def follows(simulator: Simulator) -> bool:
    """Whether the nodes are those of that one."""
    told = {node["metadata"]["name"] for node in simulator.call("GET", "/api/v1/nodes")["items"]}
    return told == set(Node.objects.filter(gone_at=None).values_list("name", flat=True))


def test_the_watcher_goes_on_by_the_new_credential(world: World) -> None:
    """Another server under the same name shows which is followed."""
    stop = threading.Event()

    def run() -> None:
        follow_all(stop)
        connection.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        eventually("it is followed", lambda: Cluster.objects.get().version != "")
        with simulation(layout="demo-south", bookmark_s=0.2) as other:
            other.store_credential(world.cluster)
            eventually("the other is followed", lambda: follows(other))
            store_credential(world.cluster, server=other.server, token="a-token-that-is-not-it")
            eventually(
                "a token that is not it is told",
                lambda: "Unauthorized" in Cluster.objects.get().last_error,
            )
            world.simulator.store_credential(world.cluster)
            eventually("the first is followed again", lambda: follows(world.simulator))
    finally:
        stop.set()
        thread.join(PATIENCE_S)
    assert not thread.is_alive()
