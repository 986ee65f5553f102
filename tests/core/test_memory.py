"""A plan with a memory of those before it is the plan made from nothing, whatever has changed."""

import gc
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core import cycle
from scheduler.core.admitting.order import place_in_queue
from scheduler.core.collection import no_collection
from scheduler.core.cycle import plan
from scheduler.core.faults import faults
from scheduler.core.fleet.world import World
from scheduler.core.memory import Memory
from scheduler.core.policy import Policy
from scheduler.core.quota.quota import Book
from scheduler.core.since import Since
from scheduler.core.snapshot import (
    FlavorKind,
    FlavorView,
    HeldView,
    HoldingView,
    NodeView,
    PendingView,
    Placing,
    QueueView,
    Snapshot,
)
from scheduler.core.sweep import state as s
from scheduler.core.sweep.backlog import Backlog
from scheduler.core.sweep.hardware import hardware
from scheduler.core.sweep.state import Unfit
from tests.bench.fleet import fleet
from tests.bench.scale import later, running
from tests.core.build import FLAVORS, job, node, pods, queue, runs, snapshot
from tests.core.corrupt import corrupted
from tests.core.drawn.accepted import accepting, closed
from tests.core.drawn.fleets import shuffled, snapshots
from tests.core.drawn.rated import rated
from tests.core.drawn.reordered import reordered

ALL = Policy(max_admits=10**9)


def after(of: Snapshot, pick: Random) -> Snapshot:
    """A snapshot that shares most of its objects with `of`, sound or not."""
    match pick.randrange(8):
        case 0:
            return running(of, plan(of, ALL))
        case 1:
            return shuffled(of, pick.randrange(1 << 30))
        case 2:
            return replaced(of, pick)
        case 3:
            return ruled(of, pick)
        case 4:
            return reordered(pick, of)
        case 5:
            return closed(pick, accepting(pick, of))
        case 6:
            return rated(pick, of)
        case _:
            return corrupted(of, pick, pick.randint(1, 2))


def replaced(of: Snapshot, pick: Random) -> Snapshot:
    """Some of what waits and runs has gone, and some of it is there again as another object; nodes
    have become sick, or well, or smaller."""

    def other[T: (PendingView, HoldingView)](each: T) -> list[T]:
        return pick.choice(([], [each], [each], [replace(each)]))

    def changed(node: NodeView) -> NodeView:
        cpu_milli = pick.choice((node.cpu_milli, node.cpu_milli, 4000))
        devices = tuple(replace(d, usable=pick.random() < 0.8) for d in node.devices)
        devices = pick.choice((node.devices, node.devices, devices))
        usable = pick.random() < 0.7
        return replace(node, usable=usable, cpu_milli=cpu_milli, devices=devices)

    return replace(
        of,
        at=of.at + pick.randrange(100),
        pending=tuple(each for p in of.pending for each in other(p)),
        holding=tuple(each for h in of.holding for each in other(h)),
        clusters=tuple(
            replace(c, nodes=tuple(pick.choice((n, changed(n))) for n in c.nodes))
            for c in of.clusters
        ),
    )


def ruled(of: Snapshot, pick: Random) -> Snapshot:
    """The same work and nodes under other quotas, tenants, flavors, or with a cluster shut."""

    def other(queue: QueueView) -> QueueView:
        quotas = tuple(
            replace(quota, nominal_milli=quota.nominal_milli * pick.choice((0, 1, 1, 2)))
            for quota in queue.quotas
        )
        cohort = pick.choice((None, queue.cohort, *(cohort.id for cohort in of.cohorts)))
        return replace(
            queue, quotas=quotas, cohort=cohort, held_by=("a",) if pick.random() < 0.2 else ()
        )

    def placed(flavor: FlavorView) -> FlavorView:
        can = flavor.kind in (FlavorKind.WHOLE, FlavorKind.CPU)
        return replace(flavor, placing=pick.choice(tuple(Placing))) if can else flavor

    match pick.randrange(3):
        case 0:
            return replace(of, queues=tuple(pick.choice((q, other(q))) for q in of.queues))
        case 1:
            return replace(of, flavors=tuple(map(placed, of.flavors)))
        case _:
            shut = tuple(replace(c, usable=pick.random() < 0.7) for c in of.clusters)
            return replace(of, clusters=shut)


POLICIES = ALL, ALL, Policy(max_admits=3, preemption=False), Policy(guard_s=0, most_kept=2)


@settings(deadline=None)
@given(snapshots(12), st.integers(0, 2**32), st.integers(2, 6), st.sampled_from((1, 10**9)))
def test_it_plans_one_snapshot_after_another_as_each_alone(
    of: Snapshot, seed: int, count: int, least_swept: int
) -> None:
    pick, memory, seen = Random(seed), Memory(), [of]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cycle, "LEAST_SWEPT", least_swept)
        for _ in range(count):
            of, policy = (
                pick.choice((seen[-1], seen[-1], pick.choice(seen))),
                pick.choice(POLICIES),
            )
            assert plan(of, policy, memory) == plan(of, policy)
            seen.append(after(of, pick))


def test_it_goes_on_with_a_large_fleet() -> None:
    of, memory = fleet(pending=1500, nodes=60, queues=40), Memory()
    for seed in range(1, 6):
        made = plan(of, ALL, memory)
        assert made == plan(of, ALL)
        assert not made.faults
        of = later(running(of, made), 40, seed=seed)


@pytest.mark.parametrize("least_swept", [1, 10**9], ids=["swept", "by hand"])
def test_a_plan_leaves_no_rings_to_be_looked_for(
    least_swept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycle, "LEAST_SWEPT", least_swept)
    of, memory = fleet(pending=300, nodes=20, queues=10), Memory()
    plan(of, ALL, memory)
    with no_collection():
        gc.collect()
        plan(running(of, plan(of, ALL, memory)), ALL, memory)
        assert gc.collect() == 0


@pytest.mark.parametrize("least_swept", [1, 10**9], ids=["swept", "by hand"])
def test_what_is_granted_counts_from_the_next_plan_on(
    least_swept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycle, "LEAST_SWEPT", least_swept)
    memory = Memory()
    none = snapshot(nodes=[node("n1", gpus=2)], queues=[queue("a", h100=0)], pending=[W, X])
    for gpus, started in ((0, 0), (1, 1), (2, 2), (0, 0)):
        of = replace(none, queues=(queue("a", h100=gpus),))
        assert len(plan(of, ALL, memory).admits) == started


@pytest.mark.parametrize("least_swept", [1, 10**9], ids=["swept", "by hand"])
def test_flavors_are_looked_at_again_when_they_have_changed(
    least_swept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycle, "LEAST_SWEPT", least_swept)
    nodes = [node("n1", gpus=1), node("n2", gpus=3)]
    well, memory = snapshot(nodes=nodes, queues=[queue("a", h100=4)], pending=[W]), Memory()
    for placing, where in ((Placing.PACK, "n1"), (Placing.SPREAD, "n2"), (Placing.PACK, "n1")):
        flavors = tuple(replace(f, placing=placing) if f.id == "h100" else f for f in FLAVORS)
        (admit,) = plan(replace(well, flavors=flavors), ALL, memory).admits
        assert admit.places[0].node == where


def test_a_node_that_nobody_touched_is_looked_at_when_it_has_changed() -> None:
    memory, nodes = Memory(), [node("n1", gpus=1), node("n2", gpus=2)]
    well = snapshot(nodes=nodes, queues=[queue("a", h100=4)], pending=[W])
    (admit,) = plan(well, ALL, memory).admits
    assert admit.places[0].node == "n1"
    for usable in (False, True):
        second = replace(well.clusters[0].nodes[1], usable=usable)
        cluster = replace(well.clusters[0], nodes=(well.clusters[0].nodes[0], second))
        large = replace(well, clusters=(cluster,), pending=(job("y", "a", pods(gpus=2)),))
        assert len(plan(large, ALL, memory).admits) == usable


def test_what_nobody_asked_for_before_and_other_hardware_are_looked_at() -> None:
    memory, queues = Memory(), [queue("a", h100=4)]
    small, large = job("small", "a", pods()), job("large", "a", pods(gpus=2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cycle, "LEAST_SWEPT", 1)
        for gpus, pending in (
            (2, [small]),
            (2, [small, large]),
            (1, [large]),
            (1, [large, small]),
            (2, [large]),
        ):
            of = snapshot(nodes=[node("n1", gpus=gpus)], queues=queues, pending=pending)
            assert plan(of, ALL, memory) == plan(of, ALL)


@settings(deadline=None)
@given(snapshots(12), st.integers(0, 2**32))
def test_it_tells_the_faults_of_each(of: Snapshot, seed: int) -> None:
    """Before and after one that is sound, most of it the same objects."""
    pick, since = Random(seed), Since()
    for _ in range(4):
        for each in (of, corrupted(of, pick, 1), replaced(of, pick)):
            assert since.faults(each) == faults(each)


@settings(deadline=None)
@given(snapshots(12), st.integers(0, 2**32))
def test_a_twin_of_a_world_is_as_that_was_and_goes_its_own_way(of: Snapshot, seed: int) -> None:
    def made(holding: Sequence[HoldingView]) -> World:
        world = World(of)
        assert world.follow(snapshot=of, holding=holding)
        return world

    def state(world: World) -> tuple[object, ...]:
        pools = world.index().pools()
        rooms = {id: (r.cpu_milli, r.taken, r.rank) for id, r in world.rooms().items()}
        over = {room.node.id for room in world.overdrawn()}
        return pools, rooms, world.book().usage(), over

    def let_go(world: World, placements: Iterable[HeldView]) -> None:
        world.index()
        world.index(world.move((False, placement) for placement in placements))

    pick, first = Random(seed), made(of.holding)
    held = [p for holding in of.holding for p in holding.placements]
    let_go(first, (p for p in held if pick.random() < 0.5))
    if pick.random() < 0.5:  # its index does not know yet who has gone
        assert first.follow(snapshot=of, holding=of.holding[::2])
        first.held()
    twin, some = first.twin(), tuple(h for h in of.holding if pick.random() < 0.7)
    moved = state(first)
    assert twin.follow(snapshot=of, holding=some)
    assert state(twin) == state(made(some))
    let_go(twin, (p for holding in some for p in holding.placements))
    assert state(first) == moved


@settings(deadline=None)
@given(snapshots(12), st.integers(0, 2**32))
def test_what_is_free_is_in_the_tables_that_are_kept_as_in_those_made_from_nothing(
    of: Snapshot, seed: int
) -> None:
    def told(memory: Memory) -> list[object]:
        draft, clusters = memory.draft("now", snapshot=of, holding=of.holding), ids
        for held, placement in moved if draft.rooms else ():
            draft.remove(project=held.project, holder=placement)
        made, fleet = hardware(snapshot=of, draft=draft, clusters=clusters, with_cores=True)
        ranges = made.pools[:, (s.FIRST, s.SIZE)].tolist()
        entries = [made.entries[first : first + size].tolist() for first, size in ranges]
        tables = [table.tolist() for table in (made.nodes, made.devices, made.wholes, made.pools)]
        cut = [draft.world.cut_on_demand(model) for model in models]
        return [entries, tables, fleet.nodes, fleet.pools, cut]

    pick, memory, ids = Random(seed), Memory(), [c.id for c in of.clusters if c.usable]
    models = sorted({flavor.model for flavor in of.flavors})
    for _ in range(4):
        moved = [(h, p) for h in of.holding for p in h.placements if pick.random() < 0.3]
        assert told(memory) == told(Memory())
        of = replaced(of, pick)


W, X = job("w", "a", pods()), job("x", "a", pods())
R = runs("r", "a", "n1/0")


@pytest.mark.parametrize(
    ("pending", "holding"),
    [
        pytest.param((W, X, W), (R,), id="the same object"),
        pytest.param((W, replace(X, id=W.id)), (R,), id="another of one id"),
        pytest.param((W,), (R, replace(R)), id="what runs"),
        pytest.param((W, replace(X, id=R.id)), (R,), id="what waits and runs"),
        pytest.param((W,), (R, replace(R, id=X.id)), id="a placement of two"),
    ],
)
def test_what_is_there_twice_is_found_beside_what_was_there_before(
    pending: tuple[PendingView, ...], holding: tuple[HoldingView, ...]
) -> None:
    well = snapshot(nodes=[node("n1", gpus=2)], queues=[queue("a", h100=2)], pending=[W, X])
    since, wrong = Since(), replace(well, pending=pending, holding=holding)
    for of in (well, replace(well, pending=pending[:1], holding=holding[:1])):
        assert since.faults(of) == ()
    assert since.faults(wrong) == faults(wrong) != ()
    assert since.faults(well) == ()


IDS = [f"{number:03b}" for number in range(8)] + ["", "0", "00000001", "zz"]


@given(st.lists(st.lists(st.sampled_from(IDS), unique=True), max_size=8))
def test_a_backlog_stands_in_line_whoever_comes_and_goes(lists: list[list[str]]) -> None:
    backlog, there = Backlog(flavors=FLAVORS, book=Book(queues=())), dict[str, PendingView]()
    for ids in lists:
        gone = [there.pop(id) for id in list(there) if id in ids]
        come = [job(id, "ab"[len(id) % 2], pods()) for id in ids if id not in there]
        there |= {view.id: view for view in come}
        backlog.change(gone=gone, come=come)
        told = [backlog.view(row) for row in backlog.queue.tolist()]
        assert dict(backlog.listed({0: backlog.queue})) == {0: tuple(view.id for view in told)}
        lines = {project: [v.id for v in told if v.project == project] for project in "ab"}
        assert lines == {
            project: sorted(id for id, view in there.items() if view.project == project)
            for project in "ab"
        }
        names = backlog.workloads[backlog.queue, s.NAME].tolist()
        assert [v.id for _, v in sorted(zip(names, told, strict=True))] == sorted(there)
        assert backlog.members.sum() == len(backlog) == len(there)


def test_those_who_are_there_still_are_listed_once() -> None:
    backlog = Backlog(flavors=FLAVORS, book=Book(queues=()))
    many = [job(f"w{number}", "a", pods()) for number in range(3)]
    backlog.change(gone=(), come=many)
    rows = backlog.queue
    before = dict(backlog.listed({"why": rows, "other": rows[:1]}))
    backlog.change(gone=many[:1], come=[job("v", "a", pods())])  # who gets its row
    after = dict(backlog.listed({"why": rows[1:], "other": rows[:1]}))
    again = dict(backlog.listed({"why": rows[1:]}))
    assert before == {"why": ("w0", "w1", "w2"), "other": ("w0",)}
    assert after == {"why": ("w1", "w2"), "other": ("v",)}
    assert again["why"] is after["why"]


def test_they_stand_in_line_by_priority_then_submission_below_nothing_too() -> None:
    backlog = Backlog(flavors=FLAVORS, book=Book(queues=()))
    many = [job(f"w{n:02}", "a", pods(), priority=n % 5 - 2, submitted_at=n) for n in range(40)]
    late = [job(f"v{n}", "a", pods(), priority=n - 2, submitted_at=n * 9 - 9) for n in range(4)]
    backlog.change(gone=(), come=many)
    backlog.change(gone=(), come=late)
    told = [backlog.view(row) for row in backlog.queue.tolist()]
    assert told == sorted(many + late, key=place_in_queue)
    with pytest.raises(Unfit, match="there twice"):
        backlog.change(gone=(), come=late[:1])


def test_names_are_given_anew_where_there_is_no_number_left_between_two() -> None:
    backlog = Backlog(flavors=FLAVORS, book=Book(queues=()))
    backlog.change(gone=(), come=[job(f"w{number}", "a", pods()) for number in range(20)])
    for length in range(1, 60):
        backlog.change(gone=(), come=[job("w1" + "~" * (60 - length), "a", pods())])
    names = backlog.workloads[backlog.queue, s.NAME].tolist()
    assert names == sorted(set(names))
    ids = [backlog.view(row).id for row in backlog.queue.tolist()]
    assert ids == sorted(ids)


def test_who_started_in_a_plan_that_was_not_carried_out_waits_again() -> None:
    free = snapshot(
        nodes=[node("n1", gpus=2)],
        queues=[queue("a", h100=2), queue("b", h100=0)],
        pending=[
            *(job(f"w{i}", "a", pods(gpus=2)) for i in range(3)),
            job("never", "b", pods()),
        ],
    )
    full = replace(free, holding=(runs("first", "a", "n1/0", "n1/1"),))
    memory = Memory()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cycle, "LEAST_SWEPT", 1)
        for of, most in ((free, 9), (full, 9), (full, 9), (full, 0), (free, 0), (full, 9)):
            policy = Policy(max_admits=most)
            assert plan(of, policy, memory) == plan(of, policy)
