"""Pods of others that start together, and the workload that they ask for. No cluster is asked, and
nothing is stored."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from clusters.caught import CaughtPod, OwnerRef
from clusters.models import Cluster
from scheduler.core.failures import Retries
from scheduler.loop.catching.asking import Asks, Devices, Offers, Refused
from scheduler.models import CaughtPod as Row
from scheduler.services.specs import (
    MAX_GRACE_S,
    MAX_POD_SETS,
    MAX_PODS,
    MAX_RUN_TIME_S,
    PRIORITY_CLASSES,
    PodSetSpec,
    WorkloadSpec,
)

NAME = 40
"""The longest name of a pod set."""


@dataclass(frozen=True, slots=True)
class Group:
    """Pods that start together: `sizes` is how many, by part."""

    key: str
    name: str
    sizes: Mapping[str, int]
    owner: OwnerRef | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A caught pod that is no workload's yet."""

    row: Row
    says: CaughtPod
    asks: Asks
    offers: Offers

    def requests_said(self) -> list[dict[str, Any]]:  # Any: JSON
        return [asdict(each) for each in self.asks.requests]

    def devices(self) -> Devices:
        """Raises Refused."""
        return self.offers.devices(asks=self.asks, named=self.says.flavors)


def spec(
    cluster: Cluster, group: Group, pods: Sequence[Waiting], *, labels: Collection[str]
) -> WorkloadSpec:
    """What they ask for together, with those of their labels. Raises Refused."""
    by_part = {pod.says.part: pod for pod in reversed(pods)}
    missing = sorted(group.sizes.keys() - by_part.keys())
    if missing:
        raise Refused(f"No pod of its part {missing[0]} is there yet.")
    if len(group.sizes) > MAX_POD_SETS or sum(group.sizes.values()) > MAX_PODS:
        raise Refused(
            f"More than {MAX_PODS} pods, or {MAX_POD_SETS} kinds of them, start together."
        )
    said = pods[0].says
    if said.priority not in ("", *PRIORITY_CLASSES):
        raise Refused(
            f"Its label says priority {said.priority!r}; known: {', '.join(PRIORITY_CLASSES)}."
        )
    limits = [by_part[part].says.run_time_limit_s for part in group.sizes]
    limit_s = max((each for each in limits if each), default=None) if all(limits) else None
    return WorkloadSpec(
        name=group.name[:100],
        pod_sets=tuple(
            _pod_set(part, size, [by_part[part], *(pod for pod in pods if pod.says.part == part)])
            for part, size in group.sizes.items()
        ),
        priority_class=said.priority,
        run_time_limit_s=None if limit_s is None else min(limit_s, MAX_RUN_TIME_S),
        clusters=(cluster.name,),
        labels={key: value for key, value in said.labels if key in labels},
        # Its controller makes new pods, or not: of those there will be another workload.
        retries=Retries(limit=0, on=()),
        grace_s=min(max(pod.says.grace_s for pod in pods), MAX_GRACE_S),
        is_caught=True,
    )


def _pod_set(part: str, size: int, pods: Sequence[Waiting]) -> PodSetSpec:
    """As the first of the pods is; all are of the part."""
    pod, of = pods[0], pods[0].devices()
    return PodSetSpec(
        name=set_name(part),
        count=size,
        min_count=size,
        cpu_milli=pod.asks.cpu_milli,
        memory_mib=pod.asks.memory_mib,
        gpu_count=of.gpu_count,
        gpu_milli=of.gpu_milli,
        flavors=of.flavors,
        any_order=len(of.flavors) > 1 and not pod.says.flavors,
        image=pod.says.image,
        images_beside=tuple({image: None for each in pods for image in each.says.images}),
    )


def set_name(part: str) -> str:
    """What the pod set of a part is called; no two parts alike, however long they are."""
    if len(part) <= NAME:
        return part or "main"
    return f"{part[: NAME - 9]}-{sha256(part.encode()).hexdigest()[:8]}"
