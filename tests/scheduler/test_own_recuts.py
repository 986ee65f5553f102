"""Recuts that Berth plans by itself: for what has waited, of idle nodes, and not to and fro."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from clusters.models import Flavor, FlavorKind, Node
from scheduler.core.lifecycle import State
from scheduler.loop.recutting import own_recuts
from scheduler.models import Recut, Workload
from scheduler.selectors import recuts as reading
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import Stage

LATER = AT + timedelta(seconds=own_recuts.WAITED_S)
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def auto(settings: Settings, stage: Stage) -> None:
    """Each node has a device in sevenths, and somebody waits for a half."""
    settings.BERTH_RECUT = "auto"
    for node in stage.nodes:
        device = node.devices.get(ordinal=0)
        device.mode = "mig-static"
        device.save()
        for start in range(7):
            factories.device_slice(device, "1g.10gb", start, start + 1)
    for name, profile in (("small", "1g.10gb"), ("half", "3g.40gb")):
        flavor = factories.flavor(name, FlavorKind.MIG, profile=profile)
        factories.quota(stage.project, flavor, 16_000)
    stage.hardware_changed()
    factories.workload(stage.project, stage.ada, [flavor], "waits")
    stage.cycle()


def test_an_idle_node_is_cut_for_what_has_waited() -> None:
    assert own_recuts.plan(at=LATER - timedelta(seconds=1)) == 0
    assert own_recuts.plan(at=LATER) == 1
    row = Recut.objects.get()
    assert (row.planned_by, row.mode, row.wanted[0]) == ("scheduler", "wait", {"3g.40gb": 2})
    assert row.wanted[1:] == [{}] * 7


@pytest.mark.parametrize(
    "unlike",
    [
        {"device_driver": "gpu.nvidia.com"},
        {"mig_single": True},
        {"labels": {"nvidia.com/mig.strategy": "single"}},
    ],
)
def test_an_idle_node_that_can_not_be_cut_is_in_the_way_of_no_other(
    stage: Stage, unlike: dict[str, Any]
) -> None:
    first, other = sorted(stage.nodes, key=lambda node: str(node.id))
    Node.objects.filter(id=first.id).update(**unlike)
    stage.hardware_changed()
    [shown] = reading.proposed(cluster=stage.cluster, at=LATER)
    assert shown.preview.node == other.name
    assert own_recuts.plan(at=LATER) == 1
    assert Recut.objects.get().node == other


@pytest.mark.parametrize("word", ["off", "propose"])
def test_only_where_that_is_said(settings: Settings, word: str) -> None:
    settings.BERTH_RECUT = word
    assert own_recuts.plan(at=LATER) == 0


@pytest.mark.parametrize("fields", [{}, {"preemptible": False, "run_time_limit_s": 3600}])
def test_nobody_is_stopped_or_waited_for(stage: Stage, fields: dict[str, Any]) -> None:
    """Though a recut is proposed to operators."""
    small = Flavor.objects.get(name="small")
    for node in stage.nodes:
        work = factories.workload(
            stage.project, stage.ada, [small], state=State.RUNNING, started_at=LATER, **fields
        )
        placement = factories.place(work, node, small)
        factories.span(placement, node.devices.get(ordinal=0), 0, 1)
    assert own_recuts.plan(at=LATER) == 0
    [shown] = reading.proposed(cluster=stage.cluster, at=LATER)
    assert shown.preview.at_once == (not fields)


def test_a_pool_is_not_cut_to_and_fro() -> None:
    assert own_recuts.plan(at=LATER) == 1
    assert own_recuts.plan(at=LATER) == 0
    Recut.objects.update(state="done", ended_at=LATER)
    assert own_recuts.plan(at=LATER + own_recuts.REST - timedelta(seconds=1)) == 0
    assert own_recuts.plan(at=LATER + own_recuts.REST) == 1


def test_a_pool_rests_from_the_end_of_a_recut_that_took_long() -> None:
    assert own_recuts.plan(at=LATER) == 1
    ended = LATER + own_recuts.REST
    Recut.objects.update(state="done", ended_at=ended)
    assert own_recuts.plan(at=ended + own_recuts.REST - timedelta(seconds=1)) == 0
    assert own_recuts.plan(at=ended + own_recuts.REST) == 1


@pytest.mark.parametrize("code", ["quota-used", "cap-reached", "queue-held"])
def test_nothing_is_cut_for_what_lacks_more_than_room(code: str) -> None:
    Workload.objects.update(reason={"code": code, "numbers": {}, "text": "It waits."})
    assert own_recuts.plan(at=LATER) == 0
