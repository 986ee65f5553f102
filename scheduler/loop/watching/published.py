"""Pure: what drivers publish of devices, joined to the nodes that they are in.

A pool is some of what one driver publishes of one node, mostly all of it, in parts. While some of
them are missing, or are of an older generation, its devices are known and take nothing new. So do
devices that make no sense: each of those is told.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from clusters.port import MOST_DEVICES, DeviceReport, NodeReport, SliceReport
from clusters.published import Counters, PublishedDevice, ResourceSliceReport
from scheduler.core.node import mig


class Place(NamedTuple):
    """Which device something is, and which memory slices of it; 0 and 0 for all of it."""

    uuid: str
    start: int
    end: int


class Published:
    """What one cluster's drivers publish now, and its nodes as they tell of themselves."""

    def __init__(self) -> None:
        self._slices: dict[str, dict[str, ResourceSliceReport]] = {}
        self._homes: dict[str, str] = {}
        self._nodes: dict[str, NodeReport] = {}
        self._told: dict[str, tuple[str, ...]] = {}

    @property
    def told(self) -> tuple[str, ...]:
        """What is not used, and why, node by node."""
        return tuple(each for _, told in sorted(self._told.items()) for each in told)

    def listed(self, slices: Iterable[ResourceSliceReport]) -> list[NodeReport]:
        """All that is published; the nodes, with their devices."""
        self._slices, self._homes, self._told = {}, {}, {}
        for each in slices:
            self._note(each)
        return [self._joined(node) for node in self._nodes.values()]

    def changed(
        self, slices: Iterable[ResourceSliceReport], gone: Collection[str]
    ) -> list[NodeReport]:
        """Some are new or another, those of the names in `gone` are no more; the nodes that this
        is about, with their devices."""
        about = {self._homes[name] for name in gone if name in self._homes}
        for name in gone:
            self._forget(name)
        for each in slices:
            about |= {self._homes.get(each.name, each.node), each.node}
            self._note(each)
        return [self._joined(self._nodes[name]) for name in sorted(about & self._nodes.keys())]

    def nodes(
        self, reports: Iterable[NodeReport], *, gone: Iterable[str] = (), complete: bool = False
    ) -> list[NodeReport]:
        """Some nodes, or all there are, tell of themselves; they, with their devices."""
        if complete:
            self._nodes = {}
            self._told = {}
        for name in gone:
            self._nodes.pop(name, None)
            self._told.pop(name, None)
        reports = list(reports)
        self._nodes |= {report.name: report for report in reports}
        return [self._joined(report) for report in reports]

    def places(self) -> dict[tuple[str, str, str], Place]:
        """By driver, pool and name. Of slices that tell no place all of their device is meant."""
        found = {}
        for parts in self._slices.values():
            for part in sorted(parts.values(), key=lambda part: part.generation):
                for each in part.devices:
                    place = Place(each.parent or each.uuid, each.start, each.end)
                    found[part.driver, part.pool, each.name] = place
        return found

    def _note(self, each: ResourceSliceReport) -> None:
        self._forget(each.name)
        self._homes[each.name] = each.node
        self._slices.setdefault(each.node, {})[each.name] = each

    def _forget(self, name: str) -> None:
        home = self._homes.pop(name, None)
        if home is not None:
            del self._slices[home][name]

    def _joined(self, node: NodeReport) -> NodeReport:
        joined, told = join(node, self._slices.get(node.name, {}).values())
        self._told[node.name] = tuple(f"{node.name}: {each}" for each in told)
        return joined


def join(
    node: NodeReport, slices: Iterable[ResourceSliceReport]
) -> tuple[NodeReport, Sequence[str]]:
    """The node with the devices that drivers publish of it, where any does, and what of them is
    not used."""
    pools: dict[tuple[str, str], list[ResourceSliceReport]] = defaultdict(list)
    for each in slices:
        if each.devices or each.counters or each.left_out:
            pools[each.driver, each.pool].append(each)
    if not pools:
        return node, [node.unused] if node.unused else []
    driver, _ = min(pools)
    used = [parts for (name, _), parts in sorted(pools.items()) if name == driver]
    told = [
        f"the pool {pool} of {name} is not used beside {driver}'s"
        for name, pool in sorted(pools)
        if name != driver
    ]
    if node.devices:
        told.append(f"{driver} and a device plugin both offer its devices: take one of them away")
    if node.unused:
        told.append(node.unused)
    devices, why = _of_pools(used)
    if node.devices or node.unused:
        # Both may give the same device away, each without the other's knowledge.
        devices = [replace(each, usable=False) for each in devices]
    if len(devices) > MOST_DEVICES:
        devices, why = (), [f"more than {MOST_DEVICES} devices"]
    joined = replace(
        node,
        device_driver=driver,
        devices=tuple(replace(each, ordinal=nth) for nth, each in enumerate(devices)),
        share_replicas=1,
        share_isolation="",
        mig_counts={},
        mig_single=False,
    )
    return joined, [*told, *why]


def _of_pools(
    pools: Sequence[Sequence[ResourceSliceReport]],
) -> tuple[Sequence[DeviceReport], list[str]]:
    """Of all of one driver's. What two of them tell of is one device, and takes nothing new."""
    found: dict[str, DeviceReport] = {}
    told: list[str] = []
    for parts in pools:
        devices, why = _of_pool(parts)
        told += why
        for device in devices:
            if device.uuid in found:
                told.append(f"{device.uuid} is in two pools, so it takes nothing new")
                device = replace(found[device.uuid], usable=False)
            found[device.uuid] = device
    return tuple(found.values()), told


def _of_pool(
    parts: Sequence[ResourceSliceReport],
) -> tuple[Sequence[DeviceReport], list[str]]:
    newest = max(part.generation for part in parts)
    of_newest = [part for part in parts if part.generation == newest]
    published = {each.name: each for part in of_newest for each in part.devices}
    told = [why for part in of_newest for why in part.left_out]
    incomplete = False
    wanted = of_newest[0].parts
    if len(of_newest) != wanted or any(part.parts != wanted for part in of_newest):
        incomplete = True
        told.append(
            f"of the pool {parts[0].pool} {len(of_newest)} of {wanted} parts are there, so its"
            " devices take nothing new"
        )
        # What only older parts tell is still known.
        published = {each.name: each for part in parts for each in part.devices} | published
    elif len(published) < sum(len(part.devices) for part in of_newest):
        incomplete = True
        told.append(f"the pool {parts[0].pool} has two devices of one name")
    limits = {key: most for part in of_newest for key, most in part.counters.items()}
    wholes = {each.uuid: each for each in published.values() if not each.profile}
    pieces: dict[str, list[PublishedDevice]] = defaultdict(list)
    for each in published.values():
        if each.profile:
            pieces[each.parent].append(each)
    found = []
    for uuid in sorted(wholes.keys() | pieces.keys(), key=lambda u: _place_of(wholes, pieces, u)):
        device, why = _device(uuid, wholes.get(uuid), pieces.get(uuid, ()), limits)
        found.append(replace(device, usable=device.usable and not incomplete))
        told += why
    return found, told


def _place_of(
    wholes: Mapping[str, PublishedDevice], pieces: Mapping[str, list[PublishedDevice]], uuid: str
) -> tuple[list[int], str]:
    """By the numbers in its name: gpu-10 comes after gpu-9."""
    first = wholes.get(uuid) or pieces[uuid][0]
    return [int(digits) for digits in re.findall(r"\d{1,9}", first.name)][:1], uuid


def _device(
    uuid: str,
    whole: PublishedDevice | None,
    pieces: Sequence[PublishedDevice],
    limits: Counters,
) -> tuple[DeviceReport, list[str]]:
    """One device, as a whole, cut, or to be cut."""
    first = whole or pieces[0]
    report = DeviceReport(
        ordinal=0, model=first.model, memory_mib=whole.memory_mib if whole else 0, uuid=uuid
    )
    tainted = any(each.tainted for each in ([whole] if whole else pieces))
    report = replace(report, usable=not tainted)
    if whole is None:
        return _cut(report, sorted(pieces, key=lambda each: each.start))
    if not pieces or mig.board(model=first.model) is None:
        return report, []
    if any(each.end == 0 for each in pieces):
        why = "its slices can't be asked for by their place, so it is given as a whole"
        return report, [f"{uuid}: {why}"]
    report = replace(
        report, mode="mig-dynamic", usable=not any(p.tainted for p in (whole, *pieces))
    )
    why = _lacking(first.model, pieces) or _beyond(first.model, pieces, limits)
    return (replace(report, usable=False), [f"{uuid}: {why}"]) if why else (report, [])


def _cut(
    report: DeviceReport, pieces: Sequence[PublishedDevice]
) -> tuple[DeviceReport, list[str]]:
    """One whose slices are there, from the first memory slice on."""
    report = replace(report, mode="mig-static")
    if any(p.end == 0 for p in pieces) or any(a.end > b.start for a, b in pairwise(pieces)):
        why = "where its slices lie is not told, or they lie on each other"
        return replace(report, usable=False), [f"{report.uuid}: {why}"]
    slices = tuple(SliceReport(each.profile, each.start, each.end) for each in pieces)
    return replace(report, slices=slices), []


def _lacking(model: str, pieces: Sequence[PublishedDevice]) -> str:
    """What of the places at which the planner would put a slice is not offered."""
    board = mig.board(model=model)
    offered = {(each.profile, each.start, each.end) for each in pieces}
    for profile in board.profiles if board else ():
        for span in mig.legal_spans(model=model, profile=profile.name):
            if (profile.name, span.start, span.end) not in offered:
                return (
                    f"no {profile.name} is offered at memory slice {span.start}, so it is not used"
                )
    return ""


def _beyond(model: str, pieces: Sequence[PublishedDevice], limits: Counters) -> str:
    """The counter of which some slices that the planner would put together take too much."""
    for key in sorted({key for each in pieces for key in each.consumes}):
        takers = [each for each in pieces if each.consumes.get(key)]
        by_profile: dict[str, int] = defaultdict(int)
        for each in takers:
            by_profile[each.profile] = max(by_profile[each.profile], each.consumes[key])
        if max(each.start for each in takers) < min(each.end for each in takers):
            most = max(by_profile.values())  # they lie on each other, so it is one at a time
        else:
            layouts = _layouts(model)
            most = max(sum(n * by_profile.get(p, 0) for p, n in each.items()) for each in layouts)
        if most > limits.get(key, 0):
            name = " ".join(key)
            return f"its slices take {most} of {limits.get(key, 0)} {name}, so it is not used"
    return ""


@cache
def _layouts(model: str) -> Sequence[Mapping[str, int]]:
    board = mig.board(model=model)
    names = [profile.name for profile in board.profiles] if board else []
    return mig.full_layouts(model=model, profiles=names)
