"""Whose device is sick or gone when it fails has lost its node, and its gang with it: by the rows,
whatever the cluster calls the end of its program."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from clusters.models import Device, DeviceSlice, FlavorKind, Node
from clusters.port import PodPhase
from scheduler.core.failures import FailureClass, Retries
from scheduler.core.lifecycle import State
from scheduler.models import Attempt, Placement, Workload, WorkloadEvent
from scheduler.services import stops
from scheduler.services.transition import Step, transition
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import LATER, Stage

SICK_AT = AT + timedelta(seconds=30)
COUNTED = "its device was lost: its node {} has lost devices"


def gang(stage: Stage, **asked: Any) -> Workload:  # Any: as `spec`
    """A pod on each of the two nodes, which hold all of them."""
    return stage.running(count=2, gpus=8, **asked)


def on(workload: Workload, rank: int) -> Placement:
    return workload.placements.get(rank=rank, attempt__ended_at=None)


def exits(stage: Stage, pod: Placement, *, code: int = 1, **told: Any) -> None:
    """Any: fields of a report. By itself, unless that says otherwise."""
    told = {"exit_code": code, "reason": "Error"} | told
    stage.observe(stage.report(pod, PodPhase.FAILED, started_at=AT, finished_at=LATER, **told))


def ends(stage: Stage, workload: Workload) -> tuple[str, str, str]:
    """Once those that were stopped for it are gone: state, class and what its timeline tells."""
    for pod in workload.placements.filter(released_at=None):
        exits(stage, pod, code=143, deleting=True)
    workload.refresh_from_db()
    last = Attempt.objects.get(workload=workload)
    told = WorkloadEvent.objects.filter(workload=workload, after=workload.state).latest("id")
    return workload.state, last.failure, told.message


def loses_one(node: Node, **fields: Any) -> None:  # Any: of the device
    """As the inventory has it, once one is not allocatable any more."""
    fields = {"gone_at": SICK_AT, "usable": False} | fields
    Device.objects.filter(node=node, ordinal=7).update(**fields)


def published(node: Node) -> None:
    node.device_driver = "gpu.nvidia.com"
    node.save()
    for device in node.devices.all():
        device.uuid = f"GPU-{node.name}-{device.ordinal}"
        device.save()


def test_a_gang_goes_on_elsewhere_when_a_pod_fails_on_a_node_that_lost_a_device(
    stage: Stage,
) -> None:
    workload = gang(stage)
    second = on(workload, 1)
    loses_one(second.node)
    exits(stage, second)
    assert Attempt.objects.get().operations.filter(kind="stop").exists()
    state, failure, told = ends(stage, workload)
    assert (state, failure) == (State.PENDING, FailureClass.NODE_LOST)
    assert told.startswith(COUNTED.format(second.node.name))
    assert (workload.failures, workload.node_losses) == (0, 1)
    second.refresh_from_db()
    assert second.end_reason == f"DeviceLost: its node {second.node.name} has lost devices"


def test_so_it_does_where_the_other_one_fails_first(stage: Stage) -> None:
    """Of the connection to it: its own devices are well."""
    workload = gang(stage)
    first, second = on(workload, 0), on(workload, 1)
    loses_one(second.node)
    exits(stage, first)
    state, failure, told = ends(stage, workload)
    assert (state, failure) == (State.PENDING, FailureClass.NODE_LOST)
    assert second.node.name in told


LOSSES: dict[str, Callable[[Node], None]] = {
    "before the attempt began": lambda node: loses_one(node, gone_at=AT - timedelta(days=1)),
    "and has it back": lambda node: loses_one(node, gone_at=None, usable=True),
    "of another model": lambda node: another_goes(node, model="Other"),
    "which is told by itself, and not held": lambda node: another_of_certain_ones_goes(node),
}


def another_goes(node: Node, **fields: Any) -> None:  # Any: of the device
    factories.device(node, 8, usable=False, gone_at=SICK_AT, **fields)


def another_of_certain_ones_goes(node: Node) -> None:
    published(node)
    another_goes(node, uuid="GPU-other")


@pytest.mark.parametrize("lost", LOSSES.values(), ids=LOSSES.keys())
def test_a_loss_that_it_had_no_part_in_excuses_nothing(
    lost: Callable[[Node], None], stage: Stage
) -> None:
    workload = gang(stage)
    lost(on(workload, 1).node)
    exits(stage, on(workload, 1), code=3)
    state, failure, told = ends(stage, workload)
    assert (state, failure) == (State.FAILED, FailureClass.EXIT_CODE)
    assert told.startswith("its work failed: exit code 3; not tried again")


@pytest.mark.parametrize(
    "sick", [{"usable": False}, {"gone_at": SICK_AT}], ids=["tainted", "not told any more"]
)
def test_of_a_device_that_is_told_by_itself_that_very_one_counts(
    sick: dict[str, object], stage: Stage
) -> None:
    workload = gang(stage)
    node = on(workload, 1).node
    published(node)
    Device.objects.filter(node=node, ordinal=5).update(**sick)
    exits(stage, on(workload, 1))
    state, failure, told = ends(stage, workload)
    assert (state, failure) == (State.PENDING, FailureClass.NODE_LOST)
    sentence = f"its device was lost: GPU-{node.name}-5 of node {node.name} is sick or gone"
    assert told.startswith(sentence)


@pytest.mark.parametrize(
    ("profile", "back", "excused"),
    [("1g.10gb", False, True), ("1g.10gb", True, False), ("3g.40gb", False, False)],
)
def test_of_slices_that_are_counted_those_of_its_profile_count_that_are_not_back(
    profile: str, back: bool, excused: bool, stage: Stage
) -> None:
    cut = factories.node(stage.cluster, "cut", gpus=1, mode="mig-static")
    [device] = cut.devices.all()
    factories.device_slice(device, "1g.10gb", 0, 1)
    factories.device_slice(device, "3g.40gb", 4, 8)
    model = device.model
    flavor = factories.flavor("h100.1g", FlavorKind.MIG, model=model, profile="1g.10gb")
    factories.quota(stage.project, flavor, 7000)
    stage.hardware_changed()
    workload = stage.running(flavor=flavor.name, gpus=1)
    DeviceSlice.objects.filter(profile=profile).update(gone_at=SICK_AT)
    if back:
        factories.device_slice(device, profile, 0, 1)
    exits(stage, on(workload, 0))
    _, failure, _ = ends(stage, workload)
    assert (failure == FailureClass.NODE_LOST) is excused


def test_what_is_no_doing_of_a_device_stays_its_own(stage: Stage) -> None:
    workload = gang(stage)
    loses_one(on(workload, 1).node)
    exits(stage, on(workload, 1), code=137, reason="OOMKilled")
    state, failure, _ = ends(stage, workload)
    assert (state, failure) == (State.FAILED, FailureClass.OUT_OF_MEMORY)


@pytest.mark.parametrize(
    ("retries", "state"),
    [
        (Retries(on=()), State.FAILED),
        (Retries(on=(FailureClass.EVICTED,)), State.FAILED),
        (Retries(on=(), exit_codes=(3,)), State.PENDING),
    ],
    ids=["nothing", "not lost nodes", "its exit code"],
)
def test_it_is_tried_again_if_its_retries_say_so(
    retries: Retries, state: State, stage: Stage
) -> None:
    workload = stage.running(gpus=8, retries=retries)
    loses_one(on(workload, 0).node)
    exits(stage, on(workload, 0), code=3)
    assert ends(stage, workload)[:2] == (state, FailureClass.NODE_LOST)


@pytest.mark.parametrize(
    ("told", "sick", "failure"),
    [
        ({"reason": "DeletionByDeviceTaintManager"}, True, FailureClass.NODE_LOST),
        ({"reason": "DeletionByDeviceTaintManager"}, False, FailureClass.NODE_LOST),
        ({"reason": "EvictionByEvictionAPI"}, True, FailureClass.NODE_LOST),
        ({"reason": "Error"}, True, FailureClass.NODE_LOST),
        ({"reason": "Error"}, False, FailureClass.EVICTED),
    ],
    ids=["its taint", "a taint that no slice shows", "a drain", "its deletion", "any deletion"],
)
def test_who_is_taken_away_from_a_sick_device_has_lost_its_node(
    told: dict[str, str], sick: bool, failure: FailureClass, stage: Stage
) -> None:
    """As Kubernetes does where a driver taints it with NoExecute."""
    workload = gang(stage)
    node = on(workload, 1).node
    published(node)
    Device.objects.filter(node=node, ordinal=0).update(usable=not sick)
    exits(stage, on(workload, 1), code=143, deleting=True, **told)
    state, found, _ = ends(stage, workload)
    assert (state, found) == (State.PENDING, failure)


def test_who_was_stopped_by_us_has_lost_nothing(stage: Stage) -> None:
    workload = gang(stage)
    to = Step(workload.id, stage.project.id, State.RUNNING, State.PREEMPTING, "for others")
    transition([to], actor="system:test", actor_name="test", at=LATER)
    stops.stop(workload_ids=[workload.id])
    node = on(workload, 1).node
    published(node)
    Device.objects.filter(node=node, ordinal=0).update(usable=False)
    state, failure, told = ends(stage, workload)
    assert (state, failure) == (State.PENDING, "")
    assert told.startswith("preempted")
    assert {pod.end_reason for pod in workload.placements.all()} == {"Deleted"}


def test_pods_beyond_the_least_of_a_gang_go_with_their_device_and_the_others_run_on(
    stage: Stage,
) -> None:
    workload = gang(stage, least=1)
    loses_one(on(workload, 1).node)
    exits(stage, on(workload, 1))
    workload.refresh_from_db()
    assert workload.state == State.RUNNING
    assert not Attempt.objects.get().operations.filter(kind="stop").exists()
