"""The slow, obvious way to look for a place: every device, every start, every domain."""

from collections.abc import Iterator

from scheduler.core.plan import Place
from scheduler.core.snapshot import (
    DeviceMode,
    FlavorKind,
    NodeView,
    PodSetView,
    Snapshot,
    TopologyView,
)
from scheduler.core.units import WHOLE_DEVICE, FlavorId, Span
from tests.core.build import BY_NAME


def domains(of: Snapshot, usable: list[NodeView], asked: TopologyView) -> list[list[NodeView]]:
    """The nodes that a gang may be on together: all, unless it has to be in one domain."""
    if not asked.required:
        return [usable]
    if asked.level not in of.levels:
        return []
    depth = of.levels.index(asked.level) + 1
    found: dict[tuple[str, ...], list[NodeView]] = {}
    for node in usable:
        if len(node.topology) >= depth and node.topology[depth - 1]:
            found.setdefault(node.topology[:depth], []).append(node)
    return list(found.values())


def everywhere(on: NodeView, pod_set: PodSetView, flavor: FlavorId) -> Iterator[Place]:
    """One pod with one device at every thinkable span of the node, legal or not."""
    kind = BY_NAME[flavor].kind
    for device in on.devices:
        if kind is FlavorKind.WHOLE:
            spans = [WHOLE_DEVICE]
        elif kind is FlavorKind.SHARE:
            width = 1000 // device.replicas
            taken = -(-pod_set.gpu_milli * device.replicas // 1000) * width
            starts = range(0, device.replicas * width - taken + 1, max(width, 100))
            spans = [Span(start, start + taken) for start in starts]
        else:
            axis = 8 if device.mode is not DeviceMode.WHOLE else 0
            spans = [Span(s, e) for s in range(axis) for e in range(s + 1, axis + 1)]
        for span in spans:
            yield Place(
                pod_set.id,
                0,
                on.id,
                flavor,
                pod_set.gpu_milli,
                pod_set.cpu_milli,
                pod_set.memory_mib,
                ((device.id, span),),
            )
    if kind is FlavorKind.CPU:
        cores, memory = pod_set.cpu_milli, pod_set.memory_mib
        yield Place(pod_set.id, 0, on.id, flavor, cores, cores, memory)
