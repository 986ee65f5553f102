"""The score for shared GPUs, against a slow and obvious one, and against its twin in numpy."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.node import jit
from scheduler.core.node.fragmentation import MOST_EXPECTED, MOST_SOUGHT, Packing
from scheduler.core.node.prices import PRICE, gap_prices
from scheduler.core.node.shapes import ANY_MODEL, Node, Seat, Shape
from scheduler.core.units import ONE_MILLI
from tests.core.reference import plain

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


def _kinds(mix: dict[Shape, int]) -> dict[Shape, int]:
    """By the three leading bits of cores and memory."""
    kinds = Counter[Shape]()
    for shape, count in mix.items():
        if shape.gpus:
            kinds[_kind(shape)] += count
    return kinds


def _kind(shape: Shape) -> Shape:
    def leading(quantity: int) -> int:
        bits = f"{quantity:b}"
        return int(bits[:3] + "0" * len(bits[3:]), 2)

    return shape._replace(cpu_milli=leading(shape.cpu_milli), memory_mib=leading(shape.memory_mib))


def _best(
    fleet: Sequence[Node], shape: Shape, mix: dict[Shape, int]
) -> tuple[Seat, int] | tuple[None, None]:
    """The best seat, and what it costs."""
    kinds = _kinds(mix)
    shares = Counter[int]()
    for s, count in kinds.items():
        if s.gpu_milli < ONE_MILLI:
            shares[s.gpu_milli] += count
    prices = gap_prices(shares)
    total = sum(kinds.values())
    weights = {s: max(1, count * 10_000 // total) for s, count in kinds.items()}
    total = sum(weights.values()) or 1
    ranked = []
    for rank, node in enumerate(fleet):
        worth, loss = _loss(node, weights, prices)
        for devices in _seats(node, shape):
            then = _after(node, _kind(shape), devices)
            worth_then, loss_then = _loss(then, weights, prices)
            tilt = 10 * sum(then.free) + then.cpu_milli * 600 // 1000
            level = 0
            if shape.gpu_milli < ONE_MILLI:
                level = node.free[devices[0]]
            cost = 6 * total * (worth - worth_then) + loss_then - loss + total * tilt
            ranked.append((cost, rank, level, devices))
    if not ranked:
        return None, None
    cost, rank, _, devices = min(ranked)
    return Seat(rank, devices), cost


@MANY
@given(fleet=FLEETS, mix=MIXES, pods=PODS)
def test_each_seat_is_the_one_that_brute_force_finds(
    fleet: list[Node], mix: dict[Shape, int], pods: list[Shape]
) -> None:
    packing, now = Packing(nodes=fleet, mix=mix), list(fleet)
    for shape in pods:
        seat = packing.best(shape)
        assert (seat, packing.cost(shape)) == _best(now, shape, mix)
        _sit(packing, now, shape, seat)


def _sit(packing: Packing, now: list[Node], shape: Shape, seat: Seat | None) -> None:
    if seat is not None:
        now[seat.node] = _after(now[seat.node], shape, seat.devices)
        packing.update(seat.node, now[seat.node])


@MANY
@given(fleet=FLEETS, mix=MIXES, pods=PODS)
def test_the_twin_in_numpy_finds_the_same_seats(
    fleet: list[Node], mix: dict[Shape, int], pods: list[Shape]
) -> None:
    def seats() -> list[Seat | None]:
        packing, now, found = Packing(nodes=fleet, mix=mix), list(fleet), []
        for shape in pods:
            found.append(packing.best(shape))
            _sit(packing, now, shape, found[-1])
        return found

    compiled = seats()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit, "choose", plain.choose)
        patch.setattr(jit, "measure", plain.measure)
        assert seats() == compiled


@MANY
@given(fleet=FLEETS, mix=MIXES, pods=PODS)
def test_a_cached_score_is_what_a_fresh_packing_computes(
    fleet: list[Node], mix: dict[Shape, int], pods: list[Shape]
) -> None:
    packing, now = Packing(nodes=fleet, mix=mix), list(fleet)
    for i, shape in enumerate(pods):
        _sit(packing, now, shape, packing.best(shape))
        if i % 3 == 2:
            now[0] = fleet[0]
            packing.update(0, fleet[0])
    fresh = Packing(nodes=now, mix=mix)
    for shape in pods:
        assert packing.best(shape) == fresh.best(shape)


@FEW
@given(fleet=FLEETS, mix=MIXES, pods=PODS, seed=st.integers(0, 99))
def test_the_order_of_the_mix_and_of_earlier_questions_does_not_matter(
    fleet: list[Node], mix: dict[Shape, int], pods: list[Shape], seed: int
) -> None:
    one, other = Packing(nodes=fleet, mix=mix), Packing(nodes=fleet, mix={})
    mixed = list(mix.items())
    Random(seed).shuffle(mixed)
    for shape in Random(seed).sample(pods, len(pods)):
        other.best(shape)
    other.expect(dict(mixed))
    assert [one.best(shape) for shape in pods] == [other.best(shape) for shape in pods]


@FEW
@given(fleet=FLEETS, mix=MIXES, pods=PODS)
def test_a_pod_that_fits_somewhere_is_never_refused(
    fleet: list[Node], mix: dict[Shape, int], pods: list[Shape]
) -> None:
    packing, now = Packing(nodes=fleet, mix=mix), list(fleet)
    for shape in pods:
        seat = packing.best(shape)
        assert (seat is not None) == any(_seats(node, shape) for node in now)
        _sit(packing, now, shape, seat)


def test_what_is_kept_is_bounded_however_many_kinds_there_are() -> None:
    mix = {Shape(0, 0, 1, milli): 1000 - milli for milli in range(1, 1000)}
    packing = Packing(nodes=[Node(64_000, 4096, 0, (1000,))], mix=mix)
    taken = [shape for shape in mix if packing.takes(shape) and packing.best(shape)]
    assert len(taken) == MOST_SOUGHT
    assert packing.takes(taken[0])
    heaviest = sorted(mix, key=lambda shape: -mix[shape] * shape.gpu_milli)[:MOST_EXPECTED]
    alone = Packing(nodes=[Node(64_000, 4096, 0, (1000, 600, 190))], mix=mix)
    best, _ = _best([Node(64_000, 4096, 0, (1000, 600, 190))], heaviest[0], mix)
    assert alone.best(heaviest[0]) == best


def test_a_share_goes_where_its_complement_waits() -> None:
    mix = {Shape(1000, 64, 1, milli): 100 for milli in (650, 320, 470)}
    packing = Packing(nodes=[Node(64_000, 4096, 0, (530, 350, 1000))], mix=mix)
    assert packing.best(Shape(1000, 64, 1, 320)) == Seat(0, (1,))
    assert packing.best(Shape(1000, 64, 1, 470)) == Seat(0, (0,))


def test_a_pod_without_gpus_goes_where_cores_are_to_spare() -> None:
    packing = Packing(
        nodes=[Node(16_000, 4096, 0, (1000, 1000)), Node(64_000, 4096, 0, (1000,))],
        mix={Shape(8000, 64, 1): 100},
    )
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
        Packing(nodes=[], mix={}).best(shape)


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
        Packing(nodes=[Node(0, 0, 0, ()), node], mix={})


def test_an_empty_fleet_has_no_seat() -> None:
    assert Packing(nodes=[], mix={}).best(Shape(0, 0)) is None


def test_the_largest_quantities_do_not_overflow() -> None:
    most = (1 << 36) - 1
    fleet = [Node(most, most, 61, (1000,) * 64), Node(most, most, 61, (1000,) * 63)]
    packing = Packing(nodes=fleet, mix={Shape(1, 1, 64): 1, Shape(most, most, 1, 999): 1 << 40})
    assert packing.best(Shape(1, 1, 64)) == Seat(0, tuple(range(64)))
