"""What a cluster says of nodes that its autoscaler makes: frozen reports of Karpenter's node pools
and node claims, and the pods for which it makes nodes. No back end, no Django."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Amounts:
    """Of one node, or of all nodes of a pool. None is not said; of limits, that there is none."""

    cpu_milli: int | None = None
    memory_mib: int | None = None
    devices: int | None = None
    nodes: int | None = None

    def told(self) -> dict[str, int]:
        """Those that are said, by name."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class NodePoolReport:
    """One node pool. `model` is its GPUs' as flavors name it, where its template says exactly
    that, else ""; `accelerator` is what a cloud calls them in the template, "" where it says
    nothing. `used` counts the nodes that are there, and those that are being made as far as
    Karpenter knows them. Of a pool that is not `ready` no node comes, or none that
    takes Berth's pods."""

    name: str
    ready: bool = True
    model: str = ""
    accelerator: str = ""
    limits: Amounts = field(default=Amounts())
    used: Amounts = field(default=Amounts())


@dataclass(frozen=True, slots=True)
class NodeClaimReport:
    """One node that is made, or was. It is `launched` once a cloud has said yes, registered once
    it is a node of the cluster, "" before that; from `initialized_at` on it is ready, with all
    its devices allocatable."""

    name: str
    uid: str
    pool: str
    created_at: datetime
    launched: bool = False
    registered: bool = False
    node: str = ""
    initialized_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Autoscaling:
    """All that there is of both. `left_out` is as in a listing."""

    pools: tuple[NodePoolReport, ...] = ()
    claims: tuple[NodeClaimReport, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlaceholderRequest:
    """A pod that does nothing, for which an autoscaler makes a node of that pool: it asks for what
    work would have there. `name` is deterministic, `ask` says for whom it is."""

    name: str
    ask: str
    pool: str
    resources: Mapping[str, int]
    cpu_milli: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class PlaceholderReport:
    """One that is there. `node` is where it was bound to, "" before that."""

    name: str
    uid: str
    ask: str
    node: str = ""
    deleting: bool = False


def nodes_left(*, limits: Amounts, used: Amounts, node: Amounts) -> int | None:
    """How many more nodes like `node` the limits leave room for; None when no limit is of what
    the node has, or of nodes."""
    one = {**node.told(), "nodes": 1}
    there = used.told()
    left = [
        max(0, limit - there.get(name, 0)) // one[name]
        for name, limit in limits.told().items()
        if one.get(name)
    ]
    return min(left, default=None)


class AutoscalingPort(Protocol):
    """A part of `ClusterPort`."""

    def read_autoscaling(self) -> Autoscaling | None:
        """Its node pools and the nodes that are being made; None where it has no such thing, or
        Berth may not read it."""
        ...

    def list_placeholders(self) -> tuple[PlaceholderReport, ...]:
        """All that this installation has there."""
        ...

    def create_placeholder(self, *, request: PlaceholderRequest) -> None:
        """One of that name that is there already is left as it is."""
        ...

    def delete_placeholder(self, *, found: PlaceholderReport) -> None:
        """Gone already, or another of that name: nothing to do, no error."""
        ...
