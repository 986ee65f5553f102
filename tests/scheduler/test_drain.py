"""Holding and draining a project's queue, from the service to what its pods come to."""

import pytest

from clusters.port import PodPhase
from scheduler.core.snapshot import CapsView
from scheduler.loop import drain, run
from scheduler.models import Operation, Workload
from scheduler.selectors.load import load_here
from scheduler.selectors.queues import UnderWay, under_way
from tenants.models import Project, QueueState
from tenants.services import queues
from tenants.services.queues import Caps
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import LATER, Stage


def move(stage: Stage, state: QueueState) -> None:
    queues.move(actor=stage.actor, project=stage.project, state=state, note="New racks.", at=AT)


def reason(of: Workload) -> tuple[str, str]:
    of.refresh_from_db()
    assert of.reason is not None
    return of.reason["code"], of.reason["text"]


def states() -> dict[str, str]:
    return dict(Workload.objects.values_list("name", "state"))


def test_of_a_held_queue_what_runs_goes_on_and_nothing_starts_until_it_is_opened(
    stage: Stage,
) -> None:
    stage.running("runs")
    move(stage, QueueState.HELD)
    waits = stage.submit("waits")
    stage.cycle()
    assert drain.evict(at=LATER) == 0
    assert states() == {"runs": "RUNNING", "waits": "PENDING"}
    assert reason(waits)[0] == "queue-held"
    move(stage, QueueState.OPEN)
    stage.cycle()
    assert states() == {"runs": "RUNNING", "waits": "ADMITTED"}


def test_a_drained_queue_takes_back_what_may_be_stopped_and_it_waits_again(stage: Stage) -> None:
    stopped = stage.running("stopped")
    stage.running("kept", preemptible=False)
    other = factories.project(stage.project.tenant, "Other")
    factories.quota(other, stage.flavor, 0, borrowing_limit_milli=None)
    factories.workload(other, stage.ada, [stage.flavor], "elsewhere")
    stage.cycle()
    assert under_way(project_id=stage.project.id) == UnderWay(stoppable=1, others=1)
    move(stage, QueueState.DRAINING)
    assert drain.evict(at=LATER) == 1
    assert states() == {"stopped": "PREEMPTING", "kept": "RUNNING", "elsewhere": "ADMITTED"}
    event = stopped.events.order_by("-id")[0]
    assert event.message == "its project's queue is drained: New racks."
    assert under_way(project_id=stage.project.id) == UnderWay(stoppable=0, others=1)

    stage.dispatch()
    stage.observe(stage.report(stopped.placements.get(), PodPhase.FAILED))
    stage.cycle()
    assert states()["stopped"] == "PENDING"
    assert (reason(stopped)[0], stopped.failures) == ("queue-held", 0)
    assert states() == {"stopped": "PENDING", "kept": "RUNNING", "elsewhere": "BOUND"}
    move(stage, QueueState.OPEN)
    stage.cycle()
    assert states()["stopped"] == "ADMITTED"


def test_a_cycle_drains_though_nothing_waits(committed: Stage) -> None:
    committed.running()
    move(committed, QueueState.DRAINING)
    assert run.run_cycle(at=LATER) is None
    assert states() == {"train": "PREEMPTING"}


def test_asking_again_changes_nothing_more(stage: Stage) -> None:
    stage.running()
    move(stage, QueueState.DRAINING)
    assert [drain.evict(at=LATER) for _ in range(2)] == [1, 0]
    assert Operation.objects.filter(kind="stop").count() == 1


def test_many_are_taken_back_by_turns(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("w1", "w2", "w3"):
        stage.running(name)
    monkeypatch.setattr(drain, "MOST", 2)
    move(stage, QueueState.DRAINING)
    assert [drain.evict(at=LATER) for _ in range(3)] == [2, 1, 0]


@pytest.mark.parametrize("state", [QueueState.HELD, QueueState.DRAINING])
def test_what_was_planned_before_the_queue_was_closed_is_not_admitted(
    stage: Stage, state: QueueState
) -> None:
    planned = stage.submit()
    loaded, decided = stage.decide()
    assert decided.admits
    move(stage, state)
    outcome = stage.carry_out(loaded, decided)
    assert outcome.refused == (str(planned.id),)
    assert states() == {"train": "PENDING"}


def test_what_is_admitted_while_somebody_drains_goes_too(stage: Stage) -> None:
    stage.submit()
    stage.cycle()
    move(stage, QueueState.DRAINING)
    assert drain.evict(at=LATER) == 1
    assert states() == {"train": "PREEMPTING"}


def test_caps_are_loaded_and_submitters_only_where_they_have_caps(stage: Stage) -> None:
    stage.running("runs")
    stage.submit("waits")

    def loaded() -> tuple[set[str], CapsView | None]:
        snapshot = load_here(at=AT).snapshot
        users: set[str] = {of.user for of in snapshot.pending}
        users |= {of.user for of in snapshot.holding}
        return users, snapshot.queues[0].caps

    assert loaded() == ({""}, None)
    queues.set_caps(actor=stage.actor, project=stage.project, caps=Caps(max_pending=1), at=AT)
    assert loaded() == ({""}, None)
    caps = Caps(max_running=3, user_max_running=2, user_max_gpus_milli=1500)
    queues.set_caps(actor=stage.actor, project=stage.project, caps=caps, at=AT)
    assert loaded() == ({str(stage.ada.id)}, CapsView(3, 2, 1500))


def test_each_submitter_starts_up_to_the_cap_of_users(stage: Stage) -> None:
    ben = factories.user("ben")
    Project.objects.update(user_max_running=1)
    for name, user in (("a1", stage.ada), ("a2", stage.ada), ("b1", ben), ("b2", ben)):
        factories.workload(stage.project, user, [stage.flavor], name)
    stage.cycle()
    assert states() == {"a1": "ADMITTED", "a2": "PENDING", "b1": "ADMITTED", "b2": "PENDING"}
    assert reason(Workload.objects.get(name="b2")) == (
        "cap-reached",
        "1 workloads of its submitter run in the project; at most 1 may at once.",
    )
