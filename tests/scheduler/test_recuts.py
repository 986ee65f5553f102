"""A node cut anew, from its plan to its end, and what may come between."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from clusters.models import Node
from clusters.port import Fault, PodPhase
from controlplane.audit.models import AuditEvent
from scheduler.core.lifecycle import State
from scheduler.loop.recutting import recuts as loop
from scheduler.loop.recutting.steps import LIMIT, SETTLE
from scheduler.models import Placement, RecutMode, RecutState, Workload, WorkloadEvent
from scheduler.services import recuts
from tests import factories
from tests.factories import AT
from tests.scheduler.meanwhile import meanwhile
from tests.scheduler.recutting import HALVES, HOUR, WHOLE, Recutting, recutting, stranger
from tests.scheduler.stage import Stage

MINUTE = timedelta(minutes=1)
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def of(stage: Stage) -> Recutting:
    return recutting(stage)


def on(of: Recutting, name: str = "train", preemptible: bool = True) -> Placement:
    """Work that runs on all of n1."""
    made = of.stage.running(name, gpus=8, preemptible=preemptible)
    placement = made.placements.get()
    assert placement.node.name == "n1"
    return placement


def test_an_empty_node_is_cut_checked_and_opened(of: Recutting) -> None:
    of.plan()
    assert of.go_on() == "emptying"
    assert (of.there.cordoned, of.there.recut) == (True, str(of.row.id))
    assert of.stage.port.ways is not None
    assert of.stage.port.ways[of.row.config] == list(HALVES)
    assert of.go_on(MINUTE) == "emptying"  # the config map is not seen at once
    assert of.go_on(MINUTE) == "cutting"
    of.stage.port.says("n1", "pending")
    assert of.go_on(MINUTE) == "cutting"
    of.stage.port.says("n1", "success")
    assert of.go_on(MINUTE) == "checking"
    of.stage.port.says("n1", "success", *HALVES)
    assert of.go_on(MINUTE) == "opening"
    assert (of.there.cordoned, of.there.schedulable, of.there.recut) == (False, True, "")
    assert of.go_on(MINUTE) == "opening"  # the inventory has not seen it yet
    of.watched()
    assert of.go_on(MINUTE) == "done"
    assert recuts.counted(recuts.cut_now(node=of.node)) == recuts.counted(HALVES)
    assert of.told() == [
        *("planned", "cordoning", "emptying", "cutting", "checking", "opening", "done")
    ]
    assert AuditEvent.objects.get(action="recut.planned").actor_name == "oz"


def test_nothing_begins_before_its_time(of: Recutting) -> None:
    of.plan(starts_at=AT + HOUR, ends_at=AT + 2 * HOUR)
    assert loop.due(at=AT) == []
    assert of.go_on() == "planned"
    assert not of.there.cordoned
    assert loop.due(at=AT + HOUR) == [of.stage.cluster.id]
    assert of.go_on(HOUR) == "emptying"


def test_the_planner_places_nothing_there_while_it_is_under_way(of: Recutting) -> None:
    of.plan()
    made = of.stage.submit(gpus=8, count=2)
    of.go_on()
    of.stage.cycle()
    made.refresh_from_db()
    assert made.state == State.PENDING
    one = of.stage.submit("one", gpus=8)
    of.stage.cycle()
    assert one.placements.get().node.name == "n2"


def test_a_plan_that_was_made_before_it_began_is_refused_by_the_rows(of: Recutting) -> None:
    of.plan()
    of.stage.submit(gpus=8, count=2)
    loaded, decided = of.stage.decide()
    assert len(decided.admits) == 1
    of.go_on()
    outcome = of.stage.carry_out(loaded, decided)
    assert (outcome.admitted, len(outcome.refused)) == (frozenset(), 1)


def place(of: Recutting, work: Workload) -> None:
    factories.place(work, of.node, of.stage.flavor)


def test_who_begins_waits_for_who_places_and_sees_it(of: Recutting) -> None:
    row = of.plan()
    work = factories.workload(of.stage.project, of.stage.ada, [of.stage.flavor])
    other = factories.workload(of.stage.project, of.stage.ada, [of.stage.flavor])
    begun = meanwhile(
        lambda: place(of, work),
        lambda: recuts.move(row, RecutState.CORDONING, actor="x", actor_name="x", at=AT),
    )
    assert begun.exception() is None
    assert Placement.objects.filter(node=of.node).count() == 1
    with pytest.raises(IntegrityError, match="is being cut anew"), transaction.atomic():
        place(of, other)


def test_who_places_waits_for_who_begins_and_is_refused(of: Recutting) -> None:
    row = of.plan()
    work = factories.workload(of.stage.project, of.stage.ada, [of.stage.flavor])
    placed = meanwhile(
        lambda: recuts.move(row, RecutState.CORDONING, actor="x", actor_name="x", at=AT),
        lambda: place(of, work),
    )
    assert "is being cut anew" in str(placed.exception())


def test_work_that_runs_there_is_waited_for(of: Recutting) -> None:
    placement = on(of)
    of.plan()
    assert of.go_on() == "emptying"
    assert of.go_on(10 * MINUTE) == "emptying"
    of.stage.observe(of.stage.report(placement, PodPhase.SUCCEEDED, exit_code=0), at=of.at)
    of.stage.port.pods.clear()
    assert of.go_on(MINUTE) == "cutting"


def test_what_may_be_preempted_is_where_that_was_said(of: Recutting) -> None:
    placement = on(of)
    of.plan(mode=RecutMode.PREEMPT)
    assert of.go_on() == "emptying"
    of.go_on(MINUTE)
    placement.workload.refresh_from_db()
    assert placement.workload.state == State.PREEMPTING
    told = WorkloadEvent.objects.get(workload=placement.workload, after="PREEMPTING").message
    assert told == "the node n1 is cut anew, as oz planned"
    assert of.row.state == "emptying"


def test_what_may_not_be_preempted_is_waited_for_until_the_window_ends(of: Recutting) -> None:
    placement = on(of, preemptible=False)
    of.plan(mode=RecutMode.PREEMPT)
    of.go_on()
    assert of.go_on(59 * MINUTE) == "emptying"
    placement.workload.refresh_from_db()
    assert placement.workload.state == State.RUNNING
    assert of.go_on(MINUTE) == "opening"
    of.go_on(MINUTE)
    assert (of.row.state, of.there.cordoned, of.there.mig_config) == ("called-off", False, "")
    assert of.row.trouble == "it did not become empty in time: held by train"


def test_a_pod_of_somebody_else_is_waited_for(of: Recutting) -> None:
    of.stage.port.pods["notebook"] = stranger()
    of.stage.port.pods["other"] = stranger("other", node="n2")
    of.plan()
    of.go_on()
    assert of.go_on(SETTLE) == "emptying"
    of.stage.port.pods["notebook"] = replace(stranger(), phase=PodPhase.SUCCEEDED)
    assert of.go_on(MINUTE) == "cutting"


def test_a_device_that_comes_into_use_just_before_the_cut_is_not_touched(of: Recutting) -> None:
    of.plan()
    of.go_on()
    of.stage.port.fails("cut", Fault.CONFLICT, times=1)
    assert of.go_on(SETTLE) == "cutting"
    of.stage.port.pods["daemon"] = stranger("daemon")
    of.go_on(MINUTE)
    of.go_on(MINUTE)
    assert of.row.state == "called-off"
    assert of.row.trouble == (
        "a device came into use just before the cut: held by the pod lab/daemon"
    )
    assert (of.there.mig_config, of.there.cordoned) == ("", False)


@pytest.mark.parametrize("before", ["", "all-halves"])
def test_a_cut_that_fails_is_rolled_back_and_told(of: Recutting, before: str) -> None:
    assert of.stage.port.ways is not None
    if before:
        of.stage.port.ways[before] = [dict(cut) for cut in WHOLE]
        of.stage.port.node_becomes("n1", mig_config=before, mig_state="success")
        Node.objects.filter(name="n1").update(labels={"nvidia.com/mig.config": before})
    of.to_cutting()
    of.stage.port.says("n1", "failed", {}, {}, {}, {})  # what a failure leaves
    assert of.go_on(MINUTE) == "rolling-back"
    assert of.there.mig_config == (before or f"{of.row.config}-old")
    assert of.stage.port.ways[of.there.mig_config] == list(WHOLE)
    of.stage.port.says("n1", "success", *WHOLE)
    assert of.go_on(MINUTE) == "opening"
    of.watched()
    assert of.go_on(MINUTE) == "failed"
    assert (of.row.stuck, of.there.cordoned) == (False, False)
    assert of.row.trouble == "the MIG manager says failed"
    assert of.told()[-4:] == ["cutting", "rolling-back", "opening", "failed"]


def test_what_can_not_be_cut_back_stays_cordoned(
    of: Recutting, caplog: pytest.LogCaptureFixture
) -> None:
    of.to_cutting()
    of.stage.port.says("n1", "failed")
    of.go_on(MINUTE)
    of.stage.port.says("n1", "pending")
    of.go_on(MINUTE)
    of.stage.port.says("n1", "failed")
    assert of.go_on(MINUTE) == "failed"
    assert (of.row.stuck, of.there.cordoned) == (True, True)
    assert "node n1 stays cordoned: it could not be cut back either" in caplog.text


def test_slices_that_are_not_those_that_were_meant_are_rolled_back(of: Recutting) -> None:
    of.to_cutting()
    of.stage.port.says("n1", "success", *({"3g.40gb": 2},) * 3, *({},) * 5)
    assert of.go_on(MINUTE) == "checking"
    assert of.go_on(LIMIT - MINUTE) == "checking"
    assert of.go_on(MINUTE) == "rolling-back"
    assert of.row.trouble == "it has 6 x 3g.40gb, which is not what was asked for"


def test_a_manager_that_says_nothing_is_not_waited_for_forever(of: Recutting) -> None:
    of.to_cutting()
    assert of.go_on(LIMIT) == "rolling-back"
    assert of.row.trouble == "the MIG manager says nothing"


def test_what_was_said_of_the_cut_before_is_not_taken_for_this_one(of: Recutting) -> None:
    of.stage.port.node_becomes("n1", mig_state="success")
    of.to_cutting()
    assert (of.there.mig_state, of.go_on(MINUTE)) == ("", "cutting")


def test_a_node_that_is_being_cut_already_is_waited_for(of: Recutting) -> None:
    of.stage.port.node_becomes("n1", mig_state="pending")
    of.plan()
    assert of.go_on(SETTLE) == "planned"
    of.stage.port.says("n1", "success")
    assert of.go_on() == "emptying"
    of.stage.port.says("n1", "pending")
    assert of.go_on(SETTLE) == "emptying"


@pytest.mark.parametrize("gone", [True, False])
@pytest.mark.parametrize("state", ["emptying", "cutting"])
def test_a_node_that_goes_ends_it(of: Recutting, state: str, gone: bool) -> None:
    of.plan()
    of.go_on()
    if state == "cutting":
        of.go_on(SETTLE)
    assert of.row.state == state
    if gone:
        del of.stage.port.nodes["n1"]
    else:
        of.stage.port.nodes["n1"] = replace(of.there, uid="another")
    assert of.go_on(MINUTE) == "failed"
    assert of.row.trouble == "the node is gone, or is another machine now"


def test_a_cordon_of_somebody_else_is_theirs(of: Recutting) -> None:
    of.stage.port.node_becomes("n1", cordoned=True, schedulable=False)
    of.to_cutting()
    of.stage.port.says("n1", "success", *HALVES)
    of.go_on(MINUTE)
    of.watched()
    assert of.go_on(MINUTE) == "done"
    assert (of.there.cordoned, of.there.recut) == (True, "")


def test_a_cordon_that_somebody_takes_off_calls_it_off(of: Recutting) -> None:
    of.plan()
    of.go_on()
    of.stage.port.node_becomes("n1", cordoned=False, schedulable=True)
    of.go_on(SETTLE)
    of.go_on(MINUTE)
    assert of.row.state == "called-off"
    assert of.row.trouble == "somebody has taken the cordon off the node"
    assert (of.there.recut, of.there.mig_config) == ("", "")


def test_a_way_that_somebody_else_sets_is_left(of: Recutting) -> None:
    of.to_cutting()
    of.stage.port.node_becomes("n1", mig_config="by-hand", mig_state="pending")
    assert of.go_on(MINUTE) == "opening"
    assert of.there.cordoned, "it is being cut"
    of.stage.port.says("n1", "success", *WHOLE)
    of.go_on(MINUTE)
    of.watched()
    assert of.go_on(MINUTE) == "failed"
    assert of.row.trouble == "somebody else has the node cut, as by-hand"
    assert (of.there.mig_config, of.there.cordoned) == ("by-hand", False)


def test_without_a_config_map_nothing_begins(of: Recutting) -> None:
    of.stage.port.ways = None
    of.plan()
    of.go_on()
    of.go_on(MINUTE)
    assert of.row.state == "called-off"
    assert of.row.trouble == "There is no config map."
    assert not of.there.cordoned


@pytest.mark.parametrize("verb", ["read node", "cordon"])
def test_without_the_right_nothing_begins(of: Recutting, verb: str) -> None:
    of.stage.port.fails(verb, Fault.FORBIDDEN, times=1)
    of.plan()
    of.go_on()
    of.go_on(MINUTE)
    assert (of.row.state, of.row.trouble) == ("called-off", f"{verb}: forbidden")
    assert not of.there.cordoned


def test_a_cluster_that_stumbles_is_tried_again(of: Recutting) -> None:
    of.stage.port.fails("write config", Fault.SERVER, times=2)
    of.plan()
    assert [of.go_on(), of.go_on(), of.go_on()] == ["cordoning", "cordoning", "emptying"]


def test_a_window_that_went_by_unseen_is_not_made_up_for(of: Recutting) -> None:
    of.plan()
    assert of.go_on(HOUR) == "called-off"
    assert of.row.trouble == "its window went by"


def test_a_cluster_that_never_takes_the_way_is_given_up(of: Recutting) -> None:
    of.stage.port.fails("cut", Fault.INVALID)
    of.plan()
    of.go_on()
    assert of.go_on(SETTLE) == "cutting"
    of.go_on(LIMIT)
    of.go_on(MINUTE)
    assert (of.row.state, of.there.cordoned, of.there.mig_config) == ("called-off", False, "")


def test_without_a_way_back_nothing_begins(of: Recutting) -> None:
    of.stage.port.node_becomes("n1", mig_config="gone-by-now", mig_state="success")
    of.plan()
    of.go_on()
    of.go_on(MINUTE)
    assert of.row.state == "called-off"
    assert "there is no way back: the node is cut as gone-by-now" in of.row.trouble


def test_a_cluster_that_is_out_of_reach_is_left_for_later(of: Recutting) -> None:
    of.to_cutting()
    of.stage.port.fails("read node", Fault.UNREACHABLE)
    assert not loop.carry_on(port=of.stage.port, cluster=of.stage.cluster, at=lambda: of.at)
    assert of.row.state == "cutting"
