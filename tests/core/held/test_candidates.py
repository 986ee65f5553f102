"""Who may be evicted, kept from one snapshot to the next, is who may be in each alone."""

from dataclasses import replace
from random import Random

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scheduler.core.held.candidates import ORDER, Candidates
from scheduler.core.held.victims import Held, Order
from scheduler.core.memory import Memory
from scheduler.core.snapshot import HeldView, QueueView, Snapshot
from scheduler.core.units import ClusterId, FlavorId, NodeId
from tests.core.build import AT, node, pods, queue, runs, snapshot
from tests.core.drawn.fleets import snapshots
from tests.core.test_memory import replaced

type Told = tuple[
    Order, tuple[HeldView, ...], dict[FlavorId, int], dict[NodeId, tuple[HeldView, ...]]
]


def told(held: Held) -> Told:
    return held.order, held.placements, held.amounts, held.on


def lists(candidates: Candidates, of: Snapshot) -> list[list[Told]]:
    """All that is told of those of a snapshot."""
    projects = [queue.project for queue in of.queues]
    nodes = [node.id for cluster in of.clusters for node in cluster.nodes]
    found = [
        candidates.all(),
        *(candidates.own(pending=pending) for pending in of.pending),
        *(candidates.on_node(node) for node in nodes),
        *(candidates.with_flavor(flavor.id, projects) for flavor in of.flavors),
        *(candidates.least_lost(cluster=cluster, model=model) for cluster, model in places(of)),
    ]
    return [[told(held) for held in listed] for listed in found]


def places(of: Snapshot) -> list[tuple[ClusterId, str]]:
    models = {"", *(flavor.model for flavor in of.flavors)}
    return [(cluster.id, model) for cluster in of.clusters for model in sorted(models)]


def patient(of: Snapshot, pick: Random) -> Snapshot:
    """Some projects' work is protected for its first minute, or hour; nobody's weight is 0."""

    def other(queue: QueueView) -> QueueView:
        return replace(queue, min_run_time_s=pick.choice((0, 60, 3600)), weight=1)

    return replace(of, queues=tuple(map(other, of.queues)))


def take(candidates: Candidates, pick: Random) -> None:
    """As a plan does: some go, and pods of some."""
    for held in list(candidates.all()):
        if pick.random() < 0.3:
            candidates.forget(held)
            if held.whole is not None:
                held.whole.lose(held)


@settings(deadline=None)
@given(snapshots(12), st.integers(0, 2**32), st.integers(2, 6))
def test_they_are_those_of_each_snapshot_alone(of: Snapshot, seed: int, count: int) -> None:
    pick, memory = Random(seed), Memory()
    of = patient(of, pick)
    for _ in range(count):
        if not memory.look(of):
            kept = memory.candidates(of)
            assert lists(kept, of) == lists(Candidates(of), of)
            take(kept, pick)
        of = replaced(of, pick)
        of = pick.choice((of, of, of, patient(of, pick), replace(of, at=of.at - 1000)))


@settings(deadline=None)
@given(snapshots(12), st.integers(0, 2**32))
def test_in_any_order_they_are_the_same(of: Snapshot, seed: int) -> None:
    candidates = Candidates(of)
    take(candidates, Random(seed))
    projects = [queue.project for queue in of.queues]
    for pending in of.pending:
        lower = list(candidates.any_own(pending=pending))
        assert sorted(lower, key=ORDER) == list(candidates.own(pending=pending))
    for flavor in of.flavors:
        some = list(candidates.any_with_flavor(flavor.id, projects))
        assert sorted(some, key=ORDER) == list(candidates.with_flavor(flavor.id, projects))


@settings(deadline=None)
@given(snapshots(12), st.integers(0, 2**32), st.integers(0, 7200))
def test_who_loses_least_comes_first_whatever_time_has_gone_by(
    of: Snapshot, seed: int, later_s: int
) -> None:
    memory, models = Memory(), {flavor.id: flavor.model for flavor in of.flavors}
    assume(not memory.look(of))
    memory.candidates(of)  # which are kept, with their order
    of = replace(of, at=of.at + later_s)
    memory.look(of)
    candidates = memory.candidates(of)
    take(candidates, Random(seed))
    whole = [held for held in candidates.all() if held.is_whole]
    for cluster, model in places(of):
        found = list(candidates.least_lost(cluster=cluster, model=model))
        there = [
            held
            for held in whole
            if held.holding.cluster == cluster
            and (not model or model in {models.get(p.flavor) for p in held.holding.placements})
        ]
        assert [h.order[2] for h in found] == sorted(h.order[2] for h in there)
        assert {h.id for h in found} == {h.id for h in there}


def test_they_are_kept() -> None:
    of = snapshot(
        nodes=[node("n1", gpus=1)],
        queues=[queue("a", h100=8)],
        holding=[runs("w", "a", "n1/0")],
    )
    memory, seen = Memory(), []
    for at in (AT, AT + 1, AT):
        now = replace(of, at=at)
        assert memory.look(now) == ()
        seen.append(memory.candidates(now))
    first, second, third = seen
    assert first is second
    assert second is not third  # it is earlier than before


def test_where_somebody_was_told_to_go_since_they_are_made_anew() -> None:
    of = snapshot(
        nodes=[node("n1", gpus=1)],
        queues=[queue("a", h100=8)],
        holding=[runs("w", "a", "n1/0")],
    )
    memory = Memory()
    for _ in range(2):
        assert memory.look(of) == ()
        leaving = tuple(replace(held, releasing=True) for held in of.holding)
        assert memory.candidates(replace(of, holding=leaving)).none
        assert memory.look(of) == ()
        assert not memory.candidates(of).none


ELASTIC = runs("w", "a", "n1/0", "n1/1", "n1/2", since_s=10, of=pods(3, least=1))


def test_pods_that_one_plan_takes_are_there_for_the_next() -> None:
    of = snapshot(nodes=[node("n1", gpus=3)], queues=[queue("a", h100=8)], holding=[ELASTIC])
    memory = Memory()
    for _ in range(2):
        assert memory.look(of) == ()
        kept = memory.candidates(of)
        *single, whole = kept.all()
        assert [len(held.placements) for held in (*single, whole)] == [1, 1, 3]
        whole.lose(single[0])
        kept.forget(single[0])


def test_who_has_lost_a_pod_is_as_harmful_as_before() -> None:
    candidates = Candidates(snapshot(queues=[queue("a", h100=8)], holding=[ELASTIC]))
    *single, whole = candidates.all()
    order = whole.order
    whole.lose(single[0])
    whole.settle(AT + 1)
    whole.settle(AT)
    assert (whole.order, len(whole.placements)) == (order, 2)
