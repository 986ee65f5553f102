"""Where adopted pods are taken to be, and what keeps them from it."""

from typing import Any

import pytest

from clusters.models import Device, ForeignSpan, Node
from scheduler.core.lifecycle import State
from scheduler.models import Placement, Stray
from tests import factories
from tests.scheduler.lost_rows import in_a_while, listed, runs, state, waits_with
from tests.scheduler.stage import Stage

NOT_CLEAR: dict[str, tuple[dict[str, Any], str]] = {  # Any: a report's fields
    "deleted": ({"deleting": True}, "is being deleted"),
    "nowhere": ({"node": ""}, "its node (none yet) is not known"),
    "on an unknown node": ({"node": "n9"}, "its node n9 is not known"),
    "of the second rank alone": ({"rank": 1}, "not all of its pods are there"),
    "on a full node": ({"node": "n3"}, "there is no room"),
    "in slices": ({"resources": (("nvidia.com/mig-1g.10gb", 1),)}, "asks for 1000m cores"),
    "with more devices": (
        {"resources": (("nvidia.com/gpu", 8),)},
        "{'nvidia.com/gpu': 8}",
    ),
    "with no device": ({"resources": ()}, "and no device, and is charged for"),
    "with other cores": ({"cpu_milli": 2000}, "2000m cores"),
    "with other memory": ({"memory_mib": 2048}, "2048 MiB"),
}


@pytest.mark.parametrize(("fields", "why"), NOT_CLEAR.values(), ids=NOT_CLEAR)
def test_a_pod_is_not_adopted_that_is(fields: dict[str, Any], why: str, stage: Stage) -> None:
    factories.node(stage.cluster, "n3", gpus=0)
    work = stage.submit()
    runs(stage, work, **fields)
    listed(stage)
    assert why in Stray.objects.get().why
    assert waits_with(stage, work)["code"] == "strays"


def test_certain_devices_are_not_guessed(stage: Stage) -> None:
    Node.objects.update(device_driver="gpu.nvidia.com")
    work = stage.submit()
    runs(stage, work)
    listed(stage)
    assert "certain devices" in Stray.objects.get().why


def test_a_node_that_takes_nothing_new_holds_what_runs_there(stage: Stage) -> None:
    Node.objects.update(schedulable=False)
    stage.hardware_changed()
    work = stage.submit()
    runs(stage, work)
    listed(stage)
    assert state(work) is State.RUNNING


def test_what_was_held_as_foreign_meanwhile_is_its_own_room(stage: Stage) -> None:
    """It could not be adopted at first, so that what it holds counts as a stranger's."""
    work = stage.submit(gpus=8)
    Node.objects.filter(name="n2").update(
        device_driver="gpu.nvidia.com", foreign_cpu_milli=95_500, foreign_memory_mib=1024 * 1024
    )
    for device in Device.objects.filter(node__name="n2"):
        ForeignSpan.objects.create(device=device, span=(0, 1000))
    stage.hardware_changed()
    runs(stage, work)
    strays = listed(stage)
    assert "certain devices" in Stray.objects.get().why
    Node.objects.update(device_driver="")
    in_a_while(strays)
    assert state(work) is State.RUNNING
    assert Placement.objects.get().spans.count() == 8


def test_a_pod_that_is_known_is_not_taken_for_another_placements(stage: Stage) -> None:
    """One that passes itself off as what is being started: its uid is somebody's."""
    stage.submit("first")
    second = stage.submit("second")
    stage.cycle()
    Placement.objects.filter(workload__name="first").update(pod_uid="known")
    runs(stage, second, uid="known")
    listed(stage)
    assert Placement.objects.get(workload=second).pod_uid == ""
    assert state(second) is State.ADMITTED
