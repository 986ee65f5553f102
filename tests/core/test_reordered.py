"""What it changes that work queues as another submission than its own, and what not (ADR 0053)."""

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.policy import Policy
from scheduler.core.snapshot import PendingView, Snapshot
from scheduler.core.submitted import TurnView
from scheduler.core.units import WorkloadId
from tests.bench.fleet import fleet
from tests.core.build import AT, Outcome, job, node, pods, queue, runs, snapshot
from tests.core.drawn.fleets import shuffled, snapshots
from tests.core.drawn.reordered import reordered
from tests.core.sweep.test_sweep import agree


def as_if(waiting: PendingView, at: int, of: str) -> PendingView:
    return replace(waiting, turn=TurnView(at, WorkloadId(of)))


@settings(deadline=None)
@given(snapshots(12), st.integers(0, 2**32))
def test_the_sweep_orders_as_by_hand_and_whatever_the_order_of_the_input(
    of: Snapshot, seed: int
) -> None:
    of = reordered(Random(seed), of)
    assert agree(of) == agree(shuffled(of, seed))
    agree(of, Policy(max_admits=3, max_preemptors=1))


def test_a_large_fleet_is_ordered_as_by_hand() -> None:
    of = reordered(Random(1), fleet(pending=1500, nodes=60, queues=40))
    assert len(agree(of, Policy(max_admits=200)).admits) >= 50


def test_two_in_one_turn_go_by_their_own_ids_whatever_the_order_of_the_input() -> None:
    same = [as_if(job(name), 3, "x") for name in ("c", "b", "a")]
    given = snapshot(nodes=[node("n1", 1)], queues=[queue("a", h100=8)], pending=same)
    for seed in range(4):
        assert Outcome(agree(shuffled(given, seed))).started() == ["a"]


def test_to_other_projects_it_is_as_if_nobody_had_reordered_anything() -> None:
    """b's work comes between the turns of a's, whoever of a has which."""
    waiting = [
        job("a1", submitted_at=1),
        job("b1", "b", submitted_at=2),
        job("a2", submitted_at=3),
    ]
    both = [queue("a", h100=8), queue("b", h100=8)]
    exchanged = [as_if(waiting[0], 3, "a2"), waiting[1], as_if(waiting[2], 1, "a1")]
    for pending, starts in ((waiting, ["a1", "b1"]), (exchanged, ["a2", "b1"])):
        given = snapshot(nodes=[node("n1", 2)], queues=both, pending=pending)
        assert Outcome(agree(given)).started() == starts


def test_room_is_kept_for_who_has_waited_long_itself() -> None:
    """In the turn of older work is nobody older."""
    given = snapshot(
        nodes=[node("n1", 4)],
        queues=[queue("a", h100=8)],
        holding=[runs("r", "a", "n1/0", limit_s=1000)],
        pending=[
            as_if(job("old"), AT - 100, "gang"),
            as_if(job("gang", "a", pods(gpus=4), submitted_at=AT - 100), 0, "old"),
        ],
    )
    made = Outcome(agree(given, Policy(guard_s=500)))
    assert made.started() == ["old"]
    of_itself = replace(given.pending[1], submitted_at=0)
    waits = replace(given, pending=(given.pending[0], of_itself))
    assert Outcome(agree(waits, Policy(guard_s=500))).started() == []
