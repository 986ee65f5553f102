"""Holding and draining the queue of a project, a tenant, a cluster or a pool, from the service to
what pods come to."""

import pytest
from django.db.models import Q

from clusters.port import PodPhase
from clusters.services import queues as hardware
from controlplane.counts import Counts
from controlplane.kernel.queues import QueueState
from scheduler.core.snapshot import CapsView
from scheduler.loop import run
from scheduler.loop.preparing import drain
from scheduler.models import Operation, Workload
from scheduler.selectors import due
from scheduler.selectors.load import load_here
from scheduler.selectors.queues import UnderWay, under_way
from tenants.access import Actor, actor_for
from tenants.models import Project, Role, Tenant, User
from tenants.services import queues
from tenants.services.queues import Caps
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import LATER, Stage

H100 = "NVIDIA-H100-80GB-HBM3"


def move(stage: Stage, state: QueueState) -> None:
    queues.move(actor=stage.actor, of=stage.project, state=state, note="New racks.", at=AT)


def operator() -> Actor:
    found = User.objects.filter(username="oz").first()
    if found is None:
        found = factories.user("oz")
        factories.member(found, Role.OPERATOR)
    return actor_for(user=found)


def close(stage: Stage, model: str = "", state: QueueState = QueueState.HELD) -> None:
    hardware.move(
        cluster=stage.cluster, model=model, state=state, note="New racks.",
        actor="user:oz", actor_name="oz", at=AT,
    )  # fmt: skip


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
    assert under_way(Q(project=stage.project)) == UnderWay(stoppable=1, others=1)
    move(stage, QueueState.DRAINING)
    assert drain.evict(at=LATER) == 1
    assert states() == {"stopped": "PREEMPTING", "kept": "RUNNING", "elsewhere": "ADMITTED"}
    event = stopped.events.order_by("-id")[0]
    assert event.message == "its project's queue is drained: New racks."
    assert under_way(Q(project=stage.project)) == UnderWay(stoppable=0, others=1)

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


def test_of_a_held_tenant_nothing_below_it_starts_and_who_is_held_is_told(stage: Stage) -> None:
    tenant = stage.project.tenant
    above = factories.tenant("Above", slug="above")
    Tenant.objects.filter(id=tenant.id).update(parent=above)
    for each in (tenant, above):
        queues.move(actor=operator(), of=each, state=QueueState.HELD, note="Audit.", at=AT)
    move(stage, QueueState.HELD)
    waits = stage.submit("waits")
    stage.cycle()
    code, text = reason(waits)
    assert code == "queue-held"
    assert f"project {stage.project.name}, tenant {tenant.name}, tenant Above." in text
    queues.move(actor=operator(), of=tenant, state=QueueState.OPEN, note="", at=AT)
    move(stage, QueueState.OPEN)
    stage.cycle(at=LATER)
    assert reason(waits) == (
        "queue-held",
        "Held, so that nothing starts until it is opened again: tenant Above.",
    )
    queues.move(actor=operator(), of=above, state=QueueState.OPEN, note="", at=AT)
    stage.cycle()
    assert states() == {"waits": "ADMITTED"}


def test_a_drained_tenant_takes_back_what_runs_in_all_projects_below_it(stage: Stage) -> None:
    above = factories.tenant("Above", slug="above")
    Tenant.objects.filter(id=stage.project.tenant_id).update(parent=above)
    other = factories.project(above, "Other")
    factories.quota(other, stage.flavor, 0, borrowing_limit_milli=None)
    stage.running("runs")
    stage.running("kept", preemptible=False)
    factories.workload(other, stage.ada, [stage.flavor], "beside")
    stage.cycle()
    drained = stage.project.tenant
    queues.move(actor=operator(), of=drained, state=QueueState.DRAINING, note="Sale.", at=AT)
    assert due.now(at=LATER).drain
    assert drain.evict(at=LATER) == 1
    assert states() == {"runs": "PREEMPTING", "kept": "RUNNING", "beside": "ADMITTED"}
    event = Workload.objects.get(name="runs").events.order_by("-id")[0]
    assert event.message == f"the queue of its tenant {drained.name} is drained: Sale."
    queues.move(actor=operator(), of=above, state=QueueState.DRAINING, note="Sale.", at=AT)
    assert drain.evict(at=LATER) == 1
    assert states() == {"runs": "PREEMPTING", "kept": "RUNNING", "beside": "PREEMPTING"}


@pytest.mark.parametrize("model", ["", H100])
def test_what_a_drained_cluster_or_pool_takes_back_starts_elsewhere(
    stage: Stage, model: str
) -> None:
    runs = stage.running("runs")
    stage.running("kept", preemptible=False)
    factories.node(factories.cluster("south"), "s1", gpus=1)
    close(stage, model, QueueState.DRAINING)
    assert due.now(at=LATER).drain
    assert drain.evict(at=LATER) == 1
    told = f"the pool {H100} in north" if model else "the cluster north"
    assert runs.events.order_by("-id")[0].message == f"{told} is drained: New racks."
    assert drain.evict(at=LATER) == 0
    stage.dispatch()
    stage.observe(stage.report(runs.placements.get(), PodPhase.FAILED))
    stage.cycle()
    stage.cycle()
    assert states() == {"runs": "ADMITTED", "kept": "RUNNING"}
    assert runs.attempts.order_by("-number")[0].cluster.name == "south"


def test_a_drained_pool_leaves_work_on_other_hardware_alone(stage: Stage) -> None:
    cpu = factories.cpu_flavor()
    factories.quota(stage.project, cpu, 96_000)
    stage.running("cores", flavor=cpu.name, gpus=0)
    stage.running("gpus")
    close(stage, H100, QueueState.DRAINING)
    assert drain.evict(at=LATER) == 1
    assert states() == {"cores": "RUNNING", "gpus": "PREEMPTING"}


@pytest.mark.parametrize("model", ["", H100])
def test_nothing_starts_on_held_hardware_and_it_is_told_which(stage: Stage, model: str) -> None:
    stage.running("runs")
    close(stage, model)
    waits = stage.submit("waits")
    stage.cycle()
    assert states() == {"runs": "RUNNING", "waits": "PENDING"}
    code, text = reason(waits)
    assert code == "hardware-held"
    assert (f"pool {H100} in north" if model else "cluster north") in text
    assert drain.evict(at=LATER) == 0
    hardware.move(
        cluster=stage.cluster, model=model, state=QueueState.OPEN, note="",
        actor="user:oz", actor_name="oz", at=AT,
    )  # fmt: skip
    stage.cycle()
    assert states() == {"runs": "RUNNING", "waits": "ADMITTED"}


@pytest.mark.parametrize("of", ["tenant", "cluster", "pool"])
def test_what_was_planned_before_anything_above_it_was_closed_is_not_admitted(
    stage: Stage, of: str
) -> None:
    planned = stage.submit()
    loaded, decided = stage.decide()
    assert decided.admits
    if of == "tenant":
        tenant = stage.project.tenant
        queues.move(actor=operator(), of=tenant, state=QueueState.HELD, note="Audit.", at=AT)
    else:
        close(stage, H100 if of == "pool" else "")
    outcome = stage.carry_out(loaded, decided)
    assert outcome.refused == (str(planned.id),)
    assert states() == {"train": "PENDING"}


def test_what_is_closed_is_told_by_metrics_of_every_kind(stage: Stage) -> None:
    close(stage, H100)
    close(stage, "", QueueState.DRAINING)
    move(stage, QueueState.HELD)
    found = next(m for m in Counts().collect() if m.name == "berth_queues_closed")
    told = {(s.labels["of"], s.labels["state"]): s.value for s in found.samples}
    assert len(told) == 9
    assert {of for of, count in told.items() if count} == {
        ("pool", "held"), ("cluster", "draining"), ("project", "held"),
    }  # fmt: skip


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
