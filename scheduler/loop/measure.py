"""Asking a cluster how much its devices are used. What follows of the answer is `idle`'s."""

import logging
from collections.abc import Callable
from datetime import datetime

from clusters import registry
from clusters.models import Cluster
from clusters.port import ClusterError
from clusters.registry import BadCredential
from clusters.services import clusters
from scheduler.loop import idle

logger = logging.getLogger(__name__)

CONNECT_S, READ_S = 2.0, 5.0
"""Short, as a process that dispatches waits meanwhile."""


def measure(*, cluster: Cluster, at: Callable[[], datetime]) -> None:
    """Once. One that nothing measures, or that does not answer, tells nothing: nothing is idle."""
    try:
        port = registry.connect_use(
            cluster.name, connect_timeout_s=CONNECT_S, read_timeout_s=READ_S
        )
        if port is None:
            return
        try:
            uses = port.use()
        finally:
            port.close()
    except (BadCredential, ClusterError) as error:
        logger.warning("the use of cluster %s is not known: %s", cluster.name, error)
        clusters.use_failed(cluster=cluster, why=str(error))
    else:
        idle.note(cluster=cluster, uses=uses, at=at())
