"""What a pod tells whose program has just failed on a device is held back, and nothing else is."""

from dataclasses import replace
from typing import Any

import pytest

from clusters.models import FlavorKind
from clusters.port import PodPhase
from scheduler.loop.watching import doubts
from scheduler.loop.watching.doubts import Doubts
from scheduler.models import Placement
from scheduler.services import workloads
from tests import factories
from tests.factories import AT
from tests.flows.world import spec
from tests.scheduler.stage import LATER, Stage

FAILED: dict[str, Any] = {"exit_code": 1, "reason": "Error", "finished_at": LATER}
NOBODY = frozenset[str]()


@pytest.fixture
def held(stage: Stage) -> Doubts:
    return Doubts(stage.cluster)


def pod(stage: Stage, **asked: Any) -> Placement:  # Any: as `spec`
    return stage.running(**asked).placements.get()


def test_it_is_told_once_that_is_over(
    stage: Stage, held: Doubts, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = stage.report(pod(stage), PodPhase.FAILED, **FAILED)
    assert held.hold([failed, failed], gone=NOBODY) == []
    assert held.hold([failed], gone=NOBODY) == []
    assert held.over() == []
    held.clear()
    monkeypatch.setattr(doubts, "DOUBT_S", 0)
    assert held.hold([failed], gone=NOBODY) == []
    assert held.over() == [failed]
    assert held.over() == []
    stage.observe(failed)
    assert held.hold([failed], gone=NOBODY) == [failed]  # it holds nothing any more


@pytest.mark.parametrize(
    ("phase", "told"),
    [
        (PodPhase.RUNNING, {}),
        (PodPhase.SUCCEEDED, {"exit_code": 0}),
        (PodPhase.FAILED, FAILED | {"deleting": True}),
        (PodPhase.FAILED, FAILED | {"reason": "OOMKilled"}),
        (PodPhase.FAILED, FAILED | {"reason": "NodeLost"}),
        (PodPhase.FAILED, FAILED | {"workload": "", "installation": ""}),
        (PodPhase.FAILED, FAILED | {"uid": "another"}),
    ],
)
def test_what_is_no_doing_of_a_device_is_taken_in_at_once(
    phase: PodPhase, told: dict[str, Any], stage: Stage, held: Doubts
) -> None:
    report = stage.report(pod(stage), phase, **told)
    assert held.hold([report], gone=NOBODY) == [report]


def test_so_is_the_end_of_work_without_a_device(stage: Stage, held: Doubts) -> None:
    flavor = factories.flavor("cpu", FlavorKind.CPU, model="")
    factories.quota(stage.project, flavor, 8000)
    report = stage.report(
        pod(stage, flavor="cpu", gpus=0, name="cores"), PodPhase.FAILED, **FAILED
    )
    assert held.hold([report], gone=NOBODY) == [report]


def test_what_is_gone_is_taken_in_at_once_and_never_again(stage: Stage, held: Doubts) -> None:
    failed = stage.report(pod(stage), PodPhase.FAILED, **FAILED)
    assert held.hold([failed], gone=NOBODY) == []
    assert held.hold([failed], gone={failed.uid}) == [failed]
    assert held.hold([failed], gone=NOBODY) == []  # which an API does not tell
    assert len(held.over()) == 0


def test_of_more_than_can_be_held_it_is_taken_in(
    stage: Stage, held: Doubts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doubts, "MOST", 1)
    pods = stage.running(count=2).placements.order_by("rank")
    reports = [stage.report(each, PodPhase.FAILED, **FAILED) for each in pods]
    assert len(held.hold(reports, gone=NOBODY)) == 1


def test_who_holds_none_beside_those_who_do_is_held_back_with_them(
    stage: Stage, held: Doubts
) -> None:
    """A head without a device dies of the connection to its worker."""
    flavor = factories.flavor("cpu", FlavorKind.CPU, model="")
    factories.quota(stage.project, flavor, 8000)
    stage.hardware_changed()
    whole = spec(stage.flavor.name)
    [worker] = whole.pod_sets
    head = replace(worker, name="head", gpu_count=0, flavors=("cpu",))
    both = replace(whole, pod_sets=(worker, head))
    [made] = workloads.submit(actor=stage.actor, project=stage.project, specs=[both], at=AT)
    stage.cycle()
    stage.dispatch()
    pod = made.placements.get(pod_set__name="head")
    assert not pod.spans.exists()
    report = stage.report(pod, PodPhase.FAILED, **FAILED)
    assert held.hold([report], gone=NOBODY) == []
