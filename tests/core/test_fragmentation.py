"""The score for shared GPUs, against a slow and obvious one; the compiled kernel and its twin."""

from collections import Counter
from fractions import Fraction
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core import plain
from scheduler.core.fragmentation import ANY_MODEL, Node, Packing, Seat, Shape
from scheduler.core.patience import Patience, Seated
from scheduler.core.prices import LENGTH, PRICE, cheapest_cut, gap_prices
from scheduler.core.units import ONE_MILLI

FEW, MANY = settings(max_examples=60, deadline=None), settings(max_examples=200, deadline=None)

MILLIS = st.sampled_from([50, 160, 190, 250, 320, 330, 470, 500, 650, 810, 999])
MODELS = st.sampled_from([ANY_MODEL, 0b01, 0b10, 0b11, 0])
CORES, MEMORY = st.integers(0, 12).map(lambda n: n * 1000), st.integers(0, 8).map(lambda n: n * 64)


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    gpus = draw(st.sampled_from([0, 1, 1, 1, 2, 4]))
    milli = draw(MILLIS) if gpus == 1 and draw(st.booleans()) else ONE_MILLI
    return Shape(draw(CORES), draw(MEMORY), gpus, milli, draw(MODELS))


def nodes() -> st.SearchStrategy[Node]:
    levels = st.lists(st.sampled_from([0, 190, 530, 1000, 1000, 1000]), max_size=4).map(tuple)
    return st.builds(
        Node, st.integers(0, 30).map(lambda n: n * 1000), MEMORY, st.integers(0, 1), levels
    )


FLEETS = st.lists(nodes(), min_size=1, max_size=5)
MIXES = st.dictionaries(shapes(), st.integers(1, 50), max_size=6)
PODS = st.lists(shapes(), min_size=1, max_size=12)


# The reference: the formula of the module, word by word.


def _seats(node: Node, shape: Shape) -> list[tuple[int, ...]]:
    if node.cpu_milli < shape.cpu_milli or node.memory_mib < shape.memory_mib:
        return []
    if not (shape.models >> node.model) & 1:
        return []
    if shape.gpus == 1 and shape.gpu_milli < ONE_MILLI:
        return [(g,) for g, free in enumerate(node.free) if free >= shape.gpu_milli]
    empty = [g for g, free in enumerate(node.free) if free == ONE_MILLI]
    return [tuple(empty[: shape.gpus])] if len(empty) >= shape.gpus else []


def _after(node: Node, shape: Shape, devices: tuple[int, ...]) -> Node:
    free = [x - shape.gpu_milli if g in devices else x for g, x in enumerate(node.free)]
    cpu, memory = node.cpu_milli - shape.cpu_milli, node.memory_mib - shape.memory_mib
    return Node(cpu, memory, node.model, tuple(free))


def _loss(node: Node, mix: dict[Shape, int], prices: list[int]) -> tuple[int, int]:
    worth = sum(prices[free] for free in node.free)
    loss = 0
    for shape, weight in mix.items():
        if worth and not _fits_somehow(node, shape):
            loss += weight * worth * 2
            continue
        part = shape.gpus == 1
        price = prices[shape.gpu_milli] if part else shape.gpus * PRICE
        drawn = min(
            node.cpu_milli * price // max(shape.cpu_milli, 1),
            node.memory_mib * price // max(shape.memory_mib, 1),
        )
        loss += weight * max(0, worth - drawn)
    return worth, loss


def _fits_somehow(node: Node, shape: Shape) -> bool:
    """Cores, memory, model; of devices only whether there are enough empty ones for several."""
    if node.cpu_milli < shape.cpu_milli or node.memory_mib < shape.memory_mib:
        return False
    empty = node.free.count(ONE_MILLI)
    return (shape.models >> node.model) & 1 == 1 and (shape.gpus == 1 or shape.gpus <= empty)


def _best(fleet: list[Node], shape: Shape, mix: dict[Shape, int]) -> Seat | None:
    asking = {s: count for s, count in mix.items() if s.gpus}
    shares = Counter[int]()
    for s, count in asking.items():
        if s.gpu_milli < ONE_MILLI:
            shares[s.gpu_milli] += count
    prices = gap_prices(shares)
    total = sum(asking.values())
    weights = {s: max(1, count * 10_000 // total) for s, count in asking.items()}
    total = sum(weights.values()) or 1
    ranked = []
    for rank, node in enumerate(fleet):
        worth, loss = _loss(node, weights, prices)
        for devices in _seats(node, shape):
            then = _after(node, shape, devices)
            worth_then, loss_then = _loss(then, weights, prices)
            tilt = 10 * sum(then.free) + then.cpu_milli * 600 // 1000
            level = 0
            if shape.gpu_milli < ONE_MILLI:
                level = node.free[devices[0]]
                tilt += 10_000 if level == ONE_MILLI else 0
            cost = 6 * total * (worth - worth_then) + loss_then - loss + total * tilt
            ranked.append((cost, rank, level, devices))
    if not ranked:
        return None
    _, rank, _, devices = min(ranked)
    return Seat(rank, devices)


@MANY
@given(fleet=FLEETS, mix=MIXES, pods=PODS, compiled=st.booleans())
def test_each_seat_is_the_one_that_brute_force_finds(
    fleet: list[Node], mix: dict[Shape, int], pods: list[Shape], compiled: bool
) -> None:
    packing, now = Packing(nodes=fleet, compiled=compiled), list(fleet)
    packing.expect(mix)
    for shape in pods:
        seat = packing.best(shape)
        assert seat == _best(now, shape, mix)
        if seat is not None:
            packing.place(shape, seat)
            now[seat.node] = _after(now[seat.node], shape, seat.devices)
            assert packing.node(seat.node) == now[seat.node]


@MANY
@given(fleet=FLEETS, pods=PODS)
def test_a_cached_score_is_what_a_fresh_packing_computes(
    fleet: list[Node], pods: list[Shape]
) -> None:
    packing, held = Packing(nodes=fleet), list[tuple[Shape, Seat]]()
    for i, shape in enumerate(pods):
        packing.see(shape)
        seat = packing.best(shape)
        if seat is not None:
            packing.place(shape, seat)
            held.append((shape, seat))
        if held and i % 3 == 2:
            packing.remove(*held.pop(0))
    fresh = Packing(nodes=[packing.node(rank) for rank in range(len(fleet))])
    packing.expect(Counter(pods))
    fresh.expect(Counter(pods))
    for shape in pods:
        assert packing.best(shape) == fresh.best(shape)


@FEW
@given(fleet=FLEETS, pods=PODS)
def test_the_kernel_and_its_twin_keep_the_same_books(fleet: list[Node], pods: list[Shape]) -> None:
    both = [Packing(nodes=fleet, compiled=compiled) for compiled in (True, False)]
    for shape in pods:
        for packing in both:
            packing.see(shape)
        seat, other = (packing.best(shape) for packing in both)
        assert seat == other
        if seat is not None:
            for packing in both:
                packing.place(shape, seat)
    first, second = both
    assert (first._nodes == second._nodes).all()
    assert (first._costs == second._costs).all()


@FEW
@given(fleet=FLEETS, pods=PODS)
def test_removing_restores_exactly(fleet: list[Node], pods: list[Shape]) -> None:
    packing, held = Packing(nodes=fleet), list[tuple[Shape, Seat]]()
    packing.expect(Counter(pods))
    before = [packing.best(shape) for shape in pods]
    for shape in pods:
        seat = packing.best(shape)
        if seat is not None:
            packing.place(shape, seat)
            held.append((shape, seat))
    for shape, seat in held:
        packing.remove(shape, seat)
    assert [packing.node(rank) for rank in range(len(fleet))] == fleet
    assert [packing.best(shape) for shape in pods] == before


@FEW
@given(fleet=FLEETS, mix=MIXES, pods=PODS, seed=st.integers(0, 99))
def test_the_order_of_the_mix_and_of_earlier_questions_does_not_matter(
    fleet: list[Node], mix: dict[Shape, int], pods: list[Shape], seed: int
) -> None:
    one, other = Packing(nodes=fleet), Packing(nodes=fleet)
    one.expect(mix)
    mixed = list(mix.items())
    Random(seed).shuffle(mixed)
    for shape in Random(seed).sample(pods, len(pods)):
        other.best(shape)
    other.expect(dict(mixed))
    assert [one.best(shape) for shape in pods] == [other.best(shape) for shape in pods]


@FEW
@given(fleet=FLEETS, pods=PODS)
def test_a_pod_that_fits_somewhere_is_never_refused(fleet: list[Node], pods: list[Shape]) -> None:
    packing = Packing(nodes=fleet)
    for shape in pods:
        packing.see(shape)
        seat = packing.best(shape)
        now = [packing.node(rank) for rank in range(len(fleet))]
        assert (seat is not None) == any(_seats(node, shape) for node in now)
        if seat is not None:
            packing.place(shape, seat)


def test_a_share_goes_where_its_complement_waits() -> None:
    mix = {Shape(1000, 64, 1, milli): 100 for milli in (650, 320, 470)}
    packing = Packing(nodes=[Node(64_000, 4096, 0, (530, 350, 1000))])
    packing.expect(mix)
    assert packing.best(Shape(1000, 64, 1, 320)) == Seat(0, (1,))
    assert packing.best(Shape(1000, 64, 1, 470)) == Seat(0, (0,))


def test_what_leaves_a_worthless_gap_costs_a_whole_device() -> None:
    packing = Packing(nodes=[Node(64_000, 4096, 0, (1000,))])
    share = Shape(1000, 64, 1, 810)
    packing.expect({share: 10, Shape(1000, 64, 1, 500): 10})
    assert packing.waste_milli(share, Seat(0, (0,))) == 190
    assert packing.waste_milli(Shape(1000, 64, 1, 500), Seat(0, (0,))) == 0


def test_a_pod_without_gpus_goes_where_cores_are_to_spare() -> None:
    packing = Packing(nodes=[Node(16_000, 4096, 0, (1000, 1000)), Node(64_000, 4096, 0, (1000,))])
    packing.expect({Shape(8000, 64, 1): 100})
    assert packing.best(Shape(8000, 64)) == Seat(1, ())


@pytest.mark.parametrize(
    "shape",
    [
        Shape(-1, 0),
        Shape(0, 1 << 62),
        Shape(0, 0, 2, 500),
        Shape(0, 0, 1, 0),
        Shape(0, 0, 1, 1001),
        Shape(0, 0, 10_000),
        Shape(0, 0, 1, 1000, -1),
    ],
)
def test_an_impossible_shape_is_refused_by_name(shape: Shape) -> None:
    with pytest.raises(ValueError, match="no pod asks for"):
        Packing(nodes=[]).best(shape)


@pytest.mark.parametrize(
    "node",
    [
        Node(-1, 0, 0, ()),
        Node(0, 1 << 62, 0, ()),
        Node(0, 0, 62, ()),
        Node(0, 0, 0, (1001,)),
        Node(0, 0, 0, (-1,)),
        Node(0, 0, 0, (0,) * 65),
    ],
)
def test_an_impossible_node_is_refused_by_rank(node: Node) -> None:
    with pytest.raises(ValueError, match="node 1 can't be"):
        Packing(nodes=[Node(0, 0, 0, ()), node])


@pytest.mark.parametrize(
    ("shape", "devices"),
    [
        (Shape(0, 0, 1, 500), (1,)),
        (Shape(0, 0, 2), (0, 0)),
        (Shape(0, 0, 1), ()),
        (Shape(2000, 0), ()),
    ],
)
def test_a_seat_that_is_not_free_is_not_taken(shape: Shape, devices: tuple[int, ...]) -> None:
    node = Node(1000, 64, 0, (1000, 400))
    packing = Packing(nodes=[node])
    with pytest.raises(ValueError, match="is not to be had"):
        packing.place(shape, Seat(0, devices))
    assert packing.node(0) == node


def test_an_empty_fleet_has_no_seat() -> None:
    assert Packing(nodes=[]).best(Shape(0, 0)) is None


def test_the_largest_quantities_do_not_overflow() -> None:
    most = (1 << 36) - 1
    fleet = [Node(most, most, 61, (1000,) * 64), Node(most, most, 61, (1000,) * 63)]
    packing = Packing(nodes=fleet)
    packing.expect({Shape(1, 1, 64): 1, Shape(most, most, 1, 999): 1 << 40})
    assert packing.best(Shape(1, 1, 64)) == Seat(0, tuple(range(64)))
    assert packing._total < 1 << 15
    assert (packing._nodes[:, plain.LOSS] >= 0).all()


# Prices.


@FEW
@given(st.dictionaries(st.integers(8, 99), st.integers(1, 60), min_size=1, max_size=5))
def test_the_prices_prove_that_no_cut_needs_fewer_devices(demand: dict[int, int]) -> None:
    cut = cheapest_cut(demand)
    fitting = product(*(range(LENGTH // size + 1) for size in cut.sizes))
    for pattern in fitting:
        if sum(n * size for n, size in zip(pattern, cut.sizes, strict=True)) <= LENGTH:
            assert sum(n * p for n, p in zip(pattern, cut.prices, strict=True)) <= 1
    for i, size in enumerate(cut.sizes):
        assert sum(amount * pattern[i] for pattern, amount in cut.patterns) == demand[size]
    used = sum((amount for _, amount in cut.patterns), Fraction(0))
    assert all(amount > 0 for _, amount in cut.patterns)
    assert used == sum(p * demand[s] for s, p in zip(cut.sizes, cut.prices, strict=True))


@FEW
@given(st.dictionaries(st.integers(1, 999), st.integers(1, 99), max_size=30))
def test_a_larger_gap_is_worth_no_less(demand: dict[int, int]) -> None:
    prices = gap_prices(demand)
    assert prices == sorted(prices)
    assert prices[0] == 0
    assert prices[ONE_MILLI] == PRICE


def test_a_gap_that_nobody_can_use_is_worth_nothing() -> None:
    prices = gap_prices({810: 100, 470: 100, 160: 5})
    assert prices[190] == 0
    assert prices[530] == PRICE // 2


# Patience.


def _play(pods: list[Shape], guard: int) -> tuple[list[Seated], Patience]:
    fleet = [Node(64_000, 4096, 0, (1000,) * 4) for _ in range(2)]
    queue = Patience(packing=Packing(nodes=fleet), guard=guard)
    seated = [one for shape in pods for one in queue.arrive(shape)]
    return seated + queue.finish(), queue


@FEW
@given(
    pods=st.lists(
        st.sampled_from([810, 470, 1000, 1000]).map(lambda milli: Shape(1000, 64, 1, milli)),
        max_size=30,
    ),
    guard=st.integers(0, 12),
)
def test_nobody_is_overtaken_more_often_than_the_guard_allows(
    pods: list[Shape], guard: int
) -> None:
    seated, queue = _play(pods, guard)
    assert all(0 <= one.overtaken <= guard for one in seated)
    numbers = sorted([one.number for one in seated] + list(queue.stuck))
    assert numbers == list(range(len(pods)))


def test_without_overtaking_each_pod_is_seated_as_it_comes() -> None:
    pods = [Shape(1000, 64, 1, 810) for _ in range(6)]
    seated, _ = _play(pods, guard=0)
    assert [one.number for one in seated] == list(range(6))


def test_a_wasteful_pod_lets_whole_ones_go_first_when_devices_are_scarce() -> None:
    share, whole = Shape(1000, 64, 1, 810), Shape(1000, 64, 1)
    seated, queue = _play([share, share] + [whole] * 8, guard=50)
    assert sum(one.shape.asked_milli for one in seated) == 8000
    assert set(queue.stuck.values()) == {share}
