"""A watcher in a thread, on an installation with one simulated cluster: `world`."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.loop.watching.watch import Watch
from scheduler.management.commands.watch_clusters import follow
from scheduler.models import Workload
from tests.flows.world import World, build, spec
from tests.simulation import simulation
from tests.waiting import PATIENCE_S, eventually

SHORT = ("sleep", "0.2")
LONG = ("sleep", "600")


@pytest.fixture
def world(transactional_db: None) -> Iterator[World]:
    with simulation(layout="demo-north", bookmark_s=0.2) as simulator:
        world = build(simulator)
        simulator.store_credential(world.cluster)
        yield world


@contextmanager
def watching(world: World, **limits: float) -> Iterator[list[Exception]]:
    """One watch in a thread; what it raised when it broke."""
    stop, raised = threading.Event(), list[Exception]()
    port = world.simulator.connect(**limits)  # type: ignore[arg-type]  # named limits

    def run() -> None:
        try:
            Watch(cluster=world.cluster, port=port, at=now, stop=stop).run()
        except Exception as error:  # for the test to look at
            raised.append(error)
        finally:
            connection.close()

    with _in_a_thread(run, stop):
        yield raised


@contextmanager
def following(world: World) -> Iterator[None]:
    """As the command does: a watch that breaks begins anew."""
    stop = threading.Event()
    with _in_a_thread(lambda: follow(world.cluster, stop), stop):
        yield


@contextmanager
def _in_a_thread(run: Callable[[], None], stop: threading.Event) -> Iterator[None]:
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def start(world: World, count: int = 1, command: tuple[str, ...] = SHORT) -> list[Workload]:
    made = world.submit(
        *[spec("h100", name=f"w{number}", command=command) for number in range(count)]
    )
    world.cycle()
    world.dispatch()
    return made


def all_in(state: State, *workloads: Workload) -> None:
    ids = [workload.id for workload in workloads]
    eventually(
        f"all are {state}",
        lambda: Workload.objects.filter(id__in=ids, state=state).count() == len(ids),
    )
