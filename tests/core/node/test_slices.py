"""What the free part of a device is worth, and that slices are cut where it falls least."""

from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.node import mig
from scheduler.core.node.slices import Mix, in_order, mix_of, prices, spots
from scheduler.core.units import Span
from tests.core.build import H100, Quota, decide, holds, job, node, pods, queue_of, runs, snapshot

FEW = settings(max_examples=40, deadline=None)
BOARD = "H100-80GB"
NAMES = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
QUEUE = queue_of("a", {name: Quota(100, borrow=None) for name in ("1g", "2g", "3g")})

asked_for = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 500))


def _pieces(board: str) -> list[tuple[int, int]]:
    """(number of the profile in a mix, bits) of every legal span."""
    found = mig.board(model=board)
    assert found is not None
    plain = [part.name for part in found.profiles if not part.media]
    return [
        (i, mig.mask(span))
        for i, name in enumerate(plain)
        for span in mig.legal_spans(model=board, profile=name)
    ]


@cache
def _layouts(board: str, taken: int = 0) -> frozenset[tuple[int, ...]]:
    """Each set of profiles, as a sorted tuple of their numbers, that fits beside those bits."""
    found: set[tuple[int, ...]] = {()}
    for i, bits in _pieces(board):
        if not bits & taken:
            found |= {tuple(sorted((i, *rest))) for rest in _layouts(board, taken | bits)}
    return frozenset(found)


def _value(mix: Mix, taken: int) -> Fraction:
    """The formula, by the dearest of all layouts."""
    price = prices(mix.board, mix.weights).prices
    left = sum(mix.weights[i] for i, bits in _pieces(mix.board) if not bits & taken)
    dearest = max(sum(price[i] for i in layout) for layout in _layouts(mix.board, taken))
    return dearest + Fraction(left, sum(mix.weights[i] for i, _ in _pieces(mix.board)))


@FEW
@given(asked_for)
def test_the_prices_prove_that_no_layouts_need_fewer_devices(asked: dict[str, int]) -> None:
    mix = mix_of(model=BOARD, asked=asked, devices=0)
    found = prices(mix.board, mix.weights)
    for layout in _layouts(BOARD):
        assert sum(found.prices[i] for i in layout) <= 1
    for i, weight in enumerate(mix.weights):
        assert sum(amount * pattern[i] for pattern, amount in found.patterns) == weight
    for pattern, amount in found.patterns:
        assert amount > 0
        assert tuple(i for i, n in enumerate(pattern) for _ in range(n)) in _layouts(BOARD)
    used = sum((amount for _, amount in found.patterns), Fraction(0))
    assert used == sum(w * p for w, p in zip(mix.weights, found.prices, strict=True))


@FEW
@given(
    asked=asked_for,
    profile=st.sampled_from(NAMES),
    taken=st.integers(0, 255),
    scarce=st.booleans(),
)
def test_a_slice_may_be_cut_at_every_free_legal_start_where_the_value_falls_least_first(
    asked: dict[str, int], profile: str, taken: int, scarce: bool
) -> None:
    mix = mix_of(model=BOARD, asked=asked, devices=0)._replace(scarce=scarce)
    found = spots(mix=mix, profile=profile, taken=taken)
    spans = mig.legal_spans(model=BOARD, profile=profile)
    assert {spot.span for spot in found} == {s for s in spans if not mig.mask(s) & taken}
    whole = spots(mix=mix._replace(scarce=True), profile="7g.80gb", taken=0)[0].loss
    opening = 0 if scarce or taken else 2
    fall = [_value(mix, taken) - _value(mix, taken | mig.mask(spot.span)) for spot in found]
    assert [spot.loss for spot in found] == [(opening + part) * whole / 2 for part in fall]
    assert found == tuple(sorted(found))
    assert all(spot.left == 8 - taken.bit_count() for spot in found)


@FEW
@given(
    asked=asked_for,
    profile=st.sampled_from(NAMES),
    masks=st.lists(st.integers(0, 255), unique=True),
)
def test_devices_come_in_the_order_of_their_cheapest_start(
    asked: dict[str, int], profile: str, masks: list[int]
) -> None:
    mix = mix_of(model=BOARD, asked=asked, devices=40)
    found = in_order(mix=mix, profile=profile, masks=masks)
    firsts = {taken: spots(mix=mix, profile=profile, taken=taken)[:1] for taken in masks}
    assert sorted(found) == sorted(taken for taken, first in firsts.items() if first)
    keys = [(spot.loss, -taken.bit_count(), taken) for taken in found for spot in firsts[taken]]
    assert keys == sorted(keys)


@pytest.mark.parametrize("board", mig.BOARDS, ids=lambda board: board.name)
def test_every_board_has_prices(board: mig.Board) -> None:
    mix = mix_of(model=board.name, asked={}, devices=1)
    assert set(mix.weights) == {1}
    whole = spots(mix=mix, profile=board.profiles[-1].name, taken=0)
    assert [spot.span for spot in whole] == [Span(0, board.memory)]
    assert whole[0].loss > spots(mix=mix, profile=board.profiles[0].name, taken=0)[0].loss > 0


@pytest.mark.parametrize(
    ("profile", "taken", "start"),
    [
        ("1g.10gb", 0b00000000, 4),  # not 6, for then 7 is of no use
        ("2g.20gb", 0b00000000, 4),
        ("3g.40gb", 0b00000000, 4),  # 4g.40gb starts at 0 alone
        ("1g.10gb", 0b00110000, 6),
        ("3g.40gb", 0b00010000, 0),
        ("1g.10gb+me", 0b00000000, 4),
    ],
)
def test_where_a_slice_goes_when_all_profiles_are_asked_for_alike(
    profile: str, taken: int, start: int
) -> None:
    even = mix_of(model=BOARD, asked={}, devices=1)
    assert spots(mix=even, profile=profile, taken=taken)[0].span.start == start


@pytest.mark.parametrize(("wanted", "start"), [("2g.20gb", 6), ("1g.20gb", 4)])
def test_a_slice_leaves_free_what_is_asked_for(wanted: str, start: int) -> None:
    """The last memory slice is of use to a 1g.20gb at 6, and to larger ones, or to nobody."""
    mix = mix_of(model=BOARD, asked={wanted: 1}, devices=1)
    assert spots(mix=mix, profile="1g.10gb", taken=0)[0].span.start == start
    assert prices(mix.board, mix.weights).prices[0] == (0 if start == 6 else Fraction(1, 8))


@pytest.mark.parametrize(("wanted", "start"), [("2g", 6), ("3g", 4)])
def test_the_plan_goes_by_the_mix_of_what_waits_and_runs(wanted: str, start: int) -> None:
    one = job("w", "a", pods(flavors="1g"), priority=1)
    like = [job(f"v{i}", "a", pods(flavors=f"{wanted} 1g")) for i in range(20)]
    of = snapshot(nodes=[node("n1", 1, dynamic=True)], queues=[QUEUE], pending=[one, *like])
    made = decide(of)
    assert made.spans("w") == [("n1/0", start, start + 1)]
    others = snapshot(nodes=[node("n2", 7, dynamic=True)], queues=[QUEUE], pending=like)
    running = [
        holds(admit, by)
        for by in like
        for admit in decide(others).plan.admits
        if admit.workload == by.id
    ]
    of = snapshot(
        nodes=[node("n1", 1, dynamic=True), node("n2", 7, dynamic=True, usable=False)],
        queues=[QUEUE],
        pending=[one],
        holding=running,
    )
    assert decide(of).spans("w") == [("n1/0", start, start + 1)]


@pytest.mark.parametrize(
    ("asked", "devices", "scarce"),
    [
        pytest.param({"1g.10gb": 7, "7g.80gb": 1}, 2, False, id="a device each"),
        pytest.param({"1g.10gb": 8, "7g.80gb": 1}, 2, True, id="an eighth beside seven"),
        pytest.param({"3g.40gb": 1, "4g.40gb": 1}, 1, False, id="two halves"),
        pytest.param({}, 0, False, id="nothing"),
    ],
)
def test_room_is_scarce_when_what_is_expected_needs_more_devices(
    asked: dict[str, int], devices: int, scarce: bool
) -> None:
    assert mix_of(model=BOARD, asked=asked, devices=devices).scarce is scarce


@pytest.mark.parametrize(("waiting", "expected"), [(1, "n1"), (40, "n2")])
def test_an_empty_device_is_opened_last_while_there_is_room_for_all(
    waiting: int, expected: str
) -> None:
    """On n1 a 1g costs two starts of 2g or 3g more than on n2."""
    out = node("n3", 40, dynamic=True, usable=False)
    nodes = [node("n1", 1, dynamic=True), node("n2", 1, dynamic=True), out]
    one = job("w", "a", pods(flavors="1g"), priority=1)
    like = [job(f"v{i}", "a", pods(flavors="2g")) for i in range(waiting)]
    held = runs("r", "a", "n1/0", flavor="3g", span=(4, 8))
    made = decide(snapshot(nodes=nodes, queues=[QUEUE], pending=[one, *like], holding=[held]))
    assert made.nodes("w") == [expected]


@pytest.mark.parametrize("media", ["1g.10gb+me", "1g.10gb.me"])
def test_a_profile_with_media_counts_as_the_one_without(media: str) -> None:
    asked = {"1g.10gb": 5, media: 5, "2g.20gb": 10}
    found = mix_of(model=H100, asked=asked, devices=9)
    assert found == Mix(BOARD, (501, 1, 501, 1, 1, 1), scarce=False)


def test_a_mix_of_what_a_model_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Tesla-T4 has no MIG"):
        mix_of(model="Tesla-T4", asked={}, devices=1)
    with pytest.raises(ValueError, match=r"A30 has no MIG profile 3g\.40gb"):
        mix_of(model="NVIDIA-A30", asked={"3g.40gb": 1}, devices=1)
