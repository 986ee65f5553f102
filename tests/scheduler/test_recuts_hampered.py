"""A recut into whose way somebody comes: by hand, by taking a right away, or with another cut."""

from datetime import timedelta
from typing import Any

import pytest

from clusters.models import Node
from clusters.port import ClusterError, Fault, MigConfigs, PodPhase
from scheduler.core.lifecycle import State
from scheduler.loop.recutting import recuts as loop
from scheduler.loop.recutting.steps import LIMIT, SETTLE
from scheduler.models import RecutMode
from scheduler.selectors import recuts as reading
from scheduler.services import recuts
from tests.factories import AT
from tests.scheduler.recutting import HALVES, HOUR, Recutting, recutting, stranger
from tests.scheduler.stage import Stage

MINUTE = timedelta(minutes=1)
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def of(stage: Stage) -> Recutting:
    return recutting(stage)


def test_a_node_that_somebody_opens_just_before_the_cut_is_not_cut(of: Recutting) -> None:
    of.plan()
    of.go_on()
    of.stage.port.fails("cut", Fault.CONFLICT, times=1)
    assert of.go_on(SETTLE) == "cutting"
    of.stage.port.node_becomes("n1", cordoned=False, schedulable=True)
    of.go_on(MINUTE)
    of.go_on(MINUTE)
    assert (of.row.state, of.there.mig_config) == ("called-off", "")
    assert of.row.trouble == "somebody has taken the cordon off the node"


def test_a_node_that_somebody_opens_is_cordoned_again_before_it_is_cut_back(
    of: Recutting,
) -> None:
    of.to_cutting()
    of.stage.port.node_becomes("n1", cordoned=False, schedulable=True, mig_state="failed")
    assert of.go_on(MINUTE) == "rolling-back"
    assert (of.there.cordoned, of.there.mig_config) == (True, of.row.config)
    of.go_on(SETTLE - MINUTE)
    assert of.there.mig_config == of.row.config, "who has not seen the cordon may bind a pod yet"
    of.go_on(MINUTE)
    assert of.there.mig_config == f"{of.row.config}-old"


def test_a_right_that_is_taken_away_while_it_empties_calls_it_off_and_is_told(
    of: Recutting,
) -> None:
    of.plan()
    of.go_on()
    of.stage.port.fails("read node", Fault.FORBIDDEN)
    assert of.go_on(MINUTE) == "emptying"
    assert of.row.trouble == "read node: forbidden"
    assert of.go_on(HOUR) == "opening"
    of.stage.port.heal()
    of.go_on(MINUTE)
    of.go_on(MINUTE)
    assert (of.row.state, of.row.stuck, of.there.cordoned) == ("called-off", False, False)


@pytest.mark.parametrize("state", ["cutting", "rolling-back", "opening"])
def test_a_right_that_is_taken_away_later_leaves_it_stuck_and_told(
    of: Recutting, state: str
) -> None:
    of.to_cutting()
    if state == "rolling-back":
        of.stage.port.says("n1", "failed")
        of.go_on(MINUTE)
    if state == "opening":
        of.stage.port.fails("uncordon", Fault.FORBIDDEN)
        of.stage.port.says("n1", "success", *HALVES)
        of.go_on(MINUTE)
    verb = "uncordon" if state == "opening" else "read node"
    of.stage.port.fails(verb, Fault.FORBIDDEN)
    assert of.go_on(MINUTE) == state
    assert f"{verb}: forbidden" in of.row.trouble
    of.watched()
    of.go_on(LIMIT)
    assert (of.row.state, of.row.stuck, of.there.cordoned) == ("failed", True, True)
    assert of.row.trouble.count(f"{verb}: forbidden") == 1
    assert reading.stuck_count() == 1


def test_what_stood_in_the_way_for_a_while_is_not_the_trouble_of_one_that_is_done(
    of: Recutting,
) -> None:
    of.to_cutting()
    of.stage.port.fails("read node", Fault.FORBIDDEN, times=1)
    of.go_on(MINUTE)
    assert of.row.trouble
    of.stage.port.says("n1", "success", *HALVES)
    of.go_on(MINUTE)
    of.watched()
    assert of.go_on(MINUTE) == "done"
    assert of.row.trouble == ""


def test_the_way_back_is_how_the_node_is_cut_when_it_begins(of: Recutting) -> None:
    sevenths = ({"1g.10gb": 7},) * 8
    of.plan(starts_at=AT + HOUR, ends_at=AT + 2 * HOUR)
    of.stage.port.says("n1", "", *sevenths)
    of.watched()
    of.at += HOUR
    of.go_on()
    assert of.go_on(SETTLE) == "cutting"
    of.stage.port.says("n1", "failed")
    of.go_on(MINUTE)
    assert of.stage.port.ways is not None
    assert of.stage.port.ways[of.there.mig_config] == list(sevenths)


def test_a_node_that_is_cut_so_by_its_time_is_left(of: Recutting) -> None:
    of.plan(starts_at=AT + HOUR, ends_at=AT + 2 * HOUR)
    of.stage.port.says("n1", "", *HALVES)
    of.watched()
    assert of.go_on(HOUR) == "called-off"
    assert of.row.trouble == "it is cut so already"
    assert not of.there.cordoned


def test_a_node_that_can_not_be_cut_so_by_its_time_is_left(of: Recutting) -> None:
    of.plan(starts_at=AT + HOUR, ends_at=AT + 2 * HOUR)
    Node.objects.filter(name="n1").update(labels={"nvidia.com/mig.strategy": "none"})
    assert of.go_on(HOUR) == "called-off"
    assert of.row.trouble == "The MIG strategy of n1 has to be mixed."


def test_what_is_said_of_the_cut_that_failed_is_not_taken_for_the_way_back(
    of: Recutting,
) -> None:
    of.to_cutting()
    assert of.go_on(LIMIT) == "rolling-back"
    of.stage.port.says("n1", "failed")  # late, of the cut
    assert of.go_on(MINUTE) == "rolling-back"
    of.stage.port.says("n1", "pending")
    of.go_on(MINUTE)
    of.stage.port.says("n1", "failed")
    assert of.go_on(MINUTE) == "failed"


def test_a_cut_has_its_time_from_when_it_was_said(of: Recutting) -> None:
    of.plan()
    of.go_on()
    of.stage.port.fails("cut", Fault.SERVER, times=1)
    assert of.go_on(SETTLE) == "cutting"
    of.go_on(LIMIT - MINUTE)
    assert of.there.mig_config == of.row.config
    of.stage.port.says("n1", "pending")
    assert of.go_on(LIMIT - MINUTE) == "cutting"
    assert of.go_on(MINUTE) == "rolling-back"


def test_a_cut_that_somebody_has_just_said_is_not_opened_onto(of: Recutting) -> None:
    of.to_cutting()
    of.stage.port.says("n1", "success")
    of.go_on(MINUTE)
    of.stage.port.node_becomes("n1", mig_config="by-hand")  # the manager's last word stays
    assert of.go_on(MINUTE) == "opening"
    assert of.go_on(MINUTE) == "opening"
    assert of.there.cordoned
    of.stage.port.says("n1", "pending")
    of.go_on(10 * MINUTE)
    assert of.there.cordoned
    of.stage.port.says("n1", "success")
    of.go_on(MINUTE)
    assert not of.there.cordoned


@pytest.mark.parametrize("other", ["hard", "foreign"])
def test_nobody_is_stopped_for_a_node_that_others_keep_in_use(of: Recutting, other: str) -> None:
    soft = of.stage.running("soft", gpus=4, preemptible=True).placements.get()
    assert soft.node.name == "n1"
    if other == "hard":
        hard = of.stage.running("hard", gpus=4, preemptible=False).placements.get()
        assert hard.node.name == "n1"
    else:
        of.stage.port.pods["notebook"] = stranger()
    of.plan(mode=RecutMode.PREEMPT)
    of.go_on()
    of.go_on(MINUTE)
    soft.workload.refresh_from_db()
    assert soft.workload.state == State.RUNNING
    if other == "hard":
        of.stage.observe(of.stage.report(hard, PodPhase.SUCCEEDED, exit_code=0), at=of.at)
    else:
        del of.stage.port.pods["notebook"]
    of.go_on(MINUTE)
    soft.workload.refresh_from_db()
    assert soft.workload.state == State.PREEMPTING


def test_one_that_is_called_off_and_ended_while_the_node_is_cordoned_leaves_it_open(
    of: Recutting,
) -> None:
    of.plan()

    def call_off() -> None:
        recuts.call_off(recut=of.row, actor="user:1", actor_name="oz", at=of.at)
        loop.carry_on(port=of.stage.port, cluster=of.stage.cluster, at=lambda: of.at)
        assert of.row.state == "called-off"

    of.stage.port.meanwhile("cordon", call_off)
    of.go_on()
    assert (of.there.cordoned, of.there.recut) == (False, "")


def stick(of: Recutting) -> None:
    of.to_cutting()
    of.stage.port.says("n1", "failed")
    of.go_on(MINUTE)
    of.go_on(LIMIT)
    of.watched()
    assert (of.row.stuck, of.there.cordoned, reading.stuck_count()) == (True, True, 1)


def test_a_later_cordon_of_a_node_that_was_stuck_is_an_ordinary_one(of: Recutting) -> None:
    stick(of)
    loop.forget_opened(at=of.at + HOUR)
    assert reading.stuck_nodes(cluster_id=of.stage.cluster.id) == ("n1",)
    of.stage.port.node_becomes("n1", cordoned=False, schedulable=True, recut="")
    of.watched()
    loop.forget_opened(at=of.at)
    assert of.row.stuck, "the inventory may not have seen the cordon yet"
    loop.forget_opened(at=of.at + HOUR)
    of.stage.port.node_becomes("n1", cordoned=True, schedulable=False)
    of.watched()
    assert reading.stuck_count() == 0


def test_a_recut_that_goes_well_opens_a_node_that_was_stuck(of: Recutting) -> None:
    stick(of)
    of.at += MINUTE
    of.stage.port.says("n1", "success")
    of.to_cutting()
    of.stage.port.says("n1", "success", *HALVES)
    of.go_on(MINUTE)
    of.watched()
    assert of.go_on(MINUTE) == "done"
    assert (of.there.cordoned, of.there.recut) == (False, "")
    assert reading.stuck_count() == 0


def test_one_that_is_called_off_leaves_a_node_that_was_stuck_cordoned(of: Recutting) -> None:
    stick(of)
    of.at += MINUTE
    of.stage.port.says("n1", "success")
    of.plan()
    of.go_on()
    recuts.call_off(recut=of.row, actor="user:1", actor_name="oz", at=of.at)
    assert of.go_on(MINUTE) == "called-off"
    assert (of.there.cordoned, reading.stuck_count()) == (True, 1)


def test_ways_that_somebody_takes_out_of_the_config_map_are_told_anew_before_the_cut(
    of: Recutting,
) -> None:
    of.plan()
    of.go_on()
    assert of.stage.port.ways is not None
    of.stage.port.ways.clear()
    assert of.go_on(SETTLE) == "cutting"
    assert of.stage.port.ways.keys() == {of.row.config, f"{of.row.config}-old"}
    of.go_on(SETTLE - MINUTE)
    assert of.there.mig_config == "", "the manager may not see the config map yet"
    of.go_on(MINUTE)
    assert of.there.mig_config == of.row.config


def test_it_is_not_cut_once_the_way_back_is_gone(of: Recutting) -> None:
    assert of.stage.port.ways is not None
    of.stage.port.ways["custom"] = [{}] * 8
    of.stage.port.node_becomes("n1", mig_config="custom", mig_state="success")
    of.watched()
    of.plan()
    assert of.go_on() == "emptying"
    del of.stage.port.ways["custom"]
    of.go_on(SETTLE)
    of.go_on(MINUTE)
    assert (of.row.state, of.there.cordoned, of.there.mig_config) == (
        "called-off",
        False,
        "custom",
    )
    assert "there is no way back: the node is cut as custom" in of.row.trouble


def test_a_way_whose_answer_was_lost_is_waited_for_as_one_that_was_told(
    of: Recutting, monkeypatch: pytest.MonkeyPatch
) -> None:
    of.plan()
    of.go_on()
    port = of.stage.port
    assert port.ways is not None
    port.ways.clear()
    write = port.write_mig_config
    asked: list[str] = []

    def loses(**said: Any) -> MigConfigs:  # Any: as `write`
        written = write(**said)
        asked.append(said["config"])
        if len(asked) == 2:
            raise ClusterError(Fault.UNREACHABLE, "the answer was lost")
        return written

    monkeypatch.setattr(port, "write_mig_config", loses)
    assert of.go_on(SETTLE) == "cutting"
    of.go_on(SETTLE - MINUTE)
    assert of.there.mig_config == "", "the manager may not see the config map yet"
    of.go_on(MINUTE)
    assert of.there.mig_config == of.row.config


def test_a_pod_that_comes_while_the_ways_are_told_is_not_cut_under(
    of: Recutting, monkeypatch: pytest.MonkeyPatch
) -> None:
    of.plan()
    of.go_on()
    port = of.stage.port
    write = port.write_mig_config

    def comes(**said: Any) -> MigConfigs:  # Any: as `write`
        port.pods["daemon"] = stranger("daemon")
        return write(**said)

    monkeypatch.setattr(port, "write_mig_config", comes)
    of.go_on(SETTLE)
    assert of.there.mig_config == ""
    assert "lab/daemon" in of.row.trouble


@pytest.mark.parametrize("lost", ["config map", "right"])
def test_what_is_lost_before_the_cut_calls_it_off_at_once(of: Recutting, lost: str) -> None:
    of.plan()
    of.go_on()
    if lost == "right":
        of.stage.port.fails("write config", Fault.FORBIDDEN)
    else:
        of.stage.port.ways = None
    assert of.go_on(SETTLE) == "opening"
    of.go_on(MINUTE)
    of.go_on(MINUTE)
    assert (of.row.state, of.row.stuck, of.there.cordoned) == ("called-off", False, False)
