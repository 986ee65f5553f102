"""What is kept of who holds, and of what is asked for, is what each snapshot alone says."""

from collections.abc import Collection
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.demand import Demand
from scheduler.core.held.elastic import gives_back
from scheduler.core.held.holders import Holders
from scheduler.core.memory import Memory
from scheduler.core.quota.cohorts import FLEET
from scheduler.core.quota.quota import Book
from scheduler.core.snapshot import HoldingView, Snapshot
from scheduler.core.sweep.tree import Quotas
from scheduler.core.units import FlavorId, ProjectId
from tests.core.build import node, pods, queue, runs, snapshot
from tests.core.drawn.fleets import snapshots
from tests.core.test_memory import replaced


def told(holders: Holders) -> list[object]:
    def ids(some: Collection[HoldingView]) -> list[str]:
        return sorted(held.id for held in some)

    few = [ids(holders.giving), ids(holders.elastic), ids(holders.moving)]
    return [*few, evictable(holders)]


def evictable(holders: Holders) -> dict[tuple[str, str, int], int]:
    counts = zip(holders.groups, holders.counts, strict=True)
    return {group: count for group, count in counts if count}


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
    assert evictable(holders) == {("a", "h100", 5): 2}
    holders.follow(gone=[held], come=())
    assert not evictable(holders)
    assert not holders.elastic


def test_a_pod_that_may_go_by_itself_or_with_its_workload_counts_twice() -> None:
    held = runs("w", "a", "n1/0", "n1/1", "n1/2", of=pods(3, least=1))
    assert evictable(Holders([held])) == {("a", "h100", 0): 5}


def test_devices_are_counted_by_priority_and_pods_without_any_as_one() -> None:
    low, high = runs("low", "a", "n1/0", "n1/1"), runs("high", "a", "n1/2", priority=7)
    holders = Holders([low, high, runs("cores", "a", "n1", flavor="cpu")])
    assert evictable(holders) == {("a", "h100", 0): 2, ("a", "h100", 7): 1, ("a", "cpu", 0): 1}
    holders.follow(gone=[low], come=())
    assert evictable(holders) == {("a", "h100", 7): 1, ("a", "cpu", 0): 1}


def test_groups_of_whom_nobody_is_left_do_not_pile_up() -> None:
    memory, most = Memory(), 0
    for nth in range(4):
        held = [
            runs(f"w{nth}-{i}", "a", "n1", flavor="cpu", priority=600 * nth + i)
            for i in range(600)
        ]
        of = snapshot(nodes=[node("n1", gpus=1, cores=1000)], holding=held)
        assert memory.look(of) == ()
        holders = memory.holders(of)
        most = max(most, len(holders.groups))
        assert evictable(holders) == evictable(Holders(held))
    assert 1200 <= most <= 1800


def test_a_tree_tells_the_groups_of_whom_it_is_asked_about() -> None:
    """Of who is in it, of flavors that are there, and anew where they are others than before."""
    of = snapshot(nodes=[node("n1", gpus=4)], queues=[queue("a", h100=2), queue("b", h100=2)])
    book = Book(queues=of.queues, flavors=of.flavors)
    quotas, number = Quotas(of.flavors, book), book.cohorts.number
    row = [flavor.id for flavor in of.flavors].index(FlavorId("h100"))

    def told(holders: Holders) -> list[list[int]]:
        return sorted(quotas.groups(holders).tolist())

    first, gone = runs("w", "a", "n1/0", "n1/1", priority=3), runs("x", "none", "n1/2")
    holders = Holders([first, gone, runs("y", "a", "n1/3", flavor="of no quota")])
    a, b = number[first.project], number[ProjectId("b")]
    assert told(holders) == sorted([[a, row, 3, 2], [FLEET, row, 0, 1]])
    assert told(Holders([runs("z", "b", "n1/3", priority=9)])) == [[b, row, 9, 1]]
    holders.follow(gone=[gone], come=[runs("z", "b", "n1/3"), runs("v", "a", "n1/2", priority=3)])
    assert told(holders) == sorted([[a, row, 3, 3], [b, row, 0, 1]])


def test_what_is_asked_for_follows_what_comes_and_goes() -> None:
    held = runs("w", "a", "n1/0", of=pods(2, flavors="h100 a30"))
    of = snapshot(nodes=[node("n1", gpus=1)], queues=[queue("a", h100=1)], holding=[held])
    demand = Demand(of)
    demand.follow(gone=(), come=of.holding)
    assert demand.counts == {("h100", "a30"): 4}
    demand.follow(gone=of.holding, come=())
    assert demand.counts == {("h100", "a30"): 2}
