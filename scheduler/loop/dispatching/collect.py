"""Takes away what ended attempts left in their cluster: a gang's service at once, pods later.

Nothing is claimed: an attempt that has ended never lives again, what is deleted is bound to its
labels and its pods' uids, and what is stored is a compare-and-set. So it may be done twice, or by
two at once.
"""

import logging
from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial
from typing import NamedTuple
from uuid import UUID

from django.conf import settings

from clusters.port import ClusterError, ClusterPort
from controlplane.kernel import statements
from controlplane.kernel.crash import crash
from scheduler.loop.dispatching.calls import Batch, Calls, threads
from scheduler.loop.pods.requests import is_gang, service_name
from scheduler.models import Leftover
from scheduler.selectors.fleet import rows

logger = logging.getLogger(__name__)

BATCH = 20
MOST_PODS = 200
"""Attempts and pods of one call, which has to end within a task; one attempt is never parted."""
AGAIN_S, LATEST_S = 60, 3600
"""A deletion that failed is tried again when as much time has gone by as since the attempt ended,
within these bounds: what can't be deleted, for want of a right say, must not keep others waiting.
"""


class _Ended(NamedTuple):
    """`most` is how many pods it could have; `pods` are names and uids of those that Berth
    made."""

    id: UUID
    leftover: Leftover
    workload_id: UUID
    number: int
    namespace: str
    most: int
    pods: Sequence[tuple[str, str]]


_DUE = """
SELECT a.id, a.leftover, a.workload_id, a.number, t.namespace,
       (SELECT sum(s.count) FROM scheduler_podset s WHERE s.workload_id = a.workload_id),
       coalesce(array_agg(ARRAY[q.pod_name, q.pod_uid])
                FILTER (WHERE q.pod_uid <> '' AND o.id IS NULL), '{}')
FROM (SELECT * FROM scheduler_attempt
      WHERE cluster_id = %s AND collect_at <= statement_timestamp()
      ORDER BY collect_at, id LIMIT %s) a
JOIN scheduler_workload w ON w.id = a.workload_id
JOIN tenants_project t ON t.id = w.project_id
JOIN scheduler_placement q ON q.attempt_id = a.id
LEFT JOIN scheduler_origin o ON o.workload_id = a.workload_id  -- whose pods are others' to keep
GROUP BY a.id, a.leftover, a.workload_id, a.number, t.namespace
"""


def collect(*, port: ClusterPort, cluster_id: UUID) -> Batch:
    """Delete what is left of up to BATCH attempts of the cluster, those first that are due the
    longest. What fails is tried again later."""
    due = _due(cluster_id)
    if not due:
        return Batch(0, reached=True)
    with threads() as pool:
        calls = Calls(port, pool, alive=lambda: None)
        answers = calls.each(dict(call for ended in due for call in _deletions(port, ended)))
    crash("C1")
    failed = set()
    for (id, name), answer in answers.items():
        if isinstance(answer, ClusterError):
            logger.warning("attempt %s: %s is not collected: %s", id, name, answer)
            failed.add(id)
    _store(due, failed)
    return Batch(len(due), calls.reached)


def _due(cluster_id: UUID) -> list[_Ended]:
    due: list[_Ended] = []
    pods = 0
    for id, leftover, *rest in rows(_DUE, [cluster_id, BATCH]):
        ended = _Ended(id, Leftover(leftover), *rest)
        pods += len(ended.pods)
        if due and pods > MOST_PODS:
            break
        due.append(ended)
    return due


def _deletions(
    port: ClusterPort, ended: _Ended
) -> Iterator[tuple[tuple[UUID, str], Callable[[], None]]]:
    """The calls that take away what is due, by attempt and name."""
    if is_gang(ended.most):
        # With the pods once more: a late repeat of its creation may have brought it back.
        name = service_name(ended.workload_id, ended.number)
        yield (
            (ended.id, name),
            partial(
                port.delete_service,
                namespace=ended.namespace,
                name=name,
                workload=str(ended.workload_id),
                attempt=ended.number,
            ),
        )
    if ended.leftover == Leftover.PODS:
        for name, uid in ended.pods:
            yield (
                (ended.id, name),
                partial(
                    port.delete_pod,
                    namespace=ended.namespace,
                    name=name,
                    uid=uid,
                    grace_s=1,  # they have ended: nothing is left to wait for
                ),
            )


# Only where nobody came first: of two who delete the same, one stores it. No `after_s`: never.
_STORE = """
WITH d AS (
    SELECT u.* FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::int[])
        AS u(id, leftover, rest, after_s)
    JOIN scheduler_attempt k ON k.id = u.id AND k.leftover = u.leftover
    ORDER BY k.id FOR NO KEY UPDATE OF k)
UPDATE scheduler_attempt a SET
    leftover = d.rest, collect_at = clock_timestamp() + CASE
        WHEN d.rest <> d.leftover THEN d.after_s * interval '1 second'
        ELSE least(greatest(clock_timestamp() - a.ended_at, d.after_s * interval '1 second'),
                   %s * interval '1 second') END
FROM d WHERE a.id = d.id
"""


def _store(due: Sequence[_Ended], failed: Set[UUID]) -> None:
    """What is left of each now, and when that is due."""
    after = {
        Leftover.SERVICE: (Leftover.PODS, settings.BERTH_POD_RETENTION_S),
        Leftover.PODS: ("", None),
    }
    stored = [
        (ended.id, ended.leftover, ended.leftover, AGAIN_S)
        if ended.id in failed
        else (ended.id, ended.leftover, *after[ended.leftover])
        for ended in due
    ]
    with statements.cursor() as cursor:
        columns = [list(column) for column in zip(*stored, strict=True)]
        cursor.execute(_STORE, [*columns, LATEST_S])
