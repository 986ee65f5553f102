"""Allocation curves as one SVG: all of it, and what matters of it enlarged. Pure.

The colours follow the reader's light or dark; every line has a dash of its own besides.
"""

import csv
from collections.abc import Sequence
from datetime import date
from html import escape
from typing import NamedTuple

POLICIES = ("FGD", "BestFit")
_TRACE = "openb_pod_list_default"
_STYLE = """
svg { background: #fff; color: #1b2430; font: 13px system-ui, sans-serif }
text { fill: currentColor } .head { font-weight: 600; font-size: 16px }
.grid { stroke: currentColor; stroke-opacity: .15 } .ideal { stroke: currentColor; opacity: .45 }
polyline, .ideal { fill: none; stroke-width: 2 }
.line-0 { color: #0b62c4 } .line-1 { color: #b3400a } .line-2 { color: #6a3fa0 }
polyline, circle { stroke: currentColor } circle { fill: currentColor }
.line-1 polyline { stroke-dasharray: 8 4 } .line-2 polyline { stroke-dasharray: 2 4 }
.ideal { stroke-dasharray: 1 5 }
@media (prefers-color-scheme: dark) {
  svg { background: #141a21; color: #e6eaf0 }
  .line-0 { color: #6db3ff } .line-1 { color: #ff9d6b } .line-2 { color: #c5a3ff }
}
"""


class Point(NamedTuple):
    """Both in per cent of the GPUs."""

    arrived_pct: float
    alloc_pct: float


class Line(NamedTuple):
    name: str
    points: Sequence[Point]


class Panel(NamedTuple):
    """`left`, `top`, `width` and `height` in pixels; (first, last, step) of each axis in per
    cent."""

    title: str
    left: int
    top: int
    width: int
    height: int
    x: tuple[int, int, int]
    y: tuple[int, int, int]

    def at(self, point: Point) -> tuple[float, float]:
        across = (point.arrived_pct - self.x[0]) / (self.x[1] - self.x[0])
        up = (point.alloc_pct - self.y[0]) / (self.y[1] - self.y[0])
        return self.left + across * self.width, self.top + (1 - up) * self.height

    def shows(self, point: Point) -> bool:
        return (
            self.x[0] <= point.arrived_pct <= self.x[1]
            and self.y[0] <= point.alloc_pct <= self.y[1]
        )


PANELS = (
    Panel("All of it", 60, 110, 400, 300, (0, 130, 10), (0, 100, 10)),
    Panel("From 85 % on", 540, 110, 400, 300, (85, 130, 5), (85, 100, 5)),
)
_SIZE = 1000, 490


def published(text: str) -> list[Line]:
    """The curves of FGD's authors, from 90 % on, of their CSV. Raises ValueError when it has not
    the columns, or lacks a policy's rows."""
    rows = csv.DictReader(text.splitlines())
    wanted = ("trace", "policy", "arrived_pct", "alloc_pct")
    if lacking := [name for name in wanted if name not in (rows.fieldnames or ())]:
        raise ValueError(f"the published curves lack the column {lacking[0]}")
    found: dict[str, list[Point]] = {name: [] for name in POLICIES}
    for row in rows:
        if row["trace"] == _TRACE and row["policy"] in found:
            point = Point(float(row["arrived_pct"]), float(row["alloc_pct"]))
            found[row["policy"]].append(point)
    for name, points in found.items():
        if not points:
            raise ValueError(f"the published curves have no row of {name} for {_TRACE}")
    return [Line(f"{name}, published", sorted(points)) for name, points in found.items()]


def drawn(lines: Sequence[Line], *, seed: int, day: date) -> str:
    """The SVG, a document of its own. Up to three lines, the first is that of `seed` and `day`."""
    title = f"openb's 6,212 GPUs, 130 % asked for through the whole of Berth: seed {seed}, {day}"
    ends = "; ".join(f"{line.name} {line.points[-1].alloc_pct:.2f} %" for line in lines)
    note = (
        "Published: means of ten seeds, which drop what does not fit; Berth keeps it queued."
        " Dotted: all that is asked for."
    )
    width, height = _SIZE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        ' role="img" aria-labelledby="title desc">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">GPUs allocated in the end: {escape(ends)}.</desc>',
        f"<style>{_STYLE}</style>",
        _text(24, 36, title, "head"),
        _text(24, 60, note),
        *(part for panel in PANELS for part in _panel(panel, lines)),
        *(part for number, line in enumerate(lines) for part in _key(number, line)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _panel(panel: Panel, lines: Sequence[Line]) -> list[str]:
    bottom, right = panel.top + panel.height, panel.left + panel.width
    parts = [_text(panel.left, panel.top - 14, f"{panel.title}: allocated % by arrived %")]
    for value in range(panel.x[0], panel.x[1] + 1, panel.x[2]):
        across, _ = panel.at(Point(value, panel.y[0]))
        parts.append(_rule(across, panel.top, across, bottom))
        parts.append(_text(across, bottom + 18, str(value), anchor="middle"))
    for value in range(panel.y[0], panel.y[1] + 1, panel.y[2]):
        _, up = panel.at(Point(panel.x[0], value))
        parts.append(_rule(panel.left, up, right, up))
        parts.append(_text(panel.left - 8, up + 4, str(value), anchor="end"))
    least = max(panel.x[0], panel.y[0])
    parts.append(_rule(*panel.at(Point(least, least)), *panel.at(Point(100, 100)), "ideal"))
    for number, line in enumerate(lines):
        seen = [point for point in line.points if panel.shows(point)]
        spots = [panel.at(point) for point in seen]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        parts.append(f'<g class="line-{number}"><polyline points="{path}"/>')
        for point, (x, y) in zip(seen, spots, strict=True):
            said = f"{line.name}: {point.alloc_pct:.2f} % of {point.arrived_pct:.1f} %"
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.5"><title>{escape(said)}</title></circle>'
            )
        parts.append("</g>")
    return parts


def _key(number: int, line: Line) -> list[str]:
    left, top, end = 60 + 310 * number, _SIZE[1] - 24, line.points[-1]
    sample = f"{left},{top - 4} {left + 36},{top - 4}"
    said = f"{line.name}: {end.alloc_pct:.2f} % at {end.arrived_pct:.0f} %"
    return [
        f'<g class="line-{number}"><polyline points="{sample}"/></g>',
        _text(left + 46, top, said),
    ]


def _rule(x1: float, y1: float, x2: float, y2: float, look: str = "grid") -> str:
    return f'<line class="{look}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, look: str = "", *, anchor: str = "start") -> str:
    named = f' class="{look}"' if look else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
