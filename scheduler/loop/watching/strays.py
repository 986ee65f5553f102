"""Pods with this installation's labels that no live attempt will ever open: late duplicates.

A gated pod of an attempt that has ended, or that is not known, is deleted: by uid and version, so
that what somebody opens meanwhile stays. One whose gate is open may be running, and is never
deleted: a database that is empty, or was restored, would have all of them killed (P8). It is told,
and while there are such pods nothing is deleted: what the database says of the others is as old.
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from clusters.port import ClusterError, ClusterPort, Fault, PodPhase, PodReport
from scheduler.loop.observing.observe import is_ours
from scheduler.selectors.fleet import rows

logger = logging.getLogger(__name__)

AGE = timedelta(minutes=10)
"""How old a pod has to be to be a stray."""
MOST, MOST_TRIED = 10, 100
"""Pods that one call deletes, and that it names; those that it tries to, as some are refused."""


def is_old(report: PodReport, *, at: datetime) -> bool:
    """Older than a pod whose attempt may not be stored yet."""
    return report.created_at is not None and at - report.created_at >= AGE


def delete(*, port: ClusterPort, reports: Sequence[PodReport], at: datetime) -> int:
    """Delete gated strays of a complete list, MOST at most; how many were asked to go.

    The list has to be older than the call: an attempt is stored before its first pod is made, so
    that the attempt of each pod in the list is known now, or never was. A call to the cluster that
    fails is logged: the next list shows what is left.
    """
    old = [
        report
        for report in reports
        if is_ours(report)
        and report.caught is None  # its owner's to keep: it waits for its next attempt
        and not report.phase.ended
        and not report.deleting
        and is_old(report, at=at)
    ]
    gated = [report for report in old if report.phase is PodPhase.GATED]
    if _tell([report for report in old if report.phase is not PodPhase.GATED]):
        return 0  # the database is older than the cluster: who will open the others it can't say
    count = 0
    for report in _of_no_live_attempt(gated)[:MOST_TRIED]:
        if count == MOST:
            break
        try:
            port.delete_pod(
                namespace=report.namespace,
                name=report.name,
                uid=report.uid,
                grace_s=0,
                resource_version=report.resource_version,
            )
        except ClusterError as error:
            logger.warning("the stray pod %s is not deleted: %s", report.name, error)
            if error.fault is Fault.UNREACHABLE:
                break
            continue  # one that is refused does not keep the others
        logger.warning("the stray pod %s, which nobody will open, was deleted", report.name)
        count += 1
    return count


def _of_no_live_attempt(reports: Sequence[PodReport]) -> list[PodReport]:
    workloads = [UUID(report.workload) for report in reports]
    live = set(
        rows(
            "SELECT workload_id, number FROM scheduler_attempt"
            " WHERE workload_id = ANY(%s) AND ended_at IS NULL",
            [workloads],
        )
    )
    return [report for report in reports if (UUID(report.workload), report.attempt) not in live]


def _tell(reports: Sequence[PodReport]) -> bool:
    """Name the pods with an open gate that are no placement's; whether there are any."""
    uids = [report.uid for report in reports]
    known = {
        uid
        for (uid,) in rows(
            "SELECT pod_uid FROM scheduler_placement WHERE pod_uid = ANY(%s)", [uids]
        )
    }
    unknown = [report for report in reports if report.uid not in known]
    for report in unknown[:MOST]:
        logger.warning(
            "the pod %s is %s under this installation's labels and is nobody's: left alone",
            report.name,
            report.phase,
        )
    return bool(unknown)
