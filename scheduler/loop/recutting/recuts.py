"""Recuts of nodes, step by step: what the row says and what the cluster shows decide what is done
next, so whoever comes after a crash goes on where it stopped.

That nothing is placed on the node meanwhile, and that it isn't cut while a device of it is held,
the database holds (migration 0051); that nobody else's pod is there, a list of pods each time.
What a step is, is told in `steps`.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from clusters.models import Cluster
from clusters.port import ClusterError, ClusterPort, Fault
from controlplane.kernel.errors import Conflict
from scheduler.loop.recutting import states, steps
from scheduler.loop.recutting.steps import LIMIT, SETTLE
from scheduler.models import Recut, RecutState

logger = logging.getLogger(__name__)

_FOR_GOOD = {Fault.FORBIDDEN, Fault.NOT_FOUND, Fault.MALFORMED, Fault.INVALID}
"""What a later try would meet again."""
STEPS = 5
"""The most of one recut in a call."""


def carry_on(
    *, port: ClusterPort, cluster: Cluster, at: Callable[[], datetime], speed: float = 1.0
) -> bool:
    """Each recut there that is due goes on as far as it can; whether the cluster could be reached.
    `speed` is how many seconds of `at` pass in one."""
    live = Recut.objects.filter(
        node__cluster=cluster, ended_at__isnull=True, starts_at__lte=at()
    ).select_related("node__cluster")
    for row in live.order_by("starts_at", "id"):
        try:
            try:
                for _ in range(STEPS):
                    before = row.state
                    steps.take(port, row, at(), speed)
                    if row.state == before or not row.live:
                        break
            except Conflict as passed:  # somebody called it off meanwhile
                logger.info("recut of %s: %s", row.node.name, passed.message)
                _leave_open(port, row)
        except ClusterError as error:
            if error.fault is not Fault.CONFLICT:  # else the node has changed: look again
                logger.warning("recut of %s: %s", row.node.name, error)
                _give_up(row, error, at())
            if error.fault is Fault.UNREACHABLE:
                return False
    return True


def _leave_open(port: ClusterPort, row: Recut) -> None:
    """Of one that has ended while this process was about to cordon: nobody else takes it off."""
    row.refresh_from_db()
    if row.live or row.stuck:
        return
    node = port.read_node(name=row.node.name)
    if node is not None and node.recut == str(row.id):
        port.uncordon(node=node)


def _give_up(row: Recut, error: ClusterError, at: datetime) -> None:
    """What can't be begun, for want of a right or of a config map, or in time, is not begun; what
    has begun ends as its state allows. What a later try would meet again is told meanwhile."""
    for_good = error.fault in _FOR_GOOD
    over = at >= row.ends_at
    try:
        match row.state:
            case RecutState.PLANNED if for_good or over:
                states.end(row, RecutState.CALLED_OFF, at, trouble=str(error))
            case RecutState.CORDONING if for_good or over:
                states.call_off(row, str(error), at)
            case RecutState.EMPTYING if over:
                states.call_off(row, str(error), at)
            case RecutState.PLANNED | RecutState.CORDONING | RecutState.EMPTYING:
                if for_good:
                    states.note(row, trouble=str(error)[:500])
            case RecutState.CUTTING if for_good and row.said_at is None:
                states.call_off(row, str(error), at)  # nothing was cut
            case _ if for_good and at >= row.since + LIMIT:
                states.stick(row, str(error), at)
            case _ if for_good and str(error) not in row.trouble:
                states.note(row, trouble=states.both(row.trouble, str(error)))
    except Conflict as passed:
        logger.info("recut of %s: %s", row.node.name, passed.message)


def forget_opened(*, at: datetime) -> None:
    """Nodes that were stuck and that somebody has opened since are so no longer; what has just
    been left cordoned may not have been seen so yet."""
    Recut.objects.filter(stuck=True, node__schedulable=True, ended_at__lte=at - SETTLE).update(
        stuck=False
    )


def due(*, at: datetime) -> list[UUID]:
    """The clusters in which a recut is to go on."""
    live = Recut.objects.filter(ended_at__isnull=True, starts_at__lte=at)
    return sorted(set(live.values_list("node__cluster_id", flat=True)))
