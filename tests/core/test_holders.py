"""What is kept of who holds, and of what is asked for, is what each snapshot alone says."""

from collections.abc import Collection
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.demand import Demand
from scheduler.core.elastic import gives_back
from scheduler.core.holders import Holders
from scheduler.core.memory import Memory
from scheduler.core.snapshot import HoldingView, Snapshot
from tests.core.build import node, pods, queue, runs, snapshot
from tests.core.fleets import snapshots
from tests.core.test_memory import replaced


def told(holders: Holders) -> list[object]:
    def ids(some: Collection[HoldingView]) -> list[str]:
        return sorted(held.id for held in some)

    few = [ids(holders.giving), ids(holders.elastic), ids(holders.moving)]
    return [*few, dict(holders.evictable)]


@settings(deadline=None)
@given(snapshots(12), st.integers(0, 2**32), st.integers(2, 6))
def test_they_are_those_of_each_snapshot_alone(of: Snapshot, seed: int, count: int) -> None:
    pick, memory = Random(seed), Memory()
    for _ in range(count):
        found = memory.look(of)
        if not found:
            holders = memory.holders(of)
            assert told(holders) == told(Holders(of.holding))
            assert {h.id for h in holders.giving} == {h.id for h in of.holding if gives_back(h)}
            draft = memory.draft("now", snapshot=of, holding=of.holding)
            alone = Memory().draft("now", snapshot=of, holding=of.holding)
            for flavor in of.flavors:
                assert draft.slices.mix(flavor) == alone.slices.mix(flavor)
        of = replaced(of, pick)


def test_who_may_give_up_pods_alone_counts_for_those() -> None:
    of = pods(3, least=1)
    held = runs("w", "a", "n1/0", "n1/1", "n1/2", preemptible=False, priority=5, of=of)
    holders = Holders([held])
    assert [each.id for each in holders.elastic] == ["w"]
    assert holders.evictable == {("a", "h100", 5): 2}
    holders.follow(gone=[held], come=())
    assert not holders.evictable
    assert not holders.elastic


def test_a_pod_that_may_go_by_itself_or_with_its_workload_counts_twice() -> None:
    held = runs("w", "a", "n1/0", "n1/1", "n1/2", of=pods(3, least=1))
    assert Holders([held]).evictable == {("a", "h100", 0): 5}


def test_devices_are_counted_by_priority_and_pods_without_any_as_one() -> None:
    low, high = runs("low", "a", "n1/0", "n1/1"), runs("high", "a", "n1/2", priority=7)
    holders = Holders([low, high, runs("cores", "a", "n1", flavor="cpu")])
    assert holders.evictable == {("a", "h100", 0): 2, ("a", "h100", 7): 1, ("a", "cpu", 0): 1}
    holders.follow(gone=[low], come=())
    assert holders.evictable == {("a", "h100", 7): 1, ("a", "cpu", 0): 1}


def test_what_is_asked_for_follows_what_comes_and_goes() -> None:
    held = runs("w", "a", "n1/0", of=pods(2, flavors="h100 a30"))
    of = snapshot(nodes=[node("n1", gpus=1)], queues=[queue("a", h100=1)], holding=[held])
    demand = Demand(of)
    demand.follow(gone=(), come=of.holding)
    assert demand.counts == {("h100", "a30"): 4}
    demand.follow(gone=of.holding, come=())
    assert demand.counts == {("h100", "a30"): 2}
