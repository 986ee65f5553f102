"""The trace's hardware and people in Berth's terms: flavors, prices, tenants, quotas. Pure.

The prices are ours: plausible per GPU and hour for the models that are on sale, and between them
for G2 and G3, whose makers the trace hides.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from zlib import crc32

from controlplane.trace.reading import QOS, BadTrace, NodeRow, PodRow

CLUSTER = "openb"
CPU = "cpu"
CPU_PRICE = Decimal("0.02")
# model → (EUR per GPU and hour, MiB of device memory), the cheapest first
MODELS: Mapping[str, tuple[Decimal, int]] = {
    "T4": (Decimal("0.35"), 15360),
    "P100": (Decimal("0.60"), 16384),
    "A10": (Decimal("0.80"), 23028),
    "G2": (Decimal("1.00"), 32768),
    "V100M16": (Decimal("1.40"), 16384),
    "V100M32": (Decimal("1.70"), 32768),
    "G3": (Decimal("2.00"), 32768),
}
# class of service → (slug, name)
TENANTS: Mapping[str, tuple[str, str]] = {
    "LS": ("ls", "Latency-sensitive"),
    "BE": ("be", "Best effort"),
    "Burstable": ("burstable", "Burstable"),
    "Guaranteed": ("guaranteed", "Guaranteed"),
}


def whole(model: str) -> str:
    """The flavor of whole GPUs of a model."""
    return model.lower()


def share(model: str) -> str:
    """The flavor of thousandths of one."""
    return f"{model.lower()}.share"


@dataclass(frozen=True, slots=True)
class Fleet:
    """The nodes, and what follows from them for a pod's choice of models."""

    nodes: Sequence[NodeRow]

    def gpus(self) -> dict[str, int]:
        """GPUs by model, in the order of MODELS. Raises BadTrace for a model without a price."""
        counted = Counter[str]()
        for node in self.nodes:
            counted[node.model] += node.gpus
        unknown = sorted(counted.keys() - MODELS.keys() - {""})
        if unknown:
            raise BadTrace(f"A node has GPUs of the model {unknown[0]!r}, which has no price.")
        return {model: counted[model] for model in MODELS if counted[model]}

    def quotas(self, pods: Iterable[PodRow]) -> dict[tuple[str, str], int]:
        """Nominal thousandths by (class of service, flavor): of all there is, the class's part in
        what all pods request. Each project may borrow the rest."""
        gpu, cores = Counter(dict.fromkeys(QOS, 0)), Counter(dict.fromkeys(QOS, 0))
        for pod in pods:
            gpu[pod.qos] += pod.requested_milli
            cores[pod.qos] += pod.cpu_milli if not pod.gpus else 0
        nominal = {}
        for model, count in self.gpus().items():
            for qos, part in _split(count * 1000, gpu).items():
                nominal[qos, whole(model)] = part
                nominal[qos, share(model)] = part
        total_cpu = sum(node.cpu_milli for node in self.nodes)
        for qos, part in _split(total_cpu, cores).items():
            nominal[qos, CPU] = part
        return nominal


class Choice:
    """Which flavors a pod accepts, in order.

    The trace leaves most pods free to use any model. Such a pod begins with a model drawn by its
    name, in proportion to the GPUs there are, and goes on from the cheapest: so no model fills up
    long before the others, and the same pod always asks for the same.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._gpus = fleet.gpus()
        shapes: dict[str, set[tuple[int, int, int]]] = {}
        for node in fleet.nodes:
            if node.gpus:
                shapes.setdefault(node.model, set()).add(
                    (node.gpus, node.cpu_milli, node.memory_mib)
                )
        self._shapes = shapes

    def flavors(self, pod: PodRow) -> tuple[str, ...]:
        """Raises BadTrace when no node could hold the pod."""
        if not pod.gpus:
            return (CPU,)
        fitting = [model for model in self._gpus if self._fits(pod, model)]
        if pod.models:
            ordered = [model for model in pod.models if model in fitting]
        else:
            ordered = self._rotated(pod.name, fitting)
        if not ordered:
            raise BadTrace(f"No node could ever hold {pod.name}.")
        name = whole if pod.gpu_milli == 1000 else share
        return tuple(name(model) for model in ordered)

    def _fits(self, pod: PodRow, model: str) -> bool:
        return any(
            pod.gpus <= gpus and pod.cpu_milli <= cpu_milli and pod.memory_mib <= memory_mib
            for gpus, cpu_milli, memory_mib in self._shapes[model]
        )

    def _rotated(self, name: str, models: list[str]) -> list[str]:
        if not models:
            return []
        edges = list(accumulate(self._gpus[model] for model in models))
        first = models[bisect_right(edges, crc32(name.encode()) % edges[-1])]
        return [first, *(model for model in models if model != first)]


def _split(total: int, weights: Mapping[str, int]) -> dict[str, int]:
    """`total` in whole parts by weight; what rounding leaves goes to the heaviest."""
    whole_weight = sum(weights.values())
    if not whole_weight:
        return dict.fromkeys(weights, total // len(weights))
    parts = {key: total * weight // whole_weight for key, weight in weights.items()}
    parts[max(weights, key=lambda key: weights[key])] += total - sum(parts.values())
    return parts
