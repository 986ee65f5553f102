"""MIG: which slices each GPU model can be cut into, and where on the device each may start.

Source: NVIDIA Multi-Instance GPU User Guide, "Supported MIG Profiles", and the placements that
`nvidia-smi mig -lgipp` lists ({starts}:size, in memory slices). All seven-slice boards (Ampere to
Blackwell) list the same starts; their profiles differ in the memory in the name alone. Profile
names of boards that the guide leaves out are those of NVIDIA's mig-parted.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from scheduler.core.units import WHOLE_DEVICE, Span

MEDIA = "+me"
"""Suffix of a profile with the media engines, of which a device has one set."""


@dataclass(frozen=True, slots=True)
class Profile:
    """`compute` and `memory` count slices of the device; `memory` is the width of its span.

    `at_most` of it may exist on one device. Profiles with `media` exclude each other on a device.
    """

    name: str
    compute: int
    memory: int
    starts: tuple[int, ...]
    at_most: int
    media: bool = False


@dataclass(frozen=True, slots=True)
class Board:
    """A GPU model as MIG sees it: its slices, and its profiles from small to large."""

    name: str
    compute: int
    memory: int
    profiles: tuple[Profile, ...]


class ImpossibleLayout(ValueError):
    """The advertised slices fit on the devices in no legal way."""


def _seven_slices(name: str, gb: tuple[int, int, int, int]) -> Board:
    """A board of 7 compute and 8 memory slices; `gb` names 1/8, 2/8, 4/8 and all of its memory."""
    eighth, quarter, half, full = gb
    every = (0, 1, 2, 3, 4, 5, 6)
    profiles = (
        Profile(f"1g.{eighth}gb", 1, 1, every, 7),
        Profile(f"1g.{eighth}gb{MEDIA}", 1, 1, every, 1, media=True),
        Profile(f"1g.{quarter}gb", 1, 2, (0, 2, 4, 6), 4),
        Profile(f"2g.{quarter}gb", 2, 2, (0, 2, 4), 3),
        Profile(f"3g.{half}gb", 3, 4, (0, 4), 2),
        Profile(f"4g.{half}gb", 4, 4, (0,), 1),
        Profile(f"7g.{full}gb", 7, 8, (0,), 1),
    )
    return Board(name, 7, 8, profiles)


_A30 = Board(
    "A30-24GB",
    4,
    4,
    (
        Profile("1g.6gb", 1, 1, (0, 1, 2, 3), 4),
        Profile(f"1g.6gb{MEDIA}", 1, 1, (0, 1, 2, 3), 1, media=True),
        Profile("2g.12gb", 2, 2, (0, 2), 2),
        Profile(f"2g.12gb{MEDIA}", 2, 2, (0, 2), 1, media=True),
        Profile("4g.24gb", 4, 4, (0,), 1),
    ),
)

BOARDS: tuple[Board, ...] = (
    _A30,
    _seven_slices("A100-40GB", (5, 10, 20, 40)),
    _seven_slices("A100-80GB", (10, 20, 40, 80)),
    _seven_slices("H100-80GB", (10, 20, 40, 80)),
    _seven_slices("H100-94GB", (12, 24, 47, 94)),
    _seven_slices("H100-96GB", (12, 24, 48, 96)),
    _seven_slices("H200-141GB", (18, 35, 71, 141)),
    _seven_slices("GH200-144GB", (18, 36, 72, 144)),
    _seven_slices("B200-180GB", (23, 45, 90, 180)),
    _seven_slices("GB200-186GB", (23, 47, 93, 186)),
    _seven_slices("B300-269GB", (34, 67, 135, 269)),
    _seven_slices("GB300-278GB", (35, 70, 139, 278)),
)
_BY_NAME = {board.name: board for board in BOARDS}

_FAMILIES: dict[str, tuple[tuple[str, str], ...]] = {
    # word in the model's name: (another word, the board it then is), …; "" matches always
    "A30": (("", "A30-24GB"),),
    "A100": (("40GB", "A100-40GB"), ("80GB", "A100-80GB")),
    "A800": (("40GB", "A100-40GB"), ("80GB", "A100-80GB")),
    "H100": (("94GB", "H100-94GB"), ("NVL", "H100-94GB"), ("96GB", "H100-96GB"),
             ("", "H100-80GB")),
    "H800": (("94GB", "H100-94GB"), ("NVL", "H100-94GB"), ("", "H100-80GB")),
    "GH200": (("144G", "GH200-144GB"), ("144GB", "GH200-144GB"), ("", "H100-96GB")),
    "H20": (("141GB", "H200-141GB"), ("3E", "H200-141GB"), ("", "H100-96GB")),
    "H200": (("", "H200-141GB"),),
    "B200": (("", "B200-180GB"),),
    "GB200": (("", "GB200-186GB"),),
    "B300": (("", "B300-269GB"),),
    "GB300": (("", "GB300-278GB"),),
}  # fmt: skip


@cache
def _board(model: str) -> Board | None:
    if model.upper() in _BY_NAME:
        return _BY_NAME[model.upper()]
    words = re.split(r"[^A-Z0-9.]+", model.upper())
    for family, cases in _FAMILIES.items():
        if family in words:
            for word, name in cases:
                if not word or word in words:
                    return _BY_NAME[name]
    return None


def board(*, model: str) -> Board | None:
    """The board behind a model name; None when it has no MIG or its memory can't be told.

    Takes the names of GPU feature discovery (`nvidia.com/gpu.product`: NVIDIA-A100-SXM4-80GB,
    NVIDIA-H100-80GB-HBM3, NVIDIA-H100-NVL, NVIDIA-GH200-480GB, NVIDIA-H200, NVIDIA-B200, …, also
    with its suffixes -SHARED and -MIG-1g.10gb) and the names of `BOARDS`, in any case. A bare
    "A100" is None: 40 or 80 GB decides its profiles.
    """
    return _board(model)


@cache
def _profile(model: str, name: str) -> Profile | None:
    found = _board(model)
    plain = name.replace(".me", MEDIA)
    return next((p for p in found.profiles if p.name == plain), None) if found else None


def profile(*, model: str, name: str) -> Profile | None:
    """The profile of that name, None when the model has none such.

    Kubernetes resource names can't hold "+", so `1g.10gb.me` is taken as `1g.10gb+me`.
    """
    return _profile(model, name)


@cache
def _legal_spans(model: str, name: str) -> tuple[Span, ...]:
    found = _profile(model, name)
    return tuple(Span(s, s + found.memory) for s in found.starts) if found else ()


def legal_spans(*, model: str, profile: str) -> tuple[Span, ...]:
    """Where a slice may lie on the device, ascending; () when the model has no such profile."""
    return _legal_spans(model, profile)


def device_equivalent(*, model: str, profile: str) -> Fraction | None:
    """What part of the device a slice takes from others: max of its compute and memory fractions.

    None when the model has no such profile.
    """
    of, part = _board(model), _profile(model, profile)
    if of is None or part is None:
        return None
    return max(Fraction(part.compute, of.compute), Fraction(part.memory, of.memory))


_WHOLE = (1 << WHOLE_DEVICE.end) - 1


def mask(span: Span) -> int:
    """The span as bits: bit i stands for [i, i + 1) of the axis."""
    if span is WHOLE_DEVICE:
        return _WHOLE
    return ((1 << (span.end - span.start)) - 1) << span.start


def arrange(
    *, model: str, counts: Mapping[str, int], devices: int
) -> tuple[tuple[tuple[str, Span], ...], ...]:
    """Slices (profile, span) for each of `devices` alike devices, in which `counts` slices lie.

    `counts` is what a node advertises per profile; the result has exactly those. A node's devices
    are cut alike where the counts allow it; else devices are filled one after another. The search
    is exact. Raises `ImpossibleLayout`, also for a profile that the model does not have.
    """
    wanted = []
    for name, count in sorted(counts.items()):
        found = _profile(model, name)
        if count and found is None:
            raise ImpossibleLayout(f"{model} has no MIG profile {name}")
        if count and found is not None:
            wanted.append((found, count))
    wanted.sort(key=lambda item: (-item[0].memory, -item[0].compute, item[0].name))
    parts = tuple(part for part, _ in wanted)
    total = tuple(count for _, count in wanted)
    layouts = _cut_alike(parts, total, devices) or _cut_each(parts, total, devices)
    if layouts is None:
        asked = ", ".join(f"{count} x {part.name}" for part, count in wanted)
        raise ImpossibleLayout(f"{asked} fit on {devices} x {model} in no legal way")
    return layouts


def full_layouts(*, model: str, profiles: Sequence[str]) -> tuple[dict[str, int], ...]:
    """How many of each of the profiles may lie on one device at once, wherever none could be
    added; without zeros. () for a model, or profiles, without any."""
    parts = tuple(part for name in profiles if (part := _profile(model, name)) is not None)
    most = tuple(part.at_most for part in parts)
    return tuple(
        {part.name: count for part, count in zip(parts, counts, strict=True) if count}
        for counts in _maximal(parts, most)
        if any(counts)
    )


_Layout = tuple[tuple[str, Span], ...]


def _cut_alike(
    parts: tuple[Profile, ...], total: tuple[int, ...], devices: int
) -> tuple[_Layout, ...] | None:
    if not devices or any(count % devices for count in total):
        return None
    one = _layout(parts, tuple(count // devices for count in total))
    return None if one is None else (one,) * devices


def _cut_each(
    parts: tuple[Profile, ...], total: tuple[int, ...], devices: int
) -> tuple[_Layout, ...] | None:
    """Depth first over devices; a device takes a maximal part of what is left (never worse)."""
    dead: set[tuple[tuple[int, ...], int]] = set()

    def fill(left: tuple[int, ...], free: int) -> tuple[_Layout, ...] | None:
        if not any(left):
            return ((),) * free
        if not free or (left, free) in dead:
            return None
        for share in _maximal(parts, left):
            rest = tuple(a - b for a, b in zip(left, share, strict=True))
            below = fill(rest, free - 1)
            if below is not None:
                return (_layout(parts, share) or (), *below)
        dead.add((left, free))
        return None

    return fill(total, devices)


def _maximal(parts: tuple[Profile, ...], left: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Each choice of at most `left` of the parts that fits one device and can't be added to."""
    most = tuple(min(n, part.at_most) for n, part in zip(left, parts, strict=True))

    def choose(prefix: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(prefix) == len(parts):
            more = (
                (*prefix[:i], n + 1, *prefix[i + 1 :]) for i, n in enumerate(prefix) if n < most[i]
            )
            if all(_layout(parts, bigger) is None for bigger in more):
                yield prefix
            return
        for n in range(most[len(prefix)], -1, -1):
            padded = (*prefix, n, *(0 for _ in range(len(parts) - len(prefix) - 1)))
            if _layout(parts, padded) is not None:
                yield from choose((*prefix, n))

    return choose(())


@cache
def _layout(parts: tuple[Profile, ...], counts: tuple[int, ...]) -> _Layout | None:
    """Legal spans for that many of each part on one device, by start; None when there are none."""
    if sum(n for part, n in zip(parts, counts, strict=True) if part.media) > 1:
        return None
    queue = [part for part, n in zip(parts, counts, strict=True) for _ in range(n)]

    def lay(i: int, taken: int, low: int) -> _Layout | None:
        if i == len(queue):
            return ()
        part = queue[i]
        for start in part.starts:
            span = Span(start, start + part.memory)
            if start < low or mask(span) & taken:
                continue
            alike = i + 1 < len(queue) and queue[i + 1] is part
            rest = lay(i + 1, taken | mask(span), start if alike else 0)
            if rest is not None:
                return ((part.name, span), *rest)
        return None

    found = lay(0, 0, 0)
    return None if found is None else tuple(sorted(found, key=lambda item: item[1]))
