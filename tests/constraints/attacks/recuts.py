"""Attacks on recuts of nodes, and on what keeps them and placements apart."""

from clusters.models import Device
from scheduler.models import Placement, PlacementSpan, Recut, RecutState
from tests.constraints.attack import Attack
from tests.constraints.moves import Sql, Statement, change, copy, insert_like, update
from tests.constraints.rows import NOON, make


def _placed_on_a_node_that_is_cut() -> Statement:
    pod = make(Placement)
    make(Recut, node=pod.node, state=RecutState.EMPTYING)
    return insert_like(pod, rank=2, pod_name="the-second")


def _cut_while_a_device_is_held() -> Statement:
    held = make(PlacementSpan)
    device = Device.objects.get(pk=held.device.pk)
    row = make(Recut, node=device.node, state=RecutState.EMPTYING)
    return update(row, state="cutting")


ATTACKS = (
    Attack(
        "placement_not_while_recut",
        "work is placed on a node that is being cut anew",
        _placed_on_a_node_that_is_cut,
    ),
    Attack(
        "recut_of_none_held",
        "a node is cut while a device of it is held",
        _cut_while_a_device_is_held,
    ),
    Attack("recut_one_live_a_node", "a node has two live recuts", copy(Recut)),
    Attack("recut_state_known", "a recut is in no state", change(Recut, state="odd")),
    Attack("recut_mode_known", "a recut has no mode", change(Recut, mode="odd")),
    Attack("recut_outcome_known", "a recut ends in no way", change(Recut, outcome="odd")),
    Attack(
        "recut_ended_in_its_last_state",
        "a recut has ended and goes on",
        change(Recut, ended_at=NOON),
    ),
    Attack(
        "recut_ended_in_its_last_state",
        "a recut is done and has not ended",
        change(Recut, state="done"),
    ),
    Attack("recut_stuck_has_failed", "a recut is stuck and goes on", change(Recut, stuck=True)),
    Attack("recut_window", "a window ends as it begins", change(Recut, ends_at=Sql("starts_at"))),
)
