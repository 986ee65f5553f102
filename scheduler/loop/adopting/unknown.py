"""Which pods of a list the database does not know, and what follows for the attempts that it does.

It is older than its cluster when it was put back from a backup: work has been started since, and
attempts that it has as live may have ended and been followed by others.

What must not live here: giving such pods rows (adopt.py).
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from clusters.models import Cluster
from clusters.port import PodPhase, PodReport
from controlplane.kernel import statements
from scheduler.core.lifecycle import State
from scheduler.loop.observing import observe
from scheduler.models import Stray, Workload
from scheduler.selectors.fleet import rows
from scheduler.services import stops
from scheduler.services.transition import Step, lock, transition

ACTOR = "system:observer"
LATER = "a later attempt of it is there"
CAME_LATER = "it came after the cluster was listed: see manage.py look_again"
UNOWNED = "its namespace lacks this installation's label: anybody may have made it"
MOST = 1_000_000
"""A number beyond this is no attempt's or rank's: somebody else wrote the label."""
MOST_LOST = 10_000
"""Attempts of one workload that a backup may lack. A pod of a later one is not believed, so that
nobody has the numbers used up."""

type Owns = Callable[[str], bool]
"""Whether a namespace is this installation's in the cluster, so that nobody else may make or
change pods with its labels there (ADR 0074). It may ask the cluster."""


class Unknown(NamedTuple):
    """A pod under our labels that is no placement's. `workload` is whose it is by labels, name and
    namespace, None where there is none such or it is not believed, of which `doubt` says why;
    `known` is the last attempt that is known of it."""

    report: PodReport
    workload: UUID | None
    known: int
    doubt: str = ""


_RECOGNISED = """
UPDATE scheduler_placement q SET pod_uid = u.uid, opened_at = %s
FROM unnest(%s::text[], %s::uuid[], %s::int[], %s::text[], %s::text[])
     AS u (uid, workload, attempt, namespace, name)
JOIN scheduler_workload w ON w.id = u.workload
JOIN tenants_project p ON p.id = w.project_id AND p.namespace = u.namespace
JOIN scheduler_attempt a ON a.workload_id = u.workload AND a.number = u.attempt
WHERE q.attempt_id = a.id AND q.pod_name = u.name AND q.pod_uid = '' AND q.released_at IS NULL
  AND a.ended_at IS NULL AND a.cluster_id = %s
  AND NOT EXISTS (SELECT FROM scheduler_placement k WHERE k.pod_uid = u.uid)
"""


def recognise(*, cluster: Cluster, reports: Iterable[PodReport], owns: Owns, at: datetime) -> None:
    """Store which pods are whose of attempts that the database has as being started, where the
    gates are open: that was done since the backup, as none is opened before its uid is stored. Not
    known to run, they would be stopped for starting too late. Only of a list after a restore:
    otherwise nobody but who forges has such a pod."""
    opened = [
        each
        for each in _ours(reports)
        if each.phase is not PodPhase.GATED and owns(each.namespace)
    ]
    if opened:
        with statements.cursor() as cursor:
            cursor.execute(
                _RECOGNISED,
                [
                    at,
                    [report.uid for report in opened],
                    [UUID(report.workload) for report in opened],
                    [report.attempt for report in opened],
                    [report.namespace for report in opened],
                    [report.name for report in opened],
                    cluster.id,
                ],
            )


# A gated pod whose uid is not stored yet is its attempt's all the same: it is being started.
_UNKNOWN = """
SELECT u.nth, w.id, coalesce((SELECT max(a.number) FROM scheduler_attempt a
                              WHERE a.workload_id = w.id), 0)
FROM unnest(%s::text[], %s::uuid[], %s::int[], %s::int[], %s::text[], %s::text[])
     WITH ORDINALITY AS u (uid, workload, attempt, rank, namespace, name, nth)
LEFT JOIN (scheduler_workload w JOIN tenants_project p ON p.id = w.project_id)
  ON w.id = u.workload AND p.namespace = u.namespace
 AND (u.name = format('w%%s-%%s-%%s', replace(w.id::text, '-', ''), u.attempt, u.rank)
      OR EXISTS (SELECT FROM scheduler_origin o WHERE o.workload_id = w.id))
WHERE NOT EXISTS (SELECT FROM scheduler_placement q WHERE q.pod_uid = u.uid)
  AND NOT EXISTS (
      SELECT FROM scheduler_attempt a JOIN scheduler_placement q ON q.attempt_id = a.id
      WHERE a.workload_id = u.workload AND a.number = u.attempt AND q.rank = u.rank
        AND q.pod_uid = '' AND q.released_at IS NULL)
"""


def find(reports: Iterable[PodReport]) -> list[Unknown]:
    """Of a list, those that are ours by their labels and no placement's; gated ones too, which
    nobody will open. The list has to be older than the call."""
    ours = _ours(reports)
    if not ours:
        return []
    columns = [
        [report.uid for report in ours],
        [UUID(report.workload) for report in ours],
        [report.attempt for report in ours],
        [report.rank for report in ours],
        [report.namespace for report in ours],
        [report.name for report in ours],
    ]
    return [Unknown(ours[nth - 1], *rest) for nth, *rest in rows(_UNKNOWN, columns)]


def believed(*, cluster: Cluster, found: Sequence[Unknown], owns: Owns | None) -> list[Unknown]:
    """With their workload those that show what the database lost. They do in a list after a
    restore, by `owns`, in namespaces where nobody else makes such pods; and in later ones, where
    that is None, if they were believed then. The others are somebody's, and hold what they hold.
    """
    before = _believed_before(cluster, found) if owns is None else frozenset()

    def doubt(of: Unknown) -> str:
        if of.report.attempt - of.known > MOST_LOST:
            return "no work was tried that often since a backup"
        if owns is None:
            return "" if of.report.uid in before else CAME_LATER
        return "" if owns(of.report.namespace) else UNOWNED

    return [
        each._replace(workload=None, doubt=why) if each.workload and (why := doubt(each)) else each
        for each in found
    ]


def _believed_before(cluster: Cluster, found: Iterable[Unknown]) -> frozenset[str]:
    uids = [each.report.uid for each in found if each.workload]
    if not uids:
        return frozenset()
    kept = Stray.objects.filter(cluster=cluster, uid__in=uids, workload__isnull=False)
    return frozenset(kept.values_list("uid", flat=True))


def _ours(reports: Iterable[PodReport]) -> list[PodReport]:
    return [
        report
        for report in reports
        if observe.is_ours(report)
        and 0 < report.attempt <= MOST
        and 0 <= report.rank <= MOST
        and not (report.caught is not None and report.phase is PodPhase.GATED)
    ]


def number_above(found: Iterable[Unknown]) -> None:
    """The next attempts of these workloads get numbers that no cluster has seen: a name that was
    used, be its pod gated or over, would bring that pod back."""
    seen: dict[UUID, int] = {}
    for each in found:
        if each.workload is not None and 0 < each.report.attempt - each.known <= MOST_LOST:
            seen[each.workload] = max(each.report.attempt, seen.get(each.workload, 0))
    for id, number in sorted(seen.items()):
        Workload.objects.filter(id=id, attempts_seen__lt=number).update(attempts_seen=number)


# In another cluster, which is listed, only what was never born there: of the rest its own list
# tells. That may come before the one that shows the later attempt, or after it.
_SUPERSEDED = """
WITH later AS (
    SELECT workload, max(number) AS number
    FROM (SELECT * FROM unnest(%(workloads)s::uuid[], %(numbers)s::int[]) AS u (workload, number)
          UNION ALL SELECT workload_id, attempt FROM scheduler_stray
          WHERE workload_id IS NOT NULL AND cluster_id <> %(cluster)s) AS found
    GROUP BY workload)
SELECT a.id, a.workload_id, w.project_id
FROM later JOIN scheduler_attempt a
  ON a.workload_id = later.workload AND a.number < later.number AND a.ended_at IS NULL
JOIN scheduler_workload w ON w.id = a.workload_id
JOIN clusters_cluster c ON c.id = a.cluster_id
WHERE (c.id = %(cluster)s OR c.restored_at IS NULL) AND NOT EXISTS (
    SELECT FROM scheduler_placement q WHERE q.attempt_id = a.id AND q.released_at IS NULL
      AND CASE WHEN c.id = %(cluster)s
               THEN q.pod_uid = ANY(%(uids)s) OR q.pod_name = ANY(%(names)s)
               ELSE q.pod_uid <> '' END)
ORDER BY a.id
"""


def supersede(
    *, cluster: Cluster, found: Iterable[Unknown], reports: Iterable[PodReport], at: datetime
) -> None:
    """Take back the live attempts that later ones have followed and of which nothing is in the
    list any more, or was ever born in another cluster: that they ended is known, how is not, so it
    counts as no failure."""
    later = {
        each.workload: each.report.attempt
        for each in sorted(found, key=lambda each: each.report.attempt)
        if each.workload is not None and each.report.attempt > each.known
    }
    there = [report for report in reports if not report.phase.ended]
    ended = rows(
        _SUPERSEDED,
        {
            "workloads": list(later),
            "numbers": list(later.values()),
            "cluster": cluster.id,
            "uids": [report.uid for report in there],
            "names": [report.name for report in there],
        },
    )
    for attempt, workload, project in ended:
        with transaction.atomic():
            lock([attempt])
            moved = transition(
                [
                    Step(
                        workload,
                        project,
                        state,
                        State.PREEMPTING,
                        LATER,
                    )
                    for state in (State.ADMITTED, State.BOUND, State.RUNNING)
                ],
                actor=ACTOR,
                actor_name="observer",
                at=at,
            )
            if moved:
                stops.stop_attempts(attempt_ids=[attempt])
