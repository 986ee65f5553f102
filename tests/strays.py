"""Pods that run and that nobody knows."""

from clusters.models import Cluster
from scheduler.models import Stray
from tests.factories import AT


def stray(of: Cluster, name: str = "w0-1-0") -> Stray:
    return Stray.objects.create(
        cluster=of,
        uid=name,
        namespace="berth-vision",
        name=name,
        node="n1",
        attempt=1,
        why="there is no such workload",
        found_at=AT,
    )
