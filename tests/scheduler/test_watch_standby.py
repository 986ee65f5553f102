"""Several watchers: each cluster is followed by one of them, and by another once that is gone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from clusters.models import Cluster
from controlplane.kernel.session_locks import SessionLocks
from scheduler.core.lifecycle import State
from scheduler.management.commands import watch_clusters
from tests.flows.world import World
from tests.scheduler.watching import all_in, start, world
from tests.waiting import PATIENCE_S, eventually

__all__ = ["world"]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_clusters, "LOOK_S", 0.05)


@contextmanager
def watcher() -> Iterator[threading.Event]:
    """One more process, as a thread, until the event that it is given, or the end."""
    stop = threading.Event()

    def run() -> None:
        watch_clusters.follow_all(stop)
        connection.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def lists(world: World) -> int:
    """How often the pods were listed, which each watch does once."""
    return int(world.simulator.stats()["requests"].get("list pods", 0))


def holders() -> list[int]:
    """The sessions that hold a lock of a cluster's watch."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_locks JOIN pg_database d ON d.oid = database"
            " WHERE locktype = 'advisory' AND granted AND datname = current_database()"
            " AND objsubid = 1"  # one key of 64 bits
            " AND (classid::bigint << 32 | objid::bigint) = hashtextextended(%s, 0)",
            [f"watch {Cluster.objects.get().id}"],
        )
        return [pid for (pid,) in cursor.fetchall()]


def test_one_follows_and_another_goes_on_when_that_ends(world: World) -> None:
    with watcher() as first:
        all_in(State.SUCCEEDED, *start(world))
        with watcher():
            all_in(State.SUCCEEDED, *start(world))
            assert lists(world) == 1
            first.set()
            eventually("the other one lists them", lambda: lists(world) == 2)
            all_in(State.SUCCEEDED, *start(world))


def test_who_stood_by_follows_once_the_session_of_the_first_breaks(world: World) -> None:
    with watcher():
        all_in(State.SUCCEEDED, *start(world))
        [first] = holders()
        with SessionLocks() as other:
            name = f"watch {Cluster.objects.get().id}"
            assert not other.take(name)
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s)", [first])
            # Asked again at once: the first, when it looks next, may have it too.
            eventually("it is free", lambda: other.take(name), every_s=0.001)
            assert not other.lost()
            eventually("the first gives up", lambda: world.simulator.stats()["watches"] == 0)
        all_in(State.SUCCEEDED, *start(world))
        assert lists(world) == 2
