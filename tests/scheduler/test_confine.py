"""Projects are confined before their pods, again when what is wanted changes, and looked at."""

from datetime import datetime, timedelta
from ipaddress import ip_network

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from clusters.confinement import Confinement, Drift, Repair
from clusters.models import Cluster
from clusters.port import Fault
from controlplane.audit.models import AuditEvent
from scheduler.core.lifecycle import State
from scheduler.loop.dispatching import confine
from scheduler.models import Confinement as Row
from scheduler.models import Operation
from tenants.models import Quota
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import Stage

OPENED = Drift("NetworkPolicy berth", "spec.ingress", "[{}]", "[]")
SOON, NEXT = AT + confine.EVERY, AT + confine.EVERY + timedelta(seconds=1)


def look(stage: Stage, *, at: datetime = NEXT) -> int:
    return confine.check(port=stage.port, cluster_id=stage.cluster.id, at=lambda: at).taken


def wall(stage: Stage) -> dict[str, int]:
    return dict(stage.port.confined[stage.project.namespace].limits)


def order(stage: Stage, *verbs: str) -> list[str]:
    """What is asked of the cluster from now on, in order."""
    asked: list[str] = []
    for verb in verbs:
        stage.port.trouble[verb] = lambda name, verb=verb: asked.append(verb)  # type: ignore[misc]
    return asked


def set_quota(milli: int, **fields: object) -> None:
    Quota.objects.update(nominal_milli=milli, **{"borrowing_limit_milli": 0, **fields})


def test_it_is_confined_once_and_before_its_first_pod(stage: Stage) -> None:
    asked = order(stage, "confine", "create")
    for name in ("first", "second", "third"):
        stage.submit(name)
    stage.cycle()
    stage.dispatch()
    stage.submit("fourth")
    stage.cycle()
    stage.dispatch()
    assert asked == ["confine", *["create"] * 4]
    row = Row.objects.get()
    assert (row.project, row.cluster) == (stage.project, stage.cluster)
    assert (row.applied_at, row.checked_at, row.error, row.is_drifted) == (AT, AT, "", False)


def test_the_egress_that_is_set_is_applied_with_it(stage: Stage, settings: Settings) -> None:
    settings.BERTH_EGRESS_NETWORKS = (ip_network("10.0.0.0/8"),)
    stage.started()
    assert stage.port.confined == {
        stage.project.namespace: Confinement(
            stage.project.namespace, (("nvidia.com/gpu", 16),), ("10.0.0.0/8",)
        )
    }


def test_a_wall_is_raised_with_the_quota_before_the_pods_that_need_it(stage: Stage) -> None:
    set_quota(8000)
    stage.started("first", gpus=8)
    assert wall(stage) == {"nvidia.com/gpu": 8}
    set_quota(8000, borrowing_limit_milli=4000)
    factories.quota(factories.project(stage.project.tenant, "Other"), stage.flavor, 8000)
    asked = order(stage, "confine", "create")
    stage.started("second", gpus=4)
    assert asked == ["confine", "create"]
    assert wall(stage) == {"nvidia.com/gpu": 12}


def test_a_quota_that_is_lowered_leaves_room_for_what_was_admitted(stage: Stage) -> None:
    workload = stage.submit("first", gpus=8)
    stage.cycle()
    set_quota(2000)
    stage.dispatch()
    assert wall(stage) == {"nvidia.com/gpu": 8}
    Quota.objects.update(used_milli=0)  # as once it has ended
    assert look(stage) == 1
    assert wall(stage) == {"nvidia.com/gpu": 2}
    workload.refresh_from_db()
    assert workload.state == State.BOUND


def test_without_a_quota_there_is_none_and_without_a_limit_what_is_there(stage: Stage) -> None:
    other = factories.project(stage.project.tenant, "Other")
    spaces = {other.id: other.namespace, stage.project.id: stage.project.namespace}
    Quota.objects.update(borrowing_limit_milli=None, nominal_milli=0)
    due = confine.due(cluster_id=stage.cluster.id, projects=spaces)
    assert due[other.id].wanted.limits == (("nvidia.com/gpu", 0),)
    assert due[stage.project.id].wanted.limits == (("nvidia.com/gpu", 16),)


def test_a_machine_that_came_or_went_lately_counts(stage: Stage) -> None:
    Quota.objects.update(nominal_milli=10**6)
    stage.started("first")
    factories.node(stage.cluster, "n3", gpus=4)
    node = stage.nodes[0]
    node.gone_at = AT + timedelta(days=36_500)
    node.save()
    stage.hardware_changed()
    stage.started("second")
    assert wall(stage) == {"nvidia.com/gpu": 20}
    node.gone_at = AT - timedelta(days=36_500)  # which no revision of the inventory tells
    node.save()
    stage.started("third")
    assert wall(stage) == {"nvidia.com/gpu": 12}


@pytest.mark.parametrize(("days", "most"), [(36_500, 16), (-36_500, 15)])
def test_a_device_that_went_counts_for_an_hour_as_its_machine_does(
    stage: Stage, days: int, most: int
) -> None:
    Quota.objects.update(nominal_milli=10**6)
    device = stage.nodes[0].devices.all()[0]
    device.gone_at = AT + timedelta(days=days)
    device.save()
    spaces = {stage.project.id: stage.project.namespace}
    due = confine.due(cluster_id=stage.cluster.id, projects=spaces)
    assert due[stage.project.id].wanted.limits == (("nvidia.com/gpu", most),)


@pytest.mark.parametrize(("days", "most"), [(36_500, 2), (-36_500, 1)])
def test_a_slice_that_went_counts_for_an_hour_too(stage: Stage, days: int, most: int) -> None:
    flavor = factories.mig_flavor()
    factories.quota(stage.project, flavor, 10**6)
    node = factories.node(stage.cluster, "mig", gpus=0)
    device = factories.device(node, mode="mig-static", model=flavor.model)
    factories.device_slice(device, "1g.10gb", 0, 1)
    gone = factories.device_slice(device, "1g.10gb", 1, 2)
    gone.gone_at = AT + timedelta(days=days)
    gone.save()
    spaces = {stage.project.id: stage.project.namespace}
    due = confine.due(cluster_id=stage.cluster.id, projects=spaces)
    assert dict(due[stage.project.id].wanted.limits)["nvidia.com/mig-1g.10gb"] == most


@pytest.mark.parametrize("fault", list(Fault))
def test_no_pod_is_made_of_a_project_that_could_not_be_confined(
    stage: Stage, fault: Fault
) -> None:
    """Nor is its work given up, however often that fails."""
    stage.port.fails("confine", fault)
    workload = stage.started()
    for _ in range(5):
        stage.release_claims()
        stage.dispatch()
    workload.refresh_from_db()
    assert (workload.state, workload.failures) == (State.ADMITTED, 0)
    assert stage.port.calls["create"] == 0
    why = f"confine: {fault}"
    said = f"its project could not be confined there: {why}"
    assert Operation.objects.get().last_error == said
    assert Row.objects.get().error == why
    stage.port.heal()
    stage.release_claims()
    stage.dispatch()
    workload.refresh_from_db()
    assert (workload.state, Row.objects.get().error) == (State.BOUND, "")


def test_of_what_may_have_been_applied_nobody_knows(stage: Stage) -> None:
    """An answer that is lost: the wall may be lower by now than what was wanted before."""
    stage.started("first")
    set_quota(4000)
    stage.port.fails("confine", Fault.UNREACHABLE)
    stage.started("second")
    assert Row.objects.get().digest == ""
    set_quota(16_000)
    stage.port.heal()
    asked = order(stage, "confine", "create")
    stage.release_claims()
    stage.dispatch()
    assert asked == ["confine", "create"]


@pytest.mark.parametrize("fault", [Fault.UNREACHABLE, Fault.SERVER])
def test_a_repair_that_fails_leaves_nobody_knowing(stage: Stage, fault: Fault) -> None:
    stage.started()
    stage.port.fails("confine", fault)
    look(stage)
    assert Row.objects.get().digest == ""


def test_a_pod_that_the_wall_refuses_is_tried_again_and_says_why(stage: Stage) -> None:
    stage.started("first")
    stage.port.fails("create", Fault.QUOTA)
    workload = stage.started("second")
    assert workload.state == State.ADMITTED
    assert Operation.objects.filter(done_at=None).get().last_error == "create: quota"
    assert Row.objects.get().checked_at is None  # looked at soon, by whoever may have lowered it
    stage.port.heal()
    stage.release_claims()
    stage.dispatch()
    workload.refresh_from_db()
    assert (workload.state, workload.failures) == (State.BOUND, 0)
    assert stage.port.calls["confine"] == 1


MISSING = Drift("ServiceAccount berth-workload")
DOUBTED = pytest.mark.parametrize("fault", [Fault.NOT_FOUND, Fault.FORBIDDEN])


def start_after_doubt(stage: Stage, fault: Fault, *found: Drift) -> list[str]:
    """What the start asks that comes after one whose pod was refused."""
    stage.started("first")
    stage.port.drifts[stage.project.namespace] = found
    stage.port.fails("create", fault)
    stage.started("second")
    stage.port.heal()
    asked = order(stage, "confine", "create")
    stage.release_claims()
    stage.dispatch(at=NEXT)
    return asked


@DOUBTED
def test_what_a_pod_can_not_be_without_is_applied_again_and_told(
    stage: Stage, fault: Fault
) -> None:
    assert start_after_doubt(stage, fault, MISSING, OPENED) == ["confine", "create"]
    row = Row.objects.get()
    assert [one["object"] for one in row.drift] == [MISSING.object, OPENED.object]
    assert (row.drifted_at, row.repaired_at, row.error) == (NEXT, NEXT, "")
    event = AuditEvent.objects.get(action="confinement.repair")
    assert event.after == {"cluster": stage.cluster.name, "drift": row.drift}


@DOUBTED
def test_where_drift_is_only_told_no_more_than_what_is_missing_is_made(
    stage: Stage, fault: Fault
) -> None:
    Cluster.objects.update(repair_drift=False)
    assert start_after_doubt(stage, fault, MISSING, OPENED) == ["confine", "create"]
    assert stage.port.drifts == {stage.project.namespace: (OPENED,)}
    row = Row.objects.get()
    assert (len(row.drift), row.is_drifted) == (2, True)
    event = AuditEvent.objects.get(action="confinement.repair")
    assert [one["object"] for one in event.after["drift"]] == [MISSING.object]


RAISED = Drift("ResourceQuota berth", "spec.hard.requests.x", '"8"', '"4"', follows=True)


def test_a_change_of_what_is_wanted_takes_drift_with_it_and_tells_it(stage: Stage) -> None:
    """Not the change itself."""
    Cluster.objects.update(repair_drift=False)
    stage.started("first")
    set_quota(4000)
    stage.port.drifts[stage.project.namespace] = (OPENED, RAISED)
    look(stage)
    row = Row.objects.get()
    assert [one["object"] for one in row.drift] == [OPENED.object]
    assert row.repaired_at == NEXT
    assert AuditEvent.objects.get(action="confinement.repair").after["drift"] == row.drift


def test_the_first_time_nothing_has_drifted(stage: Stage) -> None:
    stage.port.drifts[stage.project.namespace] = (MISSING, RAISED)
    stage.started()
    assert (Row.objects.get().drift, stage.port.drifts) == ([], {})


def test_projects_that_are_confined_wait_for_no_others(stage: Stage) -> None:
    stage.started("first")
    other = factories.project(stage.project.tenant, "Other")
    factories.quota(other, stage.flavor, 8000)
    mine, stage.project = stage.project, other
    stage.submit("waits")
    stage.project = mine
    stage.submit("second")
    stage.cycle()
    asked = order(stage, "confine", "create", "open")
    stage.dispatch()
    assert asked == ["create", "open", "confine", "create", "open"]


def test_nobody_knows_what_was_broken_off(stage: Stage) -> None:
    stage.started("first")
    set_quota(4000)

    def too_slow(_: str) -> None:
        raise TimeoutError

    stage.port.trouble["confine"] = too_slow
    with pytest.raises(TimeoutError):
        look(stage)
    row = Row.objects.get()
    assert (row.digest, row.checked_at) == ("", NEXT)


def test_it_is_looked_at_every_ten_minutes_and_drift_is_repaired(stage: Stage) -> None:
    stage.started()
    assert look(stage, at=SOON) == 0
    stage.port.drifts[stage.project.namespace] = (OPENED,)
    assert look(stage) == 1
    row = Row.objects.get()
    assert row.drift == [
        {"object": "NetworkPolicy berth", "field": "spec.ingress", "found": "[{}]", "wanted": "[]"}
    ]
    assert (row.drifted_at, row.repaired_at, row.checked_at) == (NEXT, NEXT, NEXT)
    event = AuditEvent.objects.get(action="confinement.repair")
    assert (event.actor, event.project_id) == ("system:dispatcher", stage.project.id)
    assert event.after == {"cluster": stage.cluster.name, "drift": row.drift}
    assert stage.port.drifts == {}
    assert look(stage) == 0


def test_where_it_is_only_told_it_stands_until_somebody_puts_it_right(stage: Stage) -> None:
    Cluster.objects.update(repair_drift=False)
    stage.started()
    stage.port.drifts[stage.project.namespace] = (OPENED,)
    for later in (NEXT, NEXT + 2 * confine.EVERY):
        assert look(stage, at=later) == 1
        row = Row.objects.get()
        assert (row.is_drifted, row.drifted_at, row.checked_at) == (True, NEXT, later)
    assert stage.port.calls["confine"] == 1
    assert not AuditEvent.objects.filter(action="confinement.repair").exists()
    stage.port.drifts.clear()
    after = NEXT + 4 * confine.EVERY
    look(stage, at=after)
    row = Row.objects.get()
    assert (row.is_drifted, row.drifted_at, row.repaired_at) == (False, NEXT, after)


def test_what_is_wanted_by_now_is_applied_where_drift_is_only_told(stage: Stage) -> None:
    Cluster.objects.update(repair_drift=False)
    stage.started()
    set_quota(4000)
    look(stage)
    assert wall(stage) == {"nvidia.com/gpu": 4}
    assert Row.objects.get().drift == []


def test_what_can_not_be_looked_at_says_why(stage: Stage) -> None:
    stage.started()
    stage.port.fails("confine", Fault.CONFLICT)
    assert look(stage) == 0
    row = Row.objects.get()
    assert (row.error, row.checked_at) == ("confine: conflict", NEXT)


def test_a_cluster_that_is_out_of_reach_is_asked_no_more(stage: Stage) -> None:
    stage.started()
    stage.port.fails("confine", Fault.UNREACHABLE)
    assert not confine.check(port=stage.port, cluster_id=stage.cluster.id, at=lambda: NEXT).reached


def test_so_many_are_looked_at_at_once_and_those_first_that_waited_longest(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confine, "MOST", 2)
    for n, checked in enumerate([AT, None, AT - timedelta(hours=1)]):
        project = factories.project(stage.project.tenant, f"P{n}", namespace=f"p{n}")
        Row.objects.create(cluster=stage.cluster, project=project, checked_at=checked)
    assert look(stage) == 2
    assert set(stage.port.confined) == {"p1", "p2"}


def test_a_store_does_not_undo_what_was_applied_meanwhile(stage: Stage) -> None:
    stage.started()
    before = Row.objects.get()
    spaces = {stage.project.id: stage.project.namespace}
    due = confine._wanted(stage.cluster.id, spaces)[stage.project.id]
    Row.objects.update(digest="newer")
    confine._store(before, due, Repair.ALL, (OPENED,), NEXT)
    row = Row.objects.get()
    assert (row.digest, row.drift, row.checked_at) == ("newer", [], AT)
    assert not AuditEvent.objects.filter(action="confinement.repair").exists()


def test_a_batch_asks_the_database_a_few_times_however_much_it_starts(stage: Stage) -> None:
    def queries(count: int) -> int:
        for n in range(count):
            stage.submit(f"{count}-{n}")
        stage.cycle()
        with CaptureQueriesContext(connection) as asked:
            confine.due(
                cluster_id=stage.cluster.id,
                projects={stage.project.id: stage.project.namespace},
            )
        stage.dispatch()
        return len(asked)

    queries(1)
    assert queries(2) == queries(8) == 3
