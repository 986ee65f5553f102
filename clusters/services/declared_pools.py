"""Node pools that no cluster publishes: an operator declares which there are, and what a node of
each has. Its nodes are asked for by requests."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F

from clusters.models import Cluster, NodePool
from clusters.port import MOST_NODES
from clusters.services import autoscaling
from clusters.services.autoscaling import Described
from controlplane.audit import services as audit
from controlplane.kernel import text
from controlplane.kernel.errors import Conflict, Invalid

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_WORD = re.compile(r"(?!.{64})[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_MAKES_NONE = "check-capacity.autoscaling.x-k8s.io"
_MOST_LABELS, _MOST_PARAMETERS = 8, 20


@dataclass(frozen=True, slots=True)
class Declared:
    """A pool of up to `nodes` nodes, all of which have the labels of `selector`, and no other node
    has. They are asked for by requests of this class, with these parameters, such as
    maxRunDurationSeconds of queued-provisioning.gke.io."""

    name: str
    selector: Mapping[str, str]
    request_class: str
    nodes: int
    parameters: Mapping[str, str]

    def check(self) -> None:
        """Raises Invalid for what no cluster would take."""
        if not _is_name(self.name):
            raise Invalid("A name as Kubernetes has them is wanted: a3-queued.", pointer="/name")
        if not 1 <= len(self.selector) <= _MOST_LABELS:
            message = f"1 to {_MOST_LABELS} labels are wanted that all nodes of the pool have."
            raise Invalid(message, pointer="/selector")
        for key, value in self.selector.items():
            prefix, slash, word = key.rpartition("/")
            if not _WORD.fullmatch(word) or (slash and not _is_name(prefix)):
                raise Invalid(f"{key!r} is no label.", pointer="/selector")
            if value and not _WORD.fullmatch(value):
                raise Invalid(f"{value!r} is no value of a label.", pointer="/selector")
        if not _is_name(self.request_class):
            message = "A class is wanted, such as queued-provisioning.gke.io."
            raise Invalid(message, pointer="/request_class")
        if self.request_class == _MAKES_NONE:
            message = f"{_MAKES_NONE} looks whether there is room, and makes no node."
            raise Invalid(message, pointer="/request_class")
        if not 1 <= self.nodes <= MOST_NODES:
            message = f"1 to {MOST_NODES} are wanted, not {self.nodes}."
            raise Invalid(message, pointer="/nodes")
        if len(self.parameters) > _MOST_PARAMETERS:
            message = f"{_MOST_PARAMETERS} parameters at most are wanted."
            raise Invalid(message, pointer="/parameters")
        for key, value in self.parameters.items():
            if not key or len(key) > 253 or len(value) > 255 or text.fault(key + value):
                message = f"{key!r} is no parameter: a name, and at most 255 characters."
                raise Invalid(message, pointer="/parameters")


def _is_name(word: str) -> bool:
    """Of objects and before the slash of a label, as Kubernetes has them."""
    return len(word) <= 253 and bool(_NAME.fullmatch(word))


def declare(
    *,
    cluster: Cluster,
    pool: Declared,
    node: Described,
    actor: str,
    actor_name: str,
    at: datetime,
) -> NodePool:
    """From now on nodes of it can come, where the cluster takes requests. One of that name is
    changed.

    Raises Invalid, and Conflict where the cluster itself tells of a pool of that name.
    """
    pool.check()
    node.check(within="/node")
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        row = NodePool.objects.filter(cluster=cluster, name=pool.name).first()
        row = row or NodePool(cluster=cluster, name=pool.name, gone_at=at)
        if not row.is_declared and row.gone_at is None:
            raise Conflict(f"The cluster itself tells of a pool {pool.name}.", pointer="/name")
        before = {} if row.gone_at else _told(row)
        if row.gone_at:  # whether its cluster takes requests is read next
            row.ready, row.gone_at = False, None
        row.model = row.accelerator = ""
        row.selector, row.parameters = dict(pool.selector), dict(pool.parameters)
        row.request_class, row.limits = pool.request_class, {"nodes": pool.nodes}
        row.save()
        _record("node-pool.declare", row, before, _told(row), by=(actor, actor_name), at=at)
        autoscaling.say_node(row, node, actor=actor, actor_name=actor_name, at=at)
        autoscaling.refigure(row, at=at)
    return row


def forget(*, id: UUID, actor: str, actor_name: str, at: datetime) -> None:
    """Nothing more comes of a declared pool, and what was asked of it is withdrawn.

    Raises NotFound, and Conflict for a pool of which its cluster tells.
    """
    with transaction.atomic():
        row = autoscaling.locked(id=id)
        if not row.is_declared:
            raise Conflict("The cluster itself tells of it: take it away there.")
        row.gone_at = at
        row.save(update_fields=["gone_at"])
        Cluster.objects.filter(pk=row.cluster_id).update(inventory_rev=F("inventory_rev") + 1)
        _record("node-pool.forget", row, _told(row), {}, by=(actor, actor_name), at=at)


def _told(row: NodePool) -> dict[str, object]:
    return {**row.terms, "nodes": row.limits["nodes"]}


def _record(
    action: str,
    row: NodePool,
    before: Mapping[str, object],
    after: Mapping[str, object],
    *,
    by: tuple[str, str],
    at: datetime,
) -> None:
    entry = audit.Entry(action, "node-pool", row.id, before=before, after=after)
    audit.record(actor=by[0], actor_name=by[1], entries=[entry], at=at)
