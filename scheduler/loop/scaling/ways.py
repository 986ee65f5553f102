"""The ways in which a cluster is asked for nodes: a placeholder pod for each, for which Karpenter
makes one, or one request for all of them (ADRs 0084 and 0091). Which it is says the ask."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from django.db.models import QuerySet

from clusters.autoscaling import (
    NodeRequest,
    NodeRequestReport,
    PlaceholderReport,
    PlaceholderRequest,
)
from clusters.models import Node, NodeClaim
from clusters.port import NVIDIA_GPU, ClusterPort
from clusters.services import autoscaling
from controlplane.kernel.crash import crash
from scheduler.core.lifecycle import State
from scheduler.models import AskState, NodeAsk

LIMIT = timedelta(minutes=30)
"""After which nobody waits for the answer, but to a request that was accepted; Karpenter gives a
node half of that to register."""


class Outcome(NamedTuple):
    """How an ask ends; `why` is told of one that failed."""

    state: AskState
    why: str = ""


class Way(Protocol):
    """What stands for asks in one cluster, as it was when this was made."""

    lasts: frozenset[State]
    """The states of its work in which an ask goes on."""

    def answers(self, row: NodeAsk) -> Iterable[str]:
        """Nodes that came for it, by name."""
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

    def answers(self, row: NodeAsk) -> Iterable[str]:
        """Those that it was bound to and that Berth did not know, then those of the pool that
        were ordered and registered since it was asked, each for one ask."""
        of_pool = NodeAsk.objects.filter(pool=row.pool, asked_at__gte=row.asked_at - LIMIT)
        others = of_pool.exclude(pk=row.pk).values_list("came", flat=True)
        taken = {name for came in others for name in came}
        bound = [pod.node for pod in self._of(row) if pod.node]
        known = Node.objects.filter(cluster=row.pool.cluster_id, name__in=bound, gone_at=None)
        taken.update(known.values_list("name", flat=True))
        since = _registered(row).filter(created_at__gte=_second(row.asked_at))
        made = since.order_by("created_at", "id").values_list("node", flat=True)
        return [name for name in (*bound, *made) if name and name not in taken]

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

    def answers(self, row: NodeAsk) -> Iterable[str]:
        mine = _registered(row).filter(name__startswith=f"{row.request_name}-")
        return mine.order_by("id").values_list("node", flat=True)

    def is_queued(self, row: NodeAsk) -> bool:
        found = self._of(row)
        return found is not None and found.accepted

    def outcome(self, row: NodeAsk) -> Outcome | None:
        found, state = self._of(row), row.workload.state
        if state == State.PENDING:
            is_there = found is not None and found.uid
            gone = "" if is_there or not row.queued else "Deleted: it is no longer in its cluster"
            why = found.ended if found and found.ended else gone
            return Outcome(AskState.FAILED, why) if why else None
        return Outcome(AskState.GIVEN) if row.is_answered and state not in self.lasts else None

    def clear(self, rows: Iterable[NodeAsk]) -> None:
        wanted = {str(row.id) for row in rows}
        for ask, found in self._there.items():
            if ask not in wanted:
                self._port.delete_node_request(found=found)

    def is_clear(self, row: NodeAsk) -> bool:
        return self._of(row) is None

    def make(self, row: NodeAsk) -> None:
        """Never again once it was accepted or nodes came, which would order them twice."""
        found, pool = self._of(row), row.pool
        is_there = found is not None and found.uid and found.template_uid
        if is_there or row.workload.state != State.PENDING or row.queued or row.came:
            return
        resource = pool.like.gpu_resource if pool.like else NVIDIA_GPU
        gpus = autoscaling.shape(pool).devices
        self._port.create_node_request(
            request=NodeRequest(
                name=row.request_name,
                ask=str(row.id),
                pool=str(pool.pk),
                count=len(row.nodes),
                request_class=row.terms["request_class"],
                parameters=row.terms["parameters"],
                selector=row.terms["selector"],
                # All of them, so that no two pods fit on one node.
                resources={resource: gpus} if gpus else {},
                cpu_milli=max(node["cpu_milli"] for node in row.nodes),
                memory_mib=max(node["memory_mib"] for node in row.nodes),
            )
        )
        crash("N3")

    def _of(self, row: NodeAsk) -> NodeRequestReport | None:
        return self._there.get(str(row.id))


def _registered(row: NodeAsk) -> QuerySet[NodeClaim]:
    """Nodes that its pool has made."""
    return NodeClaim.objects.filter(pool=row.pool, registered=True, gone_at=None)


def _second(at: datetime) -> datetime:
    """The cluster tells no finer when something was made."""
    return at.replace(microsecond=0)


def _lacked(row: NodeAsk) -> Iterator[tuple[str, dict[str, int]]]:
    """Of each node that has not come the name of its placeholder, and what it is for."""
    for nth in range(len(row.came), len(row.nodes)):
        yield f"node-{row.id}-{nth}", row.nodes[nth]
