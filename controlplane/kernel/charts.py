"""Stacked bars and bullets: pure functions from figures to rectangles, words and table rows.

What must not live here: HTML, Django, queries. `templates/charts/*.html` draws what is returned;
the map of devices is in `device_map.py`.

The drawings have no viewBox: every x and width is a percentage of the box and goes into an SVG
attribute as it is, so a chart fills 390 or 1440 pixels and its text stays the size of the page's.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

TONES = 8
"""Colours of a chart, `tone-1` to `tone-8` in app.css; even ones carry a pattern besides."""
OTHERS = "Others"


def percent(part: float, whole: float) -> str:
    """ "12.5%": an SVG length; 0% when the whole is nothing."""
    return f"{100 * part / whole:.3f}".rstrip("0").rstrip(".") + "%" if whole else "0%"


@dataclass(frozen=True, slots=True)
class Series:
    """One layer of the stack: a value for each column, oldest first."""

    name: str
    values: Sequence[Decimal]


@dataclass(frozen=True, slots=True)
class Segment:
    y: str
    height: str
    tone: int
    pattern: bool


@dataclass(frozen=True, slots=True)
class Column:
    """One bar. `tick` says where its label shows: "always", only on a "wide" chart, or ""."""

    label: str
    middle: str
    x: str
    width: str
    slot_x: str
    slot_width: str
    tick: str
    summary: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class GridLine:
    y: str
    label: str


@dataclass(frozen=True, slots=True)
class LegendEntry:
    name: str
    tone: int
    pattern: bool
    total: str


@dataclass(frozen=True, slots=True)
class TableRow:
    label: str
    cells: tuple[str, ...]
    total: str


@dataclass(frozen=True, slots=True)
class StackedBars:
    id: str
    title: str
    desc: str
    column_word: str
    columns: tuple[Column, ...]
    grid: tuple[GridLine, ...]
    legend: tuple[LegendEntry, ...]
    rows: tuple[TableRow, ...]
    total: str

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw: no column, or none above zero."""
        return not any(column.segments for column in self.columns)


def stacked_bars(
    *,
    id: str,
    title: str,
    labels: Sequence[str],
    series: Sequence[Series],
    unit: Callable[[Decimal], str] = str,
    column_word: str = "Day",
) -> StackedBars:
    """Columns of stacked values, such as spend by flavor and day.

    The first series lies at the bottom. From the ninth on they are summed as "Others". A negative
    value (a correction) is not drawn but stands in the table and in the totals. Raises ValueError
    when a series has another number of values than there are labels.
    """
    for one in series:
        if len(one.values) != len(labels):
            raise ValueError(f"{one.name}: {len(one.values)} values for {len(labels)} labels")
    layers = _at_most(series, TONES)
    drawn = [sum((max(s.values[n], Decimal(0)) for s in layers), Decimal(0))
             for n in range(len(labels))]  # fmt: skip
    top = _nice_top(max(drawn, default=Decimal(0)))
    columns = tuple(_column(n, labels, layers, top=top, unit=unit) for n in range(len(labels)))
    totals = [sum(layer.values, Decimal(0)) for layer in layers]
    return StackedBars(
        id=id,
        title=title,
        desc=_stack_desc(labels, layers, totals, drawn, unit),
        column_word=column_word,
        columns=columns,
        grid=tuple(GridLine(percent(4 - n, 4), unit(top * n / 4)) for n in range(1, 5)),
        legend=tuple(
            LegendEntry(layer.name, n + 1, _patterned(n + 1), unit(total))
            for n, (layer, total) in enumerate(zip(layers, totals, strict=True))
        ),
        rows=tuple(
            TableRow(
                label,
                tuple(unit(layer.values[n]) for layer in layers),
                unit(sum((layer.values[n] for layer in layers), Decimal(0))),
            )
            for n, label in enumerate(labels)
        ),
        total=unit(sum(totals, Decimal(0))),
    )


def _at_most(series: Sequence[Series], count: int) -> list[Series]:
    if len(series) <= count:
        return list(series)
    rest = series[count - 1 :]
    sums = [sum(values, Decimal(0)) for values in zip(*(one.values for one in rest), strict=True)]
    return [*series[: count - 1], Series(OTHERS, sums)]


def _patterned(tone: int) -> bool:
    return tone % 2 == 0


def _column(
    n: int,
    labels: Sequence[str],
    layers: Sequence[Series],
    *,
    top: Decimal,
    unit: Callable[[Decimal], str],
) -> Column:
    count = len(labels)
    slot = 100 / count
    width = min(slot * 0.72, 10)
    base = Decimal(0)
    segments = []
    for tone, layer in enumerate(layers, start=1):
        value = layer.values[n]
        if value <= 0:
            continue
        base += value
        segments.append(
            Segment(
                y=percent(float(top - base), float(top)),
                height=percent(float(value), float(top)),
                tone=tone,
                pattern=_patterned(tone),
            )
        )
    values = [f"{layer.name} {unit(layer.values[n])}" for layer in layers if layer.values[n]]
    total = unit(sum((layer.values[n] for layer in layers), Decimal(0)))
    return Column(
        label=labels[n],
        middle=percent((n + 0.5) * slot, 100),
        x=percent((n + 0.5) * slot - width / 2, 100),
        width=percent(width, 100),
        slot_x=percent(n * slot, 100),
        slot_width=percent(slot, 100),
        tick=_tick(n, count),
        summary="\n".join([f"{labels[n]}: {total}", *values]),
        segments=tuple(segments),
    )


def _tick(n: int, count: int) -> str:
    """At most 10 labels on a wide chart and 5 of them on a narrow one, the newest column first."""
    step = math.ceil(count / 10)
    from_end = count - 1 - n
    if from_end % step:
        return ""
    return "always" if count <= 5 or from_end % (2 * step) == 0 else "wide"


def _nice_top(highest: Decimal) -> Decimal:
    """The end of the axis: the next of 1, 2, 2.5, 4, 5, 8 times a power of ten; 0 for nothing."""
    if highest <= 0:
        return Decimal(0)
    power = Decimal(10) ** highest.adjusted()
    for step in (Decimal(1), Decimal(2), Decimal("2.5"), Decimal(4), Decimal(5), Decimal(8)):
        if step * power >= highest:
            return step * power
    return 10 * power


def _stack_desc(
    labels: Sequence[str],
    layers: Sequence[Series],
    totals: Sequence[Decimal],
    drawn: Sequence[Decimal],
    unit: Callable[[Decimal], str],
) -> str:
    if not labels or not layers:
        return "Nothing yet."
    peak = max(range(len(labels)), key=lambda n: (drawn[n], -n))
    parts = ", ".join(
        f"{layer.name} {unit(total)}" for layer, total in zip(layers, totals, strict=True)
    )
    return (
        f"{labels[0]} to {labels[-1]}: {unit(sum(totals, Decimal(0)))} in all. "
        f"Highest: {labels[peak]} with {unit(drawn[peak])}. {parts}."
    )


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the bar: "own" within nominal, "borrowed" beyond it, "over" beyond the limit."""

    kind: str
    x: str
    width: str


@dataclass(frozen=True, slots=True)
class Bullet:
    """`tone` is "idle", "own", "borrowed", "full" or "over"; `limit_x` is "" without a limit."""

    id: str
    title: str
    desc: str
    tone: str
    parts: tuple[Part, ...]
    nominal_x: str
    nominal_label: str
    limit_x: str
    limit_label: str
    used_label: str
    note: str


def bullet(
    *,
    id: str,
    title: str,
    used: int,
    nominal: int,
    borrowing_limit: int | None = 0,
    unit: Callable[[int], str] = str,
) -> Bullet:
    """What is used of a quota: a bar against its nominal amount and the most it may borrow to.

    All in the same unit (`_milli`). `borrowing_limit` is what may come on top of nominal; None
    means no limit. Usage above nominal + limit happens after a cut and shows as "over".
    """
    limit = None if borrowing_limit is None else nominal + borrowing_limit
    most = max(used, nominal, limit or 0)
    axis = float(most) if limit is not None else most * 1.25
    own = min(used, nominal)
    borrowed = max(0, (used if limit is None else min(used, limit)) - nominal)
    over = 0 if limit is None else max(0, used - limit)
    pieces = (("own", 0, own), ("borrowed", nominal, borrowed), ("over", limit or 0, over))
    return Bullet(
        id=id,
        title=title,
        desc=_bullet_desc(used, nominal, limit, unit),
        tone=_bullet_tone(used, nominal, limit),
        parts=tuple(
            Part(kind, percent(start, axis), percent(width, axis))
            for kind, start, width in pieces
            if width
        ),
        nominal_x=percent(nominal, axis),
        nominal_label=unit(nominal),
        limit_x="" if limit is None or limit == nominal else percent(limit, axis),
        limit_label="" if limit is None else unit(limit),
        used_label=unit(used),
        note=_bullet_note(used, nominal, limit, unit),
    )


def _bullet_tone(used: int, nominal: int, limit: int | None) -> str:
    if limit is not None and used > limit:
        return "over"
    if not used:
        return "idle"
    if limit is not None and used == limit:
        return "full"
    return "borrowed" if used > nominal else "own"


def _bullet_note(used: int, nominal: int, limit: int | None, unit: Callable[[int], str]) -> str:
    if limit is not None and used > limit:
        return f"{unit(used - limit)} over"
    if used > nominal:
        return f"{unit(used - nominal)} borrowed"
    return f"{unit(nominal - used)} free"


def _bullet_desc(used: int, nominal: int, limit: int | None, unit: Callable[[int], str]) -> str:
    if limit is None:
        reach = "no limit on borrowing"
    elif limit == nominal:
        reach = "no borrowing"
    else:
        reach = f"up to {unit(limit)} with borrowing"
    note = _bullet_note(used, nominal, limit, unit)
    return f"{unit(used)} used of {unit(nominal)}, {reach}. {note}."
