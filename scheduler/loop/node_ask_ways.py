"""The ways in which a cluster is asked for nodes: a placeholder pod for each, for which Karpenter
makes one, or one request for all of them (ADRs 0084 and 0091). The pool says which it is."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from clusters.autoscaling import (
    NodeRequest,
    NodeRequestReport,
    PlaceholderReport,
    PlaceholderRequest,
)
from clusters.port import NVIDIA_GPU, ClusterPort
from clusters.services import autoscaling
from controlplane.kernel.crash import crash
from scheduler.core.lifecycle import State
from scheduler.models import AskState, NodeAsk


class Outcome(NamedTuple):
    """How an ask ends; `why` is told of one that failed."""

    state: AskState
    why: str = ""


class Way(Protocol):
    """What stands for asks in one cluster, as it was when this was made."""

    lasts: frozenset[State]
    """The states of its work in which an ask goes on."""

    def bound(self, row: NodeAsk) -> Sequence[str]:
        """Nodes that some of it was bound to."""
        ...

    def is_queued(self, row: NodeAsk) -> bool:
        """Whether the autoscaler has taken it, and will say itself when it gives up."""
        ...

    def outcome(self, row: NodeAsk) -> Outcome | None:
        """None while the cluster says nothing that ends it."""
        ...

    def clear(self, rows: Iterable[NodeAsk]) -> None:
        """Take away what none of them wants."""
        ...

    def is_clear(self, row: NodeAsk) -> bool: ...

    def make(self, row: NodeAsk) -> None:
        """What is missing of it. Raises ClusterError."""
        ...


class Placeholders:
    """One goes once its node is registered: later it would hold what the work waits for."""

    lasts = frozenset({State.PENDING})

    def __init__(self, port: ClusterPort) -> None:
        self._port = port
        self._there: dict[str, list[PlaceholderReport]] = {}
        for found in port.list_placeholders():
            self._there.setdefault(found.ask, []).append(found)

    def bound(self, row: NodeAsk) -> Sequence[str]:
        return [pod.node for pod in self._of(row) if pod.node]

    def is_queued(self, row: NodeAsk) -> bool:
        return False

    def outcome(self, row: NodeAsk) -> Outcome | None:
        return Outcome(AskState.GIVEN) if row.is_answered else None

    def clear(self, rows: Iterable[NodeAsk]) -> None:
        wanted = {name for row in rows for name, _ in _lacked(row)}
        for pods in self._there.values():
            for found in pods:
                if found.name not in wanted or found.node:  # there it would be in the way
                    self._port.delete_placeholder(found=found)

    def is_clear(self, row: NodeAsk) -> bool:
        return not self._of(row)

    def make(self, row: NodeAsk) -> None:
        resource = row.pool.like.gpu_resource if row.pool.like else NVIDIA_GPU
        there = {found.name for found in self._of(row)}
        for name, node in _lacked(row):
            if name not in there:
                self._port.create_placeholder(
                    request=PlaceholderRequest(
                        name=name,
                        ask=str(row.id),
                        pool=row.pool.name,
                        resources=(
                            {resource: node["devices_count"]} if node["devices_count"] else {}
                        ),
                        cpu_milli=node["cpu_milli"],
                        memory_mib=node["memory_mib"],
                    )
                )
                crash("N2")

    def _of(self, row: NodeAsk) -> Sequence[PlaceholderReport]:
        return self._there.get(str(row.id), ())


class Requests:
    """One stays until the work runs: while it does, the autoscaler keeps the nodes for it."""

    lasts = frozenset({State.PENDING, State.ADMITTED, State.BOUND})

    def __init__(self, port: ClusterPort) -> None:
        self._port = port
        self._there = {found.ask: found for found in port.list_node_requests()}

    def bound(self, row: NodeAsk) -> Sequence[str]:
        return ()

    def is_queued(self, row: NodeAsk) -> bool:
        found = self._of(row)
        return found is not None and found.accepted

    def outcome(self, row: NodeAsk) -> Outcome | None:
        found, state = self._of(row), row.workload.state
        if state == State.PENDING and found is not None and found.ended:
            return Outcome(AskState.FAILED, found.ended)
        return Outcome(AskState.GIVEN) if row.is_answered and state not in self.lasts else None

    def clear(self, rows: Iterable[NodeAsk]) -> None:
        wanted = {str(row.id) for row in rows}
        for ask, found in self._there.items():
            if ask not in wanted:
                self._port.delete_node_request(found=found)

    def is_clear(self, row: NodeAsk) -> bool:
        return self._of(row) is None

    def make(self, row: NodeAsk) -> None:
        found, pool = self._of(row), row.pool
        if row.workload.state != State.PENDING or (found and found.uid and found.template_uid):
            return
        resource = pool.like.gpu_resource if pool.like else NVIDIA_GPU
        gpus = autoscaling.shape(pool).devices
        self._port.create_node_request(
            request=NodeRequest(
                name=row.request_name,
                ask=str(row.id),
                pool=str(pool.pk),
                count=len(row.nodes),
                request_class=pool.request_class,
                parameters=pool.parameters,
                selector=pool.selector,
                # All of them, so that no two pods fit on one node.
                resources={resource: gpus} if gpus else {},
                cpu_milli=max(node["cpu_milli"] for node in row.nodes),
                memory_mib=max(node["memory_mib"] for node in row.nodes),
            )
        )
        crash("N3")

    def _of(self, row: NodeAsk) -> NodeRequestReport | None:
        return self._there.get(str(row.id))


def _lacked(row: NodeAsk) -> Iterator[tuple[str, dict[str, int]]]:
    """Of each node that has not come the name of its placeholder, and what it is for."""
    for nth in range(len(row.came), len(row.nodes)):
        yield f"node-{row.id}-{nth}", row.nodes[nth]
