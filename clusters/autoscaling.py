"""What a cluster says of nodes that its autoscaler makes: frozen reports of Karpenter's node pools
and node claims, and what it is asked by: pods for which it makes nodes, and requests for several
at once. No back end, no Django."""

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
class NodeRequestReport:
    """One request for nodes (a ProvisioningRequest). `ask` says for whom it is and `pool` is the
    id of the pool that Berth asked for, both "" of others'. It is `accepted` once the autoscaler
    has taken it, and `provisioned` once it says that the nodes are made. `ended` is why nothing
    more comes of it, "" while something may.

    Of ours `uid` is "" where only its template is there, and `template_uid` where that is not.
    """

    name: str
    uid: str = ""
    template_uid: str = ""
    ask: str = ""
    pool: str = ""
    nodes: int = 0
    created_at: datetime | None = None
    accepted: bool = False
    provisioned: bool = False
    ended: str = ""


@dataclass(frozen=True, slots=True)
class Autoscaling:
    """All that there is of each; `requests` is None where a cluster takes none. `left_out` is as
    in a listing."""

    pools: tuple[NodePoolReport, ...] = ()
    claims: tuple[NodeClaimReport, ...] = ()
    left_out: tuple[str, ...] = ()
    requests: tuple[NodeRequestReport, ...] | None = None


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


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """So many nodes of one pool, all or none: pods of which each takes a node of its own.
    `selector` are the labels of the pool's nodes; class and parameters say how an autoscaler goes
    about it. `name` is deterministic, `ask` says for whom it is, `pool` is the pool's id."""

    name: str
    ask: str
    pool: str
    count: int
    request_class: str
    parameters: Mapping[str, str]
    selector: Mapping[str, str]
    resources: Mapping[str, int]
    cpu_milli: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class Consumed:
    """The request for nodes whose nodes a pod runs on."""

    name: str
    request_class: str


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
        """Its node pools, the nodes that are being made and the requests for some; None where it
        has no such thing, or Berth may not read it."""
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

    def list_node_requests(self) -> tuple[NodeRequestReport, ...]:
        """All that this installation has there; () where the cluster takes none."""
        ...

    def create_node_request(self, *, request: NodeRequest) -> None:
        """The template of its pods, then the request. What is there already is left as it is."""
        ...

    def delete_node_request(self, *, found: NodeRequestReport) -> None:
        """The request, then its template. As `delete_placeholder`."""
        ...
