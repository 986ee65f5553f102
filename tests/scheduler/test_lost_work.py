"""What the planner is told of saved work and of least run times, and what it does with them."""

from datetime import timedelta

import pytest
from pytest_django import Settings

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, NotAllowed
from scheduler.core.lifecycle import State
from scheduler.models import Workload
from scheduler.selectors.load import load_here
from scheduler.services import workloads
from tenants.access import actor_for
from tenants.models import Project, Quota, Role, User
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import Stage

MINUTE = timedelta(minutes=1)


def save(stage: Stage, row: Workload, by: User | None = None, *, minutes: int = 1) -> Workload:
    return workloads.checkpoint(
        actor=actor_for(user=by or stage.ada), workload=row, at=AT + minutes * MINUTE
    )


def running(stage: Stage, name: str, *, node: int = 0, minutes: int = 0) -> Workload:
    """Holds all of a node since so many minutes after AT."""
    row = factories.workload(
        stage.project, stage.ada, [stage.flavor], name, state=State.RUNNING, gpus=8
    )
    factories.place(row, stage.nodes[node], stage.flavor, amount_milli=8000)
    Workload.objects.filter(id=row.id).update(started_at=AT + minutes * MINUTE)
    row.refresh_from_db()
    return row


def test_the_latest_checkpoint_stands_and_is_written_down(stage: Stage) -> None:
    row = running(stage, "train")
    assert save(stage, row).checkpointed_at == AT + MINUTE
    assert save(stage, row, minutes=3).checkpointed_at == AT + 3 * MINUTE
    assert save(stage, row, minutes=2).checkpointed_at == AT + 3 * MINUTE
    event = AuditEvent.objects.order_by("id")[0]
    assert (event.action, event.target_id) == ("workload.checkpoint", row.id)
    assert event.after == {"checkpointed_at": (AT + MINUTE).isoformat()}


def test_who_is_being_preempted_may_still_save_its_work(stage: Stage) -> None:
    row = factories.workload(stage.project, stage.ada, [stage.flavor], state=State.PREEMPTING)
    save(stage, row)
    row.refresh_from_db()
    assert row.checkpointed_at is not None


IDLE = [state for state in State if state not in {State.RUNNING, State.PREEMPTING}]


@pytest.mark.parametrize("state", IDLE)
def test_what_does_not_run_has_nothing_to_save(stage: Stage, state: State) -> None:
    row = factories.workload(stage.project, stage.ada, [stage.flavor], state=state)
    with pytest.raises(Conflict, match=f"is {state}; only work that is RUNNING"):
        save(stage, row)
    row.refresh_from_db()
    assert row.checkpointed_at is None
    assert not AuditEvent.objects.filter(action="workload.checkpoint").exists()


def test_others_than_its_submitter_need_to_be_allowed_to_stop_it(stage: Stage) -> None:
    row = running(stage, "train")
    ben, vik = factories.user("ben"), factories.user("vik")
    factories.member(ben, Role.MEMBER, at=stage.project)
    factories.member(vik, Role.VIEWER, at=stage.project)
    for user in (ben, vik):
        with pytest.raises(NotAllowed, match="may tell of a checkpoint of this workload"):
            save(stage, row, by=user)


def test_checkpoints_and_least_run_times_are_loaded(stage: Stage, settings: Settings) -> None:
    settings.BERTH_MIN_RUN_TIME_S = 5
    saved, unsaved = running(stage, "saved"), running(stage, "unsaved", node=1)
    save(stage, saved)
    other = factories.project(stage.project.tenant, "Other")
    loaded = load_here(at=AT + 9 * MINUTE).snapshot
    known = {held.id: held.checkpointed_at for held in loaded.holding}
    at = int((AT + MINUTE).timestamp())
    assert known == {str(saved.id): at, str(unsaved.id): None}
    assert {queue.min_run_time_s for queue in loaded.queues} == {5}
    stage.project.tenant.min_run_time_s = 600
    stage.project.tenant.save()
    Project.objects.filter(id=other.id).update(min_run_time_s=0)
    loaded = load_here(at=AT + 9 * MINUTE).snapshot
    granted = {queue.project: queue.min_run_time_s for queue in loaded.queues}
    assert granted == {str(stage.project.id): 600, str(other.id): 0}
    Project.objects.filter(id=other.id).update(min_run_time_s=601)
    loaded = load_here(at=AT + 9 * MINUTE).snapshot
    assert {queue.min_run_time_s for queue in loaded.queues} == {600}


def test_a_cycle_evicts_who_has_saved_its_work_and_nobody_too_early(stage: Stage) -> None:
    """Of two that fill the fleet for an hour the one that has just saved its work goes, once it
    has run for the 90 min that its project grants."""
    first, second = running(stage, "first"), running(stage, "second", node=1, minutes=1)
    save(stage, first, minutes=60)
    Quota.objects.update(nominal_milli=0)
    Project.objects.update(min_run_time_s=90 * 60)
    owner = factories.project(stage.project.tenant, "Owner")
    factories.quota(owner, stage.flavor, 8000)
    Quota.objects.filter(project=stage.project).update(nominal_milli=8000)
    factories.workload(owner, stage.ada, [stage.flavor], "asks", gpus=8)

    def states() -> list[str]:
        return [Workload.objects.get(id=row.id).state for row in (first, second)]

    stage.cycle(at=AT + 70 * MINUTE)
    assert states() == ["RUNNING", "RUNNING"]
    stage.cycle(at=AT + 95 * MINUTE)
    assert states() == ["PREEMPTING", "RUNNING"]
