"""Recuts that Berth plans by itself, where BERTH_RECUT is auto: of an idle node, for slices that
have been waited for a while. Nobody is stopped for one."""

import logging
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Q

from clusters import stock
from clusters.models import Node
from controlplane.kernel.errors import Conflict, Invalid
from scheduler.core.moving.recut import Pool, for_what_waits
from scheduler.core.units import ClusterId
from scheduler.models import Recut, RecutMode
from scheduler.selectors import checks, cuttable
from scheduler.selectors.fleet import rows
from scheduler.selectors.load import load
from scheduler.selectors.recuts import waiting_for_room
from scheduler.services import recuts

logger = logging.getLogger(__name__)

ACTOR, NAME = "system:scheduler", "scheduler"
WAITED_S = 600
"""Slices that have been waited for less may come free by themselves."""
REST = timedelta(hours=2)
"""Of a pool after a recut there, so that it is not cut to and fro."""
WINDOW = timedelta(minutes=30)
"""In which the node has to be as idle as it was."""

# Pools with slices that are cut, where somebody waits for a slice of the stock.
_POOLS = f"""
SELECT DISTINCT n.cluster_id, {stock.sql("d")} FROM clusters_device d
JOIN clusters_node n ON n.id = d.node_id
WHERE d.mode = 'mig-static' AND d.gone_at IS NULL AND n.gone_at IS NULL
  AND EXISTS (SELECT FROM scheduler_workload w JOIN scheduler_podset s ON s.workload_id = w.id
              JOIN scheduler_podsetflavor p ON p.pod_set_id = s.id AND p.position = 0
              JOIN clusters_flavor f ON f.id = p.flavor_id
              WHERE w.state = 'PENDING' AND w.ended_at IS NULL AND w.submitted_at <= %s
                AND f.kind = 'mig' AND f.model = d.model
                AND f.capacity = d.capacity)
ORDER BY 1, 2
"""  # noqa: S608  # constants


def plan(*, at: datetime) -> int:
    """One for each pool at most; how many. A query where nobody waits for slices."""
    if settings.BERTH_RECUT != "auto":
        return 0
    pools = [
        (cluster, model)
        for cluster, model in rows(_POOLS, [at - timedelta(seconds=WAITED_S)])
        if not _recut_lately(cluster, model, at)
    ]
    if not pools or checks.admission_stopped():
        return 0
    snapshot = load(at=at).snapshot
    for_room, nodes, planned = waiting_for_room(), cuttable.ids(), 0
    for cluster, model in pools:
        made = for_what_waits(
            snapshot=snapshot,
            pool=Pool(ClusterId(str(cluster)), model, nodes),
            for_room=for_room,
            waited_s=WAITED_S,
        )
        if made is None or made.cost.stops:
            continue
        node = Node.objects.get(id=UUID(made.cost.node))
        asked = recuts.Asked(
            node=node,
            cuts=[dict(way) for way in made.ways],
            mode=RecutMode.WAIT,
            starts_at=at,
            ends_at=at + WINDOW,
            actor=ACTOR,
            actor_name=NAME,
        )
        try:
            recuts.plan(asked=asked, at=at)
        except (Conflict, Invalid) as error:
            logger.info("no recut of %s: %s", node.name, error.message)
        else:
            planned += 1
    return planned


def _recut_lately(cluster: UUID, model: str, at: datetime) -> bool:
    """Planned by whomever: one at a time in a pool."""
    recuts = Recut.objects.alias(of=stock.column("node__devices__"))
    there = recuts.filter(node__cluster=cluster, of=model)
    return there.filter(ended_at__isnull=True).exists() or (
        there.filter(Q(planned_at__gt=at - REST) | Q(ended_at__gt=at - REST)).exists()
    )
