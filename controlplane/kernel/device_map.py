"""The map of clusters, nodes and devices: who holds which span. Pure, drawn by
`templates/charts/device_map.html`; what must not live here is as in `charts.py`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from controlplane.kernel.charts import TONES, percent

WHOLE = 1000
"""The axis of a device that is not cut: thousandths of it."""
DETAIL_DEVICES = 512
"""Above this many devices the map shows one cell a node instead of every span."""


@dataclass(frozen=True, slots=True)
class Holding:
    """[start, end) of a device's axis in someone's hands."""

    start: int
    end: int
    owner: str
    state: str = "RUNNING"
    label: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Device:
    """`axis` is the number of its memory slices with MIG, WHOLE for a whole or shared device.

    `cuts` are where slices begin and end; None marks every slice.
    """

    name: str
    axis: int
    holdings: Sequence[Holding] = ()
    healthy: bool = True
    cuts: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """`state` is "" when all is well, else a state that `_status.html` knows."""

    name: str
    model: str
    devices: Sequence[Device]
    state: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Cluster:
    name: str
    nodes: Sequence[Node]
    state: str = ""


@dataclass(frozen=True, slots=True)
class SpanView:
    """`look`: solid, starting or leaving; the text of a `small` one hides on a phone."""

    x: str
    width: str
    tone: int
    look: str
    text: str
    small: bool
    title: str


@dataclass(frozen=True, slots=True)
class DeviceView:
    name: str
    title: str
    healthy: bool
    marks: tuple[str, ...]
    spans: tuple[SpanView, ...]


@dataclass(frozen=True, slots=True)
class NodeView:
    name: str
    model: str
    state: str
    url: str
    free: str
    held: str
    title: str
    level: int
    devices: tuple[DeviceView, ...]


@dataclass(frozen=True, slots=True)
class ClusterView:
    name: str
    state: str
    free: str
    nodes: tuple[NodeView, ...]


@dataclass(frozen=True, slots=True)
class Owner:
    name: str
    code: str
    tone: int


@dataclass(frozen=True, slots=True)
class HoldingRow:
    cluster: str
    node: str
    device: str
    span: str
    owner: str
    label: str
    url: str
    state: str


@dataclass(frozen=True, slots=True)
class DeviceMap:
    """`detail` False: more devices than a page can show; each node is one cell then."""

    id: str
    title: str
    desc: str
    detail: bool
    clusters: tuple[ClusterView, ...]
    owners: tuple[Owner, ...]
    looks: tuple[str, ...]
    rows: tuple[HoldingRow, ...]


LOOKS = {
    "ADMITTED": "starting",
    "BOUND": "starting",
    "PREEMPTING": "leaving",
    "CANCELLING": "leaving",
}


def edges(spans: Iterable[tuple[int, int]], axis: int) -> list[int]:
    """Where slices begin and end, the edges of the device left out: a device's `cuts`."""
    return sorted({edge for span in spans for edge in span} - {0, axis})


def device_map(
    *,
    id: str,
    title: str,
    clusters: Sequence[Cluster],
    owners: Sequence[str] | None = None,
) -> DeviceMap:
    """Cluster -> node -> device -> who holds which span of it.

    `owners` fixes the colours: give all tenants in a stable order, else the map's own owners by
    name are taken and a newcomer may shift them. Who comes after the last tone is as grey as that.
    """
    devices = [d for c in clusters for n in c.nodes for d in n.devices]
    found = sorted({h.owner for d in devices for h in d.holdings})
    codes = owner_codes(owners if owners is not None else found)
    palette = {
        name: Owner(name, code, min(n + 1, TONES)) for n, (name, code) in enumerate(codes.items())
    }
    detail = len(devices) <= DETAIL_DEVICES
    looks = {LOOKS.get(h.state, "solid") for d in devices for h in d.holdings}
    if not all(device.healthy for device in devices):
        looks.add("unhealthy")
    return DeviceMap(
        id=id,
        title=title,
        desc=f"{_free(devices)} of {len(clusters)} clusters. "
        + "; ".join(
            f"{c.name}: {_free([d for n in c.nodes for d in n.devices])}" for c in clusters
        ),
        detail=detail,
        clusters=tuple(_cluster_view(c, palette, detail=detail) for c in clusters),
        owners=tuple(palette[name] for name in palette if name in found),
        looks=tuple(look for look in ("starting", "leaving", "unhealthy") if look in looks),
        rows=tuple(_rows(clusters)) if detail else (),
    )


def owner_codes(names: Sequence[str]) -> Mapping[str, str]:
    """The shortest beginning of each name that no other name shares, at most 3 letters, else a
    number: {"vision": "Vi", "voice": "Vo", "nlp": "N"}."""
    codes: dict[str, str] = {}
    for number, name in enumerate(names, start=1):
        others = [other.casefold() for other in names if other != name]
        for length in (1, 2, 3):
            start = name[:length]
            if not any(other.startswith(start.casefold()) for other in others):
                codes[name] = start[:1].upper() + start[1:]
                break
        else:
            codes[name] = str(number)
    return codes


def _held(device: Device) -> float:
    return sum(h.end - h.start for h in device.holdings) / device.axis


def _free_count(devices: Sequence[Device]) -> float:
    """In whole devices; an unhealthy one has nothing free."""
    return sum(1 - _held(device) for device in devices if device.healthy)


def _free(devices: Sequence[Device]) -> str:
    return f"{_number(_free_count(devices))} of {len(devices):,} GPUs free"


def _number(count: float) -> str:
    return f"{count:,.2f}".rstrip("0").rstrip(".") or "0"


def _cluster_view(cluster: Cluster, palette: Mapping[str, Owner], *, detail: bool) -> ClusterView:
    devices = [device for node in cluster.nodes for device in node.devices]
    return ClusterView(
        name=cluster.name,
        state=cluster.state,
        free=_free(devices) if devices else "",
        nodes=tuple(_node_view(node, palette, detail=detail) for node in cluster.nodes),
    )


def _node_view(node: Node, palette: Mapping[str, Owner], *, detail: bool) -> NodeView:
    total = len(node.devices)
    free = _free_count(node.devices)
    text = f"{_number(free)} of {total} free"
    return NodeView(
        name=node.name,
        model=node.model,
        state=node.state,
        url=node.url,
        free=text if total else "no GPU",
        held=_number(total - free),
        title=f"{node.name}: {text}" + (f", {node.state.lower()}" if node.state else ""),
        level=math.ceil(4 * (total - free) / total) if total else 0,
        devices=tuple(_device_view(d, palette) for d in node.devices) if detail else (),
    )


def _device_view(device: Device, palette: Mapping[str, Owner]) -> DeviceView:
    held = sorted(device.holdings, key=lambda holding: (holding.start, holding.end))
    words = [_span_words(holding, device.axis) for holding in held]
    state = "" if device.healthy else ", unhealthy"
    every = range(1, device.axis) if device.axis != WHOLE else ()
    return DeviceView(
        name=device.name,
        title=f"GPU {device.name}{state}: " + ("; ".join(words) or "free"),
        healthy=device.healthy,
        marks=tuple(
            percent(n, device.axis) for n in (every if device.cuts is None else device.cuts)
        ),
        spans=tuple(_span_view(holding, device.axis, palette) for holding in held),
    )


def _span_view(holding: Holding, axis: int, palette: Mapping[str, Owner]) -> SpanView:
    share = (holding.end - holding.start) / axis
    owner = palette.get(holding.owner)
    if share >= 0.75:
        text = holding.owner
    elif share >= 0.1:
        text = owner.code if owner else ""
    else:
        text = ""
    return SpanView(
        x=percent(holding.start, axis),
        width=percent(holding.end - holding.start, axis),
        tone=owner.tone if owner else 0,
        look=LOOKS.get(holding.state, "solid"),
        text=text,
        small=share < 0.25,
        title=_span_words(holding, axis),
    )


def _span_words(holding: Holding, axis: int) -> str:
    label = f" {holding.label}" if holding.label else ""
    state = LOOKS.get(holding.state, "")
    extra = f", {state}" if state else ""
    return f"{holding.owner}{label} on {_span_text(holding, axis)}{extra}"


def _span_text(holding: Holding, axis: int) -> str:
    if holding.start == 0 and holding.end == axis:
        return "the whole device"
    if axis == WHOLE:
        return f"{_number((holding.end - holding.start) / axis)} of it"
    if holding.end - holding.start == 1:
        return f"slice {holding.start} of {axis}"
    return f"slices {holding.start}-{holding.end - 1} of {axis}"


def _rows(clusters: Sequence[Cluster]) -> list[HoldingRow]:
    return [
        HoldingRow(
            cluster=cluster.name,
            node=node.name,
            device=device.name,
            span=_span_text(holding, device.axis),
            owner=holding.owner,
            label=holding.label,
            url=holding.url,
            state=holding.state,
        )
        for cluster in clusters
        for node in cluster.nodes
        for device in node.devices
        for holding in sorted(device.holdings, key=lambda one: one.start)
    ]
