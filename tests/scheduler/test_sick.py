"""Work on a device that its driver tells of no longer is taken back whole and starts elsewhere."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from clusters.models import Cluster, Device, Node
from clusters.port import PodPhase
from scheduler.core.lifecycle import State
from scheduler.loop import sick
from scheduler.models import Attempt, InvariantCheck, Operation, Workload, WorkloadEvent
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import LATER, Stage
from tests.scheduler.test_lost_devices import gang, on, published

LONG_AGO = LATER - timedelta(seconds=sick.GONE_S)


def goes(node: Node, **fields: object) -> None:
    """One device of it, which is held."""
    fields = {"gone_at": LONG_AGO, "usable": False} | fields
    Device.objects.filter(node=node, ordinal=5).update(**fields)


@pytest.fixture
def work(stage: Stage) -> Workload:
    """A gang on two nodes, of which one has lost a device that the gang holds."""
    made = gang(stage, notice_s=300)
    published(on(made, 1).node)
    goes(on(made, 1).node)
    return made


def state(of: Workload) -> str:
    of.refresh_from_db()
    return of.state


def test_a_gang_goes_on_elsewhere_after_its_notice(stage: Stage, work: Workload) -> None:
    sick_node = on(work, 1).node
    assert sick.evict(at=LATER) == 1
    assert state(work) == State.PREEMPTING
    told = WorkloadEvent.objects.get(workload=work, after="PREEMPTING").message
    uuid = f"GPU-{sick_node.name}-5"
    assert told == (
        f"the device {uuid} of node {sick_node.name} is gone, as its driver tells: it goes on"
        " elsewhere"
    )
    assert work.notice_until == LATER + timedelta(seconds=300)
    assert set(Operation.objects.filter(done_at=None).values_list("kind", flat=True)) == {
        "notice",
        "stop",
    }
    assert sick.evict(at=LATER) == 0

    for pod in work.placements.all():
        ended = stage.report(pod, PodPhase.FAILED, exit_code=143, deleting=True)
        stage.observe(ended, at=LATER)
    assert state(work) == State.PENDING
    assert (work.failures, work.node_losses) == (0, 0)
    assert Attempt.objects.get().outcome == "preempted"
    factories.node(stage.cluster, "n3")
    stage.hardware_changed()
    stage.cycle(at=LATER)
    assert state(work) == State.ADMITTED
    live = work.placements.filter(released_at=None)
    assert sick_node.name not in set(live.values_list("node__name", flat=True))


SPARED: dict[str, Callable[[Workload], object]] = {
    "gone for a moment": lambda work: goes(on(work, 1).node, gone_at=LATER),
    "tainted, and told": lambda work: goes(on(work, 1).node, gone_at=None),
    "gone with its node": lambda work: Node.objects.update(gone_at=LONG_AGO),
    "gone with all others": lambda work: Device.objects.update(gone_at=LONG_AGO, usable=False),
    "one of which not all is known": lambda work: Device.objects.update(usable=False),
    "a count token": lambda work: Device.objects.filter(ordinal=5).update(uuid=""),
    "of a cluster that is not heard": lambda work: Cluster.objects.update(state="degraded"),
    "of what may not be preempted": lambda work: Workload.objects.update(preemptible=False),
    "while nothing may start": lambda work: InvariantCheck.objects.create(
        at=AT, took_ms=1, violations=["P1 is broken."]
    ),
}


@pytest.mark.parametrize("but", SPARED.values(), ids=SPARED.keys())
def test_nothing_is_stopped_for_a_device_that_is(
    but: Callable[[Workload], object], work: Workload
) -> None:
    but(work)
    assert sick.evict(at=LATER) == 0
    assert state(work) == State.RUNNING


def test_a_minute_is_one_of_the_real_world(work: Workload) -> None:
    assert sick.evict(at=LATER, speed=60) == 0
    assert sick.evict(at=LATER + 59 * timedelta(seconds=sick.GONE_S), speed=60) == 1
