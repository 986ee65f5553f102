"""Celery tasks: parse ids, call one loop function. At least once, in any order, is assumed."""

import logging
from functools import lru_cache
from typing import Any
from uuid import UUID

from celery import shared_task
from django.db.models import Exists, OuterRef

from clusters import registry
from clusters.models import Cluster
from clusters.port import ClusterPort
from clusters.services import clusters
from controlplane.kernel import clock, hints
from scheduler.loop import dispatch as dispatcher
from scheduler.loop import forecast as forecaster
from scheduler.loop import meter as metering
from scheduler.loop import run
from scheduler.models import Operation

logger = logging.getLogger(__name__)

ROUNDS = 20
"""Batches one dispatch task takes on before it makes way for another cluster's."""


@shared_task(name=hints.CYCLE)
def run_cycle(**_: Any) -> None:  # Any: old workers survive new senders' arguments
    """Plan and apply once."""
    hints.taken(hints.CYCLE)
    run.run_cycle(at=clock.now(), speed=clock.speed())


@shared_task(name=hints.DISPATCH)
def dispatch(**_: Any) -> None:  # Any: as above
    """Hand each cluster with due operations to a task of its own, so that a slow one delays
    nobody."""
    hints.taken(hints.DISPATCH)
    due = Operation.objects.filter(done_at__isnull=True, attempt__cluster=OuterRef("pk"))
    for id in Cluster.objects.filter(Exists(due)).values_list("id", flat=True):
        hints.send(hints.DISPATCH_CLUSTER, cluster_id=str(id))


@shared_task(name=hints.DISPATCH_CLUSTER)
def dispatch_cluster(*, cluster_id: str, **_: Any) -> None:  # Any: as above
    """Carry out one cluster's due operations."""
    hints.taken(hints.DISPATCH_CLUSTER, cluster_id=cluster_id)
    cluster = Cluster.objects.get(id=UUID(cluster_id))
    for _round in range(ROUNDS):
        if not dispatcher.dispatch(port=_port(cluster.name), cluster_id=cluster.id, at=clock.now):
            return
    hints.send(hints.DISPATCH_CLUSTER, cluster_id=cluster_id)


@lru_cache(maxsize=64)
def _port(name: str) -> ClusterPort:
    """One connection pool a cluster and worker process, made after the fork."""
    return registry.connect(name)


@shared_task(name="scheduler.meter")
def meter(**_: Any) -> None:  # Any: as above
    metering.tick(at=clock.now(), speed=clock.speed())


@shared_task(name="scheduler.forecast")
def forecast(**_: Any) -> None:  # Any: as above
    forecaster.run(at=clock.now())


@shared_task(name="scheduler.check_clusters")
def check_clusters(**_: Any) -> None:  # Any: as above
    """Mark clusters that have been silent."""
    clusters.mark_silent()
