"""Claims on attempts with due operations: who acts on which, timed by the database alone.

A claim is short, and prolonged while its batch goes on: a dead worker's is taken over soon. One
that ran out under a worker that was only slow harms nothing: whatever that worker then stores asks
for its token, and it opens no pod but those whose uid is stored.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction

from clusters.autoscaling import Consumed
from clusters.claiming import ClaimRequest
from clusters.published import Pin
from clusters.services import restoring
from controlplane.kernel import commits, statements
from scheduler.loop.pods import caught
from scheduler.loop.pods.caught import requests_heard
from scheduler.models import OperationKind, request_name
from scheduler.selectors.fleet import rows


@dataclass(frozen=True, slots=True)
class Pod:
    """What dispatch needs of one placement. `peers` is how many pods its gang started with;
    `least` and `most` are how many it may have. `pins` are its certain devices, where a driver
    publishes each; while one of those is gone, or its node tells its devices in another way than
    when it was placed there, it is `displaced`. Where others made the pods, `caught` is set, and
    `taken` is the uid of the one that it is to have, None for none.
    What it asks for by resources, and how many of each, is `asks`, where a driver publishes its
    node's devices. `requests` are those of its own claims, `consumes` the request by which its
    node was asked for."""

    placement_id: UUID
    workload_id: UUID
    attempt: int
    rank: int
    peers: int
    namespace: str
    name: str
    uid: str
    hostname: str
    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    cpu_milli: int
    memory_mib: int
    flavor_kind: str
    profile: str
    gpu_count: int
    amount_milli: int
    gpu_memory_mib: int | None
    isolation: str
    share_replicas: int
    share_resource: str
    gpu_resource: str
    mig_single: bool
    run_time_limit_s: int | None
    grace_s: int
    notice_s: int
    array_index: int | None
    array_size: int | None
    least: int
    most: int
    priority: str
    opened: bool
    dismissed: bool
    pins: tuple[Pin, ...] = ()
    caught: bool = False
    taken: str | None = None
    displaced: bool = False
    asks: tuple[tuple[str, int], ...] | None = None
    requests: tuple[ClaimRequest, ...] = ()
    consumes: Consumed | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """`due` is what is to be done: a stop goes before the start that it overtook, and waits for
    the end of the notice, until `notice_until`, that goes before it."""

    id: UUID
    workload_id: UUID
    project_id: UUID
    namespace: str
    due: OperationKind
    notice_until: datetime | None
    pods: tuple[Pod, ...] = field(repr=False)


# The claim is on the attempt's own row: a worker that loses the race for the row lock sees the
# winner's claim when it re-reads the row, and passes on. What is due comes as an array, so that
# the few due rows lead the way and not the many attempts that ended long ago. Materialised,
# because a subquery that a nested loop asks again finds further rows, past its limit. What ended
# unseen is stopped once the cluster is heard: what its pods came to is stored by then. Nothing is
# started while its workload may run in another cluster, unread since a restore, or does run, as a
# later attempt that is not adopted yet. The rest of the transaction looks rows up by their keys,
# as in `transition`.
_CLAIM = f"""
WITH due AS MATERIALIZED (
    SELECT a.id FROM scheduler_attempt a
    WHERE a.cluster_id = %(cluster)s
      AND (a.claimed_until IS NULL OR a.claimed_until < clock_timestamp())
      AND (a.unseen_since IS NULL OR EXISTS (
          SELECT FROM clusters_cluster c WHERE c.id = a.cluster_id AND c.state = 'active'))
      AND a.id = ANY(ARRAY(SELECT o.attempt_id FROM scheduler_operation o
                           WHERE o.done_at IS NULL AND o.due_at <= clock_timestamp()))
      AND (EXISTS (SELECT FROM scheduler_operation s
                   WHERE s.attempt_id = a.id AND s.kind = 'stop')
           OR NOT {restoring.ANY_UNREAD} AND NOT EXISTS (
               SELECT FROM scheduler_stray y
               WHERE y.workload_id = a.workload_id AND y.attempt > a.number))
    ORDER BY a.id LIMIT %(limit)s FOR UPDATE OF a SKIP LOCKED),
claimed AS (
    UPDATE scheduler_attempt a SET claim = %(token)s,
        claimed_until = clock_timestamp() + %(length)s * interval '1 second'
    FROM due, (SELECT set_config('enable_seqscan', 'off', true)) AS by_key, {commits.NOT_WAITING}
    WHERE a.id = due.id RETURNING a.id, a.workload_id)
SELECT c.id, c.workload_id, w.project_id, p.namespace,
       CASE WHEN o.attempt_id IS NULL THEN 'start'
            WHEN o.done_at IS NULL AND o.failures = 0 AND o.due_at > clock_timestamp()
            THEN 'notice' ELSE 'stop' END,
       w.notice_until
FROM claimed c
LEFT JOIN scheduler_operation o ON o.attempt_id = c.id AND o.kind = 'stop'
JOIN scheduler_workload w ON w.id = c.workload_id
JOIN tenants_project p ON p.id = w.project_id
ORDER BY c.id
"""  # noqa: S608  # a constant


def claim(*, cluster_id: UUID, token: UUID, limit: int) -> list[Claimed]:
    """Up to `limit` attempts of the cluster with something due, oldest first, now ours."""
    asked = {
        "token": token,
        "length": settings.BERTH_CLAIM_S,
        "cluster": cluster_id,
        "limit": limit,
    }
    with transaction.atomic():
        claimed = rows(_CLAIM, asked)
        caught.assign(attempts=[id for id, *_, due, _ in claimed if due == OperationKind.START])
        pods = _pods([id for id, *_ in claimed]) if claimed else {}
    return [
        Claimed(id, workload, project, namespace, OperationKind(due), until, tuple(pods[id]))
        for id, workload, project, namespace, due, until in claimed
    ]


def _pods(attempts: Sequence[UUID]) -> dict[UUID, list[Pod]]:
    pods: dict[UUID, list[Pod]] = defaultdict(list)
    for attempt, *columns in rows(_PODS, [attempts]):
        pods[attempt].append(_pod(*columns))
    return pods


# Those that still hold their room. What is asked of a pod stays what it was, whatever became of
# the others, for the cluster compares: so `peers` counts those that were placed at the start.
_PODS = """
SELECT * FROM (
    SELECT q.attempt_id, q.id, q.workload_id, a.number, q.rank,
           count(*) FILTER (WHERE q.created_at = a.created_at)
               OVER (PARTITION BY q.attempt_id) AS peers,
           p.namespace, coalesce(c.name, q.pod_name), q.pod_uid, n.hostname, s.image, s.command,
           s.args, s.env,
           q.cpu_milli, q.memory_mib, f.kind, f.profile, s.gpu_count, q.amount_milli,
           s.gpu_memory_mib, f.isolation, n.share_replicas, n.share_resource, n.gpu_resource,
           n.mig_single, w.run_time_limit_s, w.grace_s, w.notice_s, w.array_index, y.size,
           sizes.least, sizes.most, w.priority_class, q.opened_at IS NOT NULL,
           q.dismissed_at IS NOT NULL, n.device_driver,
           (SELECT json_agg(ARRAY[d.uuid, lower(z.span)::text] ORDER BY d.ordinal, z.span)
            FROM scheduler_placementspan z JOIN clusters_device d ON d.id = z.device_id
            WHERE z.placement_id = q.id AND d.uuid <> ''),
           EXISTS (SELECT FROM scheduler_placementspan z JOIN clusters_device d
                   ON d.id = z.device_id WHERE z.placement_id = q.id
                   AND ((d.uuid = '') <> (n.device_driver = '')
                        OR d.uuid <> '' AND d.gone_at IS NOT NULL)),
           k.id, k.terms ->> 'request_class', o.id IS NOT NULL, c.uid,
           c.resources, c.requests, q.released_at
    FROM scheduler_placement q
    JOIN scheduler_attempt a ON a.id = q.attempt_id
    JOIN scheduler_workload w ON w.id = q.workload_id
    JOIN tenants_project p ON p.id = w.project_id
    JOIN scheduler_podset s ON s.id = q.pod_set_id
    JOIN clusters_node n ON n.id = q.node_id
    JOIN clusters_flavor f ON f.id = q.flavor_id
    LEFT JOIN scheduler_workloadarray y ON y.id = w.array_id
    LEFT JOIN scheduler_origin o ON o.workload_id = q.workload_id
    LEFT JOIN LATERAL (SELECT c.name, c.uid, c.said -> 'resources' AS resources,
                              c.said -> 'requests' AS requests
                       FROM scheduler_caughtpod c
                       WHERE o.id IS NOT NULL AND c.placement_id = q.id
                       ORDER BY c.gone_at DESC NULLS FIRST LIMIT 1) c ON true
    LEFT JOIN LATERAL (SELECT k.id, k.terms FROM scheduler_nodeask k
                       JOIN clusters_nodepool l ON l.id = k.pool_id
                       WHERE k.workload_id = q.workload_id AND k.state = 'asking'
                         AND l.cluster_id = a.cluster_id AND k.terms ? 'request_class'
                         AND n.labels @> (k.terms -> 'selector')
                       ORDER BY k.id LIMIT 1) k ON true
    CROSS JOIN LATERAL (SELECT sum(z.min_count)::int AS least, sum(z.count)::int AS most
                        FROM scheduler_podset z WHERE z.workload_id = q.workload_id) sizes
    WHERE q.attempt_id = ANY(%s)
) planned WHERE released_at IS NULL ORDER BY attempt_id, rank
"""


def _pod(*columns: Any) -> Pod:  # Any: the columns of _PODS after the first
    *before, command, args, env = columns[:13]
    lists = tuple(command), tuple(args), tuple(sorted(json.loads(env).items()))
    *after, driver, held, displaced, ask, request_class, caught, taken = columns[13:-3]
    resources, requested, _ = columns[-3:]
    requests = requests_heard(json.loads(requested or "[]"))
    consumes = Consumed(request_name(ask), request_class) if ask else None
    # What others made says itself what it asks for. Without claims its devices are the cluster's
    # choice; with them they have to be published.
    displaced = bool((requests and not held) or (displaced and (requests or not caught)))
    pod = Pod(*(*before, *lists, *after, (), caught, taken, displaced, None, requests, consumes))
    if driver and caught and resources:
        pod = replace(pod, asks=tuple(sorted(json.loads(resources).items())))
    if not held or (caught and not requests):
        return pod
    pins = (Pin(driver, uuid, pod.profile, int(start)) for uuid, start in held)
    return replace(pod, pins=tuple(pins))


def prolong(*, attempts: Sequence[Claimed], token: UUID) -> None:
    """Another BERTH_CLAIM_S from now, of those whose claim is still `token`."""
    with statements.cursor() as cursor:
        cursor.execute(
            "UPDATE scheduler_attempt"
            " SET claimed_until = clock_timestamp() + %s * interval '1 second'"
            " WHERE id = ANY(%s) AND claim = %s",
            [settings.BERTH_CLAIM_S, [attempt.id for attempt in attempts], token],
        )


def still_mine(*, attempts: Sequence[Claimed], token: UUID) -> frozenset[UUID]:
    """Those that are claimed by `token` and that nobody wants stopped meanwhile."""
    with statements.cursor() as cursor:
        cursor.execute(
            "SELECT a.id FROM scheduler_attempt a WHERE a.id = ANY(%s) AND a.claim = %s"
            " AND a.claimed_until > clock_timestamp() AND a.ended_at IS NULL AND NOT EXISTS"
            " (SELECT 1 FROM scheduler_operation o WHERE o.attempt_id = a.id AND o.kind = 'stop')",
            [[attempt.id for attempt in attempts], token],
        )
        return frozenset(row[0] for row in cursor.fetchall())


def keep(*, attempts: Sequence[Claimed], token: UUID) -> frozenset[UUID]:
    """Those whose claim is still `token` and that are not over, locked until the transaction ends,
    whose commit need not wait."""
    with statements.cursor() as cursor:
        cursor.execute(
            f"SELECT a.id FROM scheduler_attempt a, {commits.NOT_WAITING}"  # noqa: S608  # constant
            " WHERE a.id = ANY(%s) AND a.claim = %s AND a.ended_at IS NULL"
            " ORDER BY a.id FOR NO KEY UPDATE OF a",
            [[attempt.id for attempt in attempts], token],
        )
        return frozenset(row[0] for row in cursor.fetchall())


def store_uids(uids: Mapping[UUID, str], *, token: UUID) -> frozenset[UUID]:
    """Note which pods are whose, only while the claim is ours and no other uid is stored.

    Returns the placements whose uid is another's already: nothing is stored for those.
    """
    if not uids:
        return frozenset()
    try:
        with transaction.atomic(), statements.cursor() as cursor:
            cursor.execute(
                "UPDATE scheduler_placement p SET pod_uid = u.uid"
                " FROM unnest(%s::uuid[], %s::text[]) AS u(id, uid), scheduler_attempt a"
                " WHERE p.id = u.id AND p.pod_uid = '' AND a.id = p.attempt_id AND a.claim = %s",
                [list(uids), list(uids.values()), token],
            )
    except IntegrityError:
        if len(uids) == 1:
            return frozenset(uids)
        # Rare, and only of a cluster that lies: one by one, so that it harms nothing else.
        return frozenset().union(*(store_uids({id: uid}, token=token) for id, uid in uids.items()))
    return frozenset()


def mark_opened(placements: Sequence[UUID], at: datetime) -> None:
    """Their gates are open: of those that have a pod and still hold their room."""
    with statements.cursor() as cursor:
        cursor.execute(
            "UPDATE scheduler_placement SET opened_at = %s WHERE id IN ("
            " SELECT id FROM scheduler_placement WHERE id = ANY(%s) AND opened_at IS NULL"
            " AND released_at IS NULL AND pod_uid <> '' ORDER BY id FOR NO KEY UPDATE)",
            [at, list(placements)],
        )


def close(*, attempts: Sequence[UUID], kinds: Sequence[OperationKind], token: UUID) -> None:
    """Operations of these kinds are done, and the claim ends. A stop that came while starting
    stays due."""
    with statements.cursor() as cursor:
        cursor.execute(
            "WITH done AS (UPDATE scheduler_operation o SET done_at = clock_timestamp()"
            " FROM scheduler_attempt a WHERE a.id = o.attempt_id AND a.id = ANY(%s)"
            " AND a.claim = %s AND o.done_at IS NULL AND o.kind = ANY(%s))"
            " UPDATE scheduler_attempt SET claim = NULL, claimed_until = NULL"
            " WHERE id = ANY(%s) AND claim = %s",
            [list(attempts), token, [kind.value for kind in kinds], list(attempts), token],
        )


def close_started(*, attempts: Sequence[UUID], dismissed: Sequence[UUID], token: UUID) -> None:
    """As `close`, of starts and of resizings; but what is not all open, or has to let go others
    than the `dismissed` placements, stays due. The caller has locked the attempts."""
    with statements.cursor() as cursor:
        cursor.execute(
            "WITH further AS (SELECT attempt_id FROM scheduler_placement"
            " WHERE attempt_id = ANY(%(attempts)s) AND released_at IS NULL"
            " AND CASE WHEN dismissed_at IS NULL THEN opened_at IS NULL"
            " ELSE id <> ALL(%(dismissed)s) END),"
            " done AS (UPDATE scheduler_operation SET done_at = clock_timestamp()"
            " WHERE attempt_id = ANY(%(attempts)s) AND done_at IS NULL AND kind = ANY(%(kinds)s)"
            " AND attempt_id NOT IN (SELECT attempt_id FROM further))"
            " UPDATE scheduler_attempt SET claim = NULL, claimed_until = NULL"
            " WHERE id = ANY(%(attempts)s) AND claim = %(token)s",
            {
                "attempts": list(attempts),
                "dismissed": list(dismissed),
                "kinds": [OperationKind.START.value, OperationKind.RESIZE.value],
                "token": token,
            },
        )


def postpone(
    *, attempts: Sequence[UUID], why: str, token: UUID, after_s: float | None = None
) -> None:
    """Try what is due again later: after `after_s`, or 1, 2, 4 … 60 s by the number of
    failures."""
    with statements.cursor() as cursor:
        cursor.execute(
            "UPDATE scheduler_operation o SET failures = least(o.failures + 1, 32767),"
            " last_error = %s, due_at = clock_timestamp() + interval '1 second'"
            " * coalesce(%s, least(60, power(2, least(o.failures, 6)))) FROM scheduler_attempt a"
            " WHERE a.id = o.attempt_id AND a.id = ANY(%s) AND a.claim = %s AND o.done_at IS NULL"
            " AND o.due_at <= clock_timestamp()",
            [why[:500], after_s, list(attempts), token],
        )
    let_go(attempts=attempts, token=token)


def let_go(*, attempts: Sequence[UUID], token: UUID) -> None:
    """End the claim: what is due may be claimed again at once."""
    if not attempts:
        return
    with statements.cursor() as cursor:
        cursor.execute(
            "UPDATE scheduler_attempt SET claim = NULL, claimed_until = NULL"
            " WHERE id = ANY(%s) AND claim = %s",
            [list(attempts), token],
        )
