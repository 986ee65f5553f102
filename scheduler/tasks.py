"""Celery tasks: parse ids, call one loop function. At least once, in any order, is assumed."""

import logging
from time import monotonic
from typing import Any
from uuid import UUID

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from clusters import registry
from clusters.models import Cluster, ClusterState
from clusters.services import clusters, exposing, exposures, probes, probing, restoring
from controlplane.kernel import clock, hints
from scheduler.loop import run
from scheduler.loop.checking import checks
from scheduler.loop.dispatching import collect, confine
from scheduler.loop.dispatching import dispatch as dispatcher
from scheduler.loop.measuring import measure as measuring
from scheduler.loop.measuring import meter as metering
from scheduler.loop.observing import requeue, starts
from scheduler.loop.recording import forecast as forecaster
from scheduler.loop.recutting import own_recuts, recuts
from scheduler.loop.scaling import node_asks
from scheduler.loop.watching import inspect
from scheduler.models import Attempt, Confinement, Operation
from scheduler.services import inspections, telling, wishes

logger = logging.getLogger(__name__)

TURN_S = 5.0
"""How long one dispatch task takes on batches before it makes way for another cluster's."""

QUIET_S = 15
"""How long a cluster that could not be reached is left alone: few processes serve all of them."""

UNMEASURED_S = 150
"""How long one is left alone that did not say how much its devices are used: whoever hangs takes
seconds of a process that dispatches. Half of `idleness.STALE_S`, so that one missing answer makes
nothing begin anew."""

CONNECT_S, READ_S = 2.0, 5.0
"""Shorter than elsewhere, so that a cluster that hangs is found out long before the soft limit."""

QUERY_S = 10.0
"""How long one query of a check may take: history grows, the soft limit does not. Where that is
too short, `manage.py check_invariants` takes its time."""

_ports = registry.Ports(connect_timeout_s=CONNECT_S, read_timeout_s=READ_S)
"""One connection pool a cluster and worker process: made after the fork, and anew where a
credential was replaced."""

_SILENT = {ClusterState.DEGRADED, ClusterState.LOST}


def _is_read() -> bool:
    """Whether all clusters were listed since the database was put back: what it wants may else be
    long done, or not be wanted any more."""
    restoring.notice()
    return not restoring.any_unread()


@shared_task(name=hints.CYCLE)
def run_cycle(**_: Any) -> None:  # Any: old workers survive new senders' arguments
    """Plan and apply once, a while after the last time."""
    run.pace.wait()
    hints.taken(hints.CYCLE)
    restoring.notice()
    run.run_cycle(at=clock.now(), speed=clock.speed(), now=clock.now)


@shared_task(name=hints.DISPATCH)
def dispatch(**_: Any) -> None:  # Any: as above
    """Hand each cluster with due operations, or with something to collect or to look at, to a task
    of its own, so that a slow one delays nobody."""
    hints.taken(hints.DISPATCH)
    due = Operation.objects.filter(done_at__isnull=True, attempt__cluster=OuterRef("pk"))
    left = Attempt.objects.filter(cluster=OuterRef("pk"), collect_at__lte=Now())
    to_look_at = confine.is_due(at=clock.now(), speed=clock.speed())
    looked = Confinement.objects.filter(to_look_at, cluster=OuterRef("pk"))
    work = Exists(due) | Exists(left) | Exists(looked)
    for id in Cluster.objects.filter(work).values_list("id", flat=True):
        hints.send(hints.DISPATCH_CLUSTER, cluster_id=str(id))


@shared_task(name=hints.DISPATCH_CLUSTER)
def dispatch_cluster(*, cluster_id: str, **_: Any) -> None:  # Any: as above
    """Carry out one cluster's due operations, collect what is left over there and look whether its
    projects are confined, unless another process is at it or it was found out of reach just now.
    """
    hints.taken(hints.DISPATCH_CLUSTER, cluster_id=cluster_id)
    work = f"dispatch:{cluster_id}"
    if not hints.begin(work, for_s=settings.BERTH_CLAIM_S):  # as soon as a dead one's claims end
        return
    more, quiet_s = False, 0
    try:
        restoring.notice()
        more, quiet_s = _dispatch_cluster(Cluster.objects.get(id=UUID(cluster_id)))
    except SoftTimeLimitExceeded:
        logger.warning("cluster %s is too slow: left alone for %d s", cluster_id, QUIET_S)
        quiet_s = QUIET_S
    finally:
        hints.end(work, quiet_s=quiet_s)
    if more:
        hints.send(hints.DISPATCH_CLUSTER, cluster_id=cluster_id)


def _dispatch_cluster(cluster: Cluster) -> tuple[bool, int]:
    """Whether there may be more to do, and for how many seconds nobody shall try."""
    if cluster.restored_at is not None:
        return False, 0  # what the database wants there may be long done
    silent = cluster.state in _SILENT
    port = _ports.of(cluster.name)
    ends = monotonic() + TURN_S
    looks = True
    while monotonic() < ends:
        batch = dispatcher.dispatch(
            port=port,
            cluster_id=cluster.id,
            at=clock.now,
            limit=1 if silent else None,  # to see whether it answers again
        )
        if not batch.reached or (silent and batch.taken):
            return False, QUIET_S
        if silent:
            return False, 0
        # In turns, so that none waits for the others however much there is of it.
        collected = collect.collect(port=port, cluster_id=cluster.id)
        if not collected.reached:
            return False, QUIET_S
        if looks:  # no more in this turn where all failed: others wait for them
            checked = confine.check(
                port=port, cluster_id=cluster.id, at=clock.now, speed=clock.speed()
            )
            if not checked.reached:
                return False, QUIET_S
            looks = checked.taken > 0
        if not (batch.taken or collected.taken or looks):
            return False, 0
    return True, 0


@shared_task(name=hints.MEASURE)
def measure_use(**_: Any) -> None:  # Any: as above
    """Have each cluster asked how much its devices are used, by a task of its own."""
    for id in Cluster.objects.values_list("id", flat=True):
        hints.send(hints.MEASURE_CLUSTER, cluster_id=str(id))


@shared_task(name=hints.MEASURE_CLUSTER)
def measure_cluster(*, cluster_id: str, **_: Any) -> None:  # Any: as above
    """Ask one, if there is anything to ask, unless another process is at it."""
    hints.taken(hints.MEASURE_CLUSTER, cluster_id=cluster_id)
    work = f"measure:{cluster_id}"
    if not hints.begin(work, for_s=settings.BERTH_USE_S):
        return
    quiet_s = UNMEASURED_S
    try:
        if measuring.measure(cluster=Cluster.objects.get(id=UUID(cluster_id)), at=clock.now):
            quiet_s = 0
    finally:
        hints.end(work, quiet_s=quiet_s)


@shared_task(name=hints.PROBE_CLUSTER)
def probe_cluster(*, probe_id: str, **_: Any) -> None:  # Any: as above
    """Carry a probe out, unless it is under way."""
    hints.taken(hints.PROBE_CLUSTER, probe_id=probe_id)
    probing.carry_out(
        id=UUID(probe_id), at=clock.now, connect_timeout_s=CONNECT_S, read_timeout_s=READ_S
    )


@shared_task(name=hints.PROBE_EXPOSURE)
def probe_exposure(*, cluster_id: str, **_: Any) -> None:  # Any: as above
    """One step of looking whether pods see devices there that they never asked for, unless another
    process is at it."""
    hints.taken(hints.PROBE_EXPOSURE, cluster_id=cluster_id)
    work = f"exposure:{cluster_id}"
    if not hints.begin(work, for_s=settings.BERTH_CLAIM_S):
        return
    quiet_s = QUIET_S
    try:
        quiet_s = exposing.carry_on(
            cluster_id=UUID(cluster_id),
            image=settings.BERTH_EXPOSURE_IMAGE,
            at=clock.now,
            connect_timeout_s=CONNECT_S,
            read_timeout_s=READ_S,
        )
    except SoftTimeLimitExceeded:
        logger.warning("cluster %s is too slow to be looked at", cluster_id)
    finally:
        hints.end(work, quiet_s=quiet_s)


@shared_task(name="scheduler.check_probes")
def check_probes(**_: Any) -> None:  # Any: as above
    """Have probes carried out whose message or worker got lost, those of exposure carried on, and
    each cluster probed daily."""
    try:
        probes.sweep(at=clock.now(), speed=clock.speed())
    finally:
        exposures.sweep(at=clock.now())


@shared_task(name=hints.INSPECT_CLUSTER)
def inspect_pods(*, cluster_id: str, **_: Any) -> None:  # Any: as above
    """Fetch what a cluster says of pods there, unless another process is at it: whoever asks holds
    one of those that dispatch at most."""
    hints.taken(hints.INSPECT_CLUSTER, cluster_id=cluster_id)
    work = f"inspect:{cluster_id}"
    if not hints.begin(work, for_s=settings.BERTH_CLAIM_S):
        return
    quiet_s, id = QUIET_S, UUID(cluster_id)
    try:
        if inspect.inspect(cluster_id=id, connect=_ports.of, at=clock.now, turn_s=TURN_S):
            quiet_s = 0
    except SoftTimeLimitExceeded:
        logger.warning("cluster %s is too slow: left alone for %d s", cluster_id, QUIET_S)
    finally:
        hints.end(work, quiet_s=quiet_s)
    if not quiet_s and inspections.under_way(cluster_id=id).exists():
        hints.send(hints.INSPECT_CLUSTER, cluster_id=cluster_id)


@shared_task(name="scheduler.check_inspections")
def check_inspections(**_: Any) -> None:  # Any: as above
    """Have those carried out whose message or worker got lost, and forget old ones."""
    inspections.sweep(at=clock.now())


@shared_task(name=hints.RECUT)
def recut(**_: Any) -> None:  # Any: as above
    """Plan those that nobody has to ask for, and hand each cluster in which a node is to be cut
    anew to a task of its own."""
    hints.taken(hints.RECUT)
    if not _is_read():
        return
    recuts.forget_opened(at=clock.now())
    for id in recuts.due(at=clock.now()):  # first: whatever comes of planning stops none of these
        hints.send(hints.RECUT_CLUSTER, cluster_id=str(id))
    own_recuts.plan(at=clock.now())


@shared_task(name=hints.RECUT_CLUSTER)
def recut_cluster(*, cluster_id: str, **_: Any) -> None:  # Any: as above
    """One step of each recut there, unless another process is at it."""
    hints.taken(hints.RECUT_CLUSTER, cluster_id=cluster_id)
    work = f"recut:{cluster_id}"
    if not _is_read() or not hints.begin(work, for_s=settings.BERTH_CLAIM_S):
        return
    quiet_s = QUIET_S
    try:
        cluster = Cluster.objects.get(id=UUID(cluster_id))
        port = _ports.of(cluster.name)
        if recuts.carry_on(port=port, cluster=cluster, at=clock.now, speed=clock.speed()):
            quiet_s = 0
    except SoftTimeLimitExceeded:
        logger.warning("cluster %s is too slow: left alone for %d s", cluster_id, QUIET_S)
    finally:
        hints.end(work, quiet_s=quiet_s)


@shared_task(name=hints.NODES)
def ask_for_nodes(**_: Any) -> None:  # Any: as above
    """Write down what nodes are lacked, and hand each cluster that is asked for some to a task of
    its own."""
    hints.taken(hints.NODES)
    if not _is_read():
        return
    for id in node_asks.due():  # first: whatever comes of planning stops none of these
        hints.send(hints.NODES_CLUSTER, cluster_id=str(id))
    if not hints.begin(hints.NODES, for_s=hints.HARD_S):
        return
    try:
        node_asks.plan(at=clock.now())
    finally:
        hints.end(hints.NODES)


@shared_task(name=hints.NODES_CLUSTER)
def ask_cluster_for_nodes(*, cluster_id: str, **_: Any) -> None:  # Any: as above
    """One step of each ask there, unless another process is at it."""
    hints.taken(hints.NODES_CLUSTER, cluster_id=cluster_id)
    work = f"nodes:{cluster_id}"
    if not _is_read() or not hints.begin(work, for_s=hints.HARD_S):
        return
    quiet_s = QUIET_S
    try:
        cluster = Cluster.objects.get(id=UUID(cluster_id))
        port = _ports.of(cluster.name)
        if node_asks.carry_on(port=port, cluster=cluster, at=clock.now):
            quiet_s = 0
    except SoftTimeLimitExceeded:
        logger.warning("cluster %s is too slow: left alone for %d s", cluster_id, QUIET_S)
    finally:
        hints.end(work, quiet_s=quiet_s)


@shared_task(name="scheduler.meter")
def meter(**_: Any) -> None:  # Any: as above
    metering.tick(at=clock.now(), speed=clock.speed())


@shared_task(name="scheduler.forecast")
def forecast(**_: Any) -> None:  # Any: as above
    forecaster.run(at=clock.now())


@shared_task(name=hints.WISHES)
def refresh_wishes(**_: Any) -> None:  # Any: as above
    """Let what waits accept the flavors that have its wish, and that its project prefers, by
    now."""
    hints.taken(hints.WISHES)
    wishes.refresh(at=clock.now())


@shared_task(name="scheduler.check_clusters")
def check_clusters(**_: Any) -> None:  # Any: as above
    """Mark clusters that have been silent, and have start elsewhere what shall not wait for
    them."""
    restoring.notice()
    clusters.mark_silent()
    requeue.requeue_lost(at=clock.now(), speed=clock.speed())


@shared_task(name="scheduler.check_starts")
def check_starts(**_: Any) -> None:  # Any: as above
    """Take back what does not come to run: of what is not started meanwhile nothing is late."""
    if _is_read():
        starts.give_up_late(at=clock.now(), speed=clock.speed())


@shared_task(name="scheduler.check_invariants")
def check_invariants(**_: Any) -> None:  # Any: as above
    """Stop admission when a promise is broken, or let it go on when all hold again."""
    checks.check(at=clock.now(), query_s=QUERY_S)


@shared_task(name="scheduler.tell")
def tell(**_: Any) -> None:  # Any: as above
    """Write down what people are to be told of their work and of budgets."""
    telling.of_work(at=clock.now())
    telling.of_budgets(at=clock.now())


@shared_task(name="scheduler.follow_quotas")
def follow_quotas(**_: Any) -> None:  # Any: as above
    """Have the walls in clusters changed as quotas were."""
    confine.follow()
