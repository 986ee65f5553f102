"""Asking a cluster how much its devices are used. What follows of the answer is `idle`'s."""

import logging
from collections.abc import Callable
from datetime import datetime

from clusters import registry
from clusters.credential import BadCredential
from clusters.models import Cluster
from clusters.port import ClusterError
from clusters.services import clusters
from scheduler.loop.measuring import idle

logger = logging.getLogger(__name__)

CONNECT_S, READ_S = 2.0, 5.0
"""Short, as a process that dispatches waits meanwhile."""


def measure(*, cluster: Cluster, at: Callable[[], datetime]) -> bool:
    """Once. One that nothing measures, or that does not answer, tells nothing: nothing is idle.
    False where there is somebody to ask and no answer."""
    try:
        port = registry.connect_use(
            cluster.name, connect_timeout_s=CONNECT_S, read_timeout_s=READ_S
        )
        if port is None:
            if cluster.use_error:
                clusters.use_not_asked(cluster=cluster)
            return True
        try:
            uses = port.use()
        finally:
            port.close()
    except (BadCredential, ClusterError) as error:
        logger.warning("the use of cluster %s is not known: %s", cluster.name, error)
        clusters.use_failed(cluster=cluster, why=str(error))
        return False
    idle.note(cluster=cluster, uses=uses, at=at())
    return True
