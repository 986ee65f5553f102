"""Profiles, legal starts and layouts, against NVIDIA's tables and against brute force."""

from fractions import Fraction
from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.node import mig
from scheduler.core.units import Span


@pytest.mark.parametrize(
    ("model", "board"),
    [
        ("NVIDIA-A30", "A30-24GB"),
        ("A100-SXM4-40GB", "A100-40GB"),
        ("NVIDIA-A100-PCIE-40GB", "A100-40GB"),
        ("NVIDIA-A100-SXM4-80GB", "A100-80GB"),
        ("NVIDIA-A100-80GB-PCIe", "A100-80GB"),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "A100-80GB"),
        ("NVIDIA-A800-SXM4-80GB", "A100-80GB"),
        ("NVIDIA-H100-80GB-HBM3", "H100-80GB"),
        ("NVIDIA-H100-80GB-HBM3-SHARED", "H100-80GB"),
        ("NVIDIA-H100-PCIe", "H100-80GB"),
        ("NVIDIA-H100-NVL", "H100-94GB"),
        ("NVIDIA-GH200-480GB", "H100-96GB"),
        ("NVIDIA-GH200-144G-HBM3e", "GH200-144GB"),
        ("NVIDIA-H20", "H100-96GB"),
        ("NVIDIA-H200", "H200-141GB"),
        ("NVIDIA-H200-NVL", "H200-141GB"),
        ("NVIDIA-B200", "B200-180GB"),
        ("NVIDIA-GB200", "GB200-186GB"),
        ("h100-80gb", "H100-80GB"),
    ],
)
def test_it_knows_a_model_by_the_name_that_gpu_feature_discovery_gives(
    model: str, board: str
) -> None:
    found = mig.board(model=model)
    assert found is not None
    assert found.name == board


@pytest.mark.parametrize(
    "model", ["Tesla-T4", "NVIDIA-A100", "NVIDIA-A10", "V100M32", "", "A3000"]
)
def test_it_knows_no_mig_for_other_models_or_when_the_memory_is_open(model: str) -> None:
    assert mig.board(model=model) is None
    assert mig.legal_spans(model=model, profile="1g.10gb") == ()


@pytest.mark.parametrize(
    ("model", "profile", "starts", "width"),
    [  # nvidia-smi mig -lgipp
        ("NVIDIA-A30", "1g.6gb", [0, 1, 2, 3], 1),
        ("NVIDIA-A30", "1g.6gb+me", [0, 1, 2, 3], 1),
        ("NVIDIA-A30", "2g.12gb", [0, 2], 2),
        ("NVIDIA-A30", "2g.12gb+me", [0, 2], 2),
        ("NVIDIA-A30", "4g.24gb", [0], 4),
        ("NVIDIA-A100-SXM4-40GB", "1g.5gb", [0, 1, 2, 3, 4, 5, 6], 1),
        ("NVIDIA-A100-SXM4-40GB", "1g.10gb", [0, 2, 4, 6], 2),
        ("NVIDIA-A100-SXM4-80GB", "1g.10gb", [0, 1, 2, 3, 4, 5, 6], 1),
        ("NVIDIA-H100-80GB-HBM3", "1g.10gb.me", [0, 1, 2, 3, 4, 5, 6], 1),
        ("NVIDIA-H100-80GB-HBM3", "1g.20gb", [0, 2, 4, 6], 2),
        ("NVIDIA-H100-80GB-HBM3", "2g.20gb", [0, 2, 4], 2),
        ("NVIDIA-H100-80GB-HBM3", "3g.40gb", [0, 4], 4),
        ("NVIDIA-H100-80GB-HBM3", "4g.40gb", [0], 4),
        ("NVIDIA-H100-80GB-HBM3", "7g.80gb", [0], 8),
        ("NVIDIA-H100-NVL", "3g.47gb", [0, 4], 4),
        ("NVIDIA-GH200-480GB", "4g.48gb", [0], 4),
        ("NVIDIA-H200", "2g.35gb", [0, 2, 4], 2),
        ("NVIDIA-B200", "1g.45gb", [0, 2, 4, 6], 2),
        ("NVIDIA-GB200", "3g.93gb", [0, 4], 4),
        ("NVIDIA-GB200", "7g.186gb", [0], 8),
    ],
)
def test_a_profile_starts_where_nvidia_says(
    model: str, profile: str, starts: list[int], width: int
) -> None:
    spans = mig.legal_spans(model=model, profile=profile)
    assert spans == tuple(Span(start, start + width) for start in starts)


@pytest.mark.parametrize("board", mig.BOARDS, ids=lambda board: board.name)
def test_no_legal_layout_uses_more_compute_than_the_device_has(board: mig.Board) -> None:
    """Brute force over all sets of legal spans that do not overlap."""
    pieces = [(p, mig.mask(Span(s, s + p.memory))) for p in board.profiles for s in p.starts]

    def heaviest(at: int, taken: int) -> int:
        if at == len(pieces):
            return 0
        part, bits = pieces[at]
        without = heaviest(at + 1, taken)
        if bits & taken:
            return without
        return max(without, part.compute + heaviest(at + 1, taken | bits))

    assert heaviest(0, 0) == board.compute


@pytest.mark.parametrize("board", mig.BOARDS, ids=lambda board: board.name)
def test_as_many_of_a_profile_fit_as_the_table_says(board: mig.Board) -> None:
    for part in board.profiles:
        most = part.at_most
        mig.arrange(model=board.name, counts={part.name: most}, devices=1)
        with pytest.raises(mig.ImpossibleLayout):
            mig.arrange(model=board.name, counts={part.name: most + 1}, devices=1)


@pytest.mark.parametrize(
    ("profile", "part"),
    [
        ("1g.10gb", Fraction(1, 7)),
        ("1g.20gb", Fraction(1, 4)),
        ("2g.20gb", Fraction(2, 7)),
        ("3g.40gb", Fraction(1, 2)),
        ("4g.40gb", Fraction(4, 7)),
        ("7g.80gb", Fraction(1)),
        ("9g.90gb", None),
    ],
)
def test_a_slice_counts_as_the_larger_of_its_compute_and_its_memory(
    profile: str, part: Fraction | None
) -> None:
    assert mig.device_equivalent(model="H100-80GB", profile=profile) == part


def test_a_node_that_is_cut_alike_is_arranged_alike() -> None:
    counts = {"1g.10gb": 16, "2g.20gb": 8, "3g.40gb": 8}
    layouts = mig.arrange(model="NVIDIA-H100-80GB-HBM3", counts=counts, devices=8)
    assert len(set(layouts)) == 1
    assert layouts[0] == (
        ("2g.20gb", Span(0, 2)),
        ("1g.10gb", Span(2, 3)),
        ("1g.10gb", Span(3, 4)),
        ("3g.40gb", Span(4, 8)),
    )


def test_devices_may_be_cut_differently() -> None:
    layouts = mig.arrange(model="A30-24GB", counts={"4g.24gb": 1, "1g.6gb": 5}, devices=3)
    assert sorted(len(layout) for layout in layouts) == [1, 1, 4]


@pytest.mark.parametrize(
    ("counts", "devices"),
    [
        ({"3g.40gb": 3, "1g.10gb": 8}, 2),
        ({"4g.40gb": 2}, 1),
        ({"1g.10gb": 1}, 0),
        ({"1g.5gb": 1}, 1),
        ({"2g.20gb": 3, "1g.20gb": 2}, 1),
    ],
)
def test_what_cannot_be_cut_raises_plainly(counts: dict[str, int], devices: int) -> None:
    with pytest.raises(mig.ImpossibleLayout, match=r"in no legal way|has no MIG profile"):
        mig.arrange(model="H100-80GB", counts=counts, devices=devices)


def _legal_on_one(board: mig.Board, wanted: list[mig.Profile]) -> bool:
    """The slow, obvious way: every start of every slice."""

    def lay(rest: list[mig.Profile], taken: int) -> bool:
        if not rest:
            return True
        spans = (Span(s, s + rest[0].memory) for s in rest[0].starts)
        return any(
            lay(rest[1:], taken | mig.mask(span)) for span in spans if not taken & mig.mask(span)
        )

    return sum(p.media for p in wanted) <= 1 and lay(wanted, 0)


@pytest.mark.parametrize("name", ["A30-24GB", "H100-80GB"])
def test_one_device_is_arranged_exactly_when_brute_force_finds_a_way(name: str) -> None:
    board = mig.board(model=name)
    assert board is not None
    for size in range(1, 6):
        for wanted in combinations_with_replacement(board.profiles, size):
            counts = {p.name: wanted.count(p) for p in wanted}
            try:
                (layout,) = mig.arrange(model=name, counts=counts, devices=1)
            except mig.ImpossibleLayout:
                assert not _legal_on_one(board, list(wanted)), counts
            else:
                _assert_lawful(name, layout)
                assert sorted(p for p, _ in layout) == sorted(p.name for p in wanted)


def _assert_lawful(model: str, layout: tuple[tuple[str, Span], ...]) -> None:
    taken = 0
    for profile, span in layout:
        assert span in mig.legal_spans(model=model, profile=profile)
        assert not taken & mig.mask(span)
        taken |= mig.mask(span)


_PROFILES = [p.name for p in mig.BOARDS[3].profiles]


@given(layouts=st.lists(st.lists(st.sampled_from(_PROFILES), max_size=7), min_size=1, max_size=4))
def test_what_lies_on_devices_can_be_arranged_again(layouts: list[list[str]]) -> None:
    """Any mix that is legal device by device is found from the node's sums alone."""
    board = mig.board(model="H100-80GB")
    assert board is not None
    by_name = {p.name: p for p in board.profiles}
    legal = [one for one in layouts if _legal_on_one(board, [by_name[n] for n in one])]
    names = [name for one in legal for name in one]
    counts = {name: names.count(name) for name in names}
    found = mig.arrange(model="H100-80GB", counts=counts, devices=len(legal))
    assert sorted(p for layout in found for p, _ in layout) == sorted(names)
    for layout in found:
        _assert_lawful("H100-80GB", layout)
