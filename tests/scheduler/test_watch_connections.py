"""A watcher's connections to the database: as many clusters as there are share a pool of few."""

from django.db import connection

from clusters.models import Cluster
from tests.flows.world import World
from tests.scheduler.watching import following, world
from tests.waiting import eventually

__all__ = ["world"]


def held_by_others() -> int:
    """Connections of everybody but this thread."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        count: int = cursor.fetchone()[0]
    return count


def test_who_follows_a_cluster_holds_none_while_nothing_comes(world: World) -> None:
    Cluster.objects.update(seen_at=None, version="")
    told = Cluster.objects.exclude(seen_at=None).exclude(version="")
    with following(world):
        eventually("its lists and its version are stored", told.exists)
        eventually("all are given back", lambda: held_by_others() == 0)
