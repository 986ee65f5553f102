"""The rules about rows, most of them parts of promises (reliability 3), each with a query for what
breaks it.

What must not live here: what no query finds (invariants.py).
"""

from collections.abc import Mapping

from scheduler.core.lifecycle import TRANSITIONS
from scheduler.loop.checking.rules import Rule

ROOM = "room"
"""No promise: hardware that shrinks breaks it as well as Berth could."""

_STEPS = ", ".join(
    f"('{before}', '{after}')" for before, following in TRANSITIONS.items() for after in following
).join("()")

# Each placement is charged to its flavor, and to its model's quota where the project has one.
_HELD = """
SELECT w.project_id, p.flavor_id, p.amount_milli, p.created_at FROM scheduler_placement p
JOIN scheduler_workload w ON w.id = p.workload_id WHERE p.released_at IS NULL
UNION ALL
SELECT q.project_id, q.flavor_id, p.amount_milli * part.milli / 1000, p.created_at
FROM scheduler_placement p JOIN scheduler_workload w ON w.id = p.workload_id
JOIN clusters_flavorpart part ON part.part_id = p.flavor_id
JOIN tenants_quota q ON q.project_id = w.project_id AND q.flavor_id = part.whole_id
WHERE p.released_at IS NULL
"""

RULES: Mapping[Rule, str] = {
    Rule("P1", "held-twice", 3, "device {} is held twice: by {} and by {}."): """
        SELECT a.device_id, a.placement_id, b.placement_id FROM scheduler_placementspan a
        JOIN scheduler_placementspan b ON b.device_id = a.device_id AND b.id > a.id
         AND b.span && a.span AND b.released_at IS NULL
        WHERE a.released_at IS NULL
        """,
    Rule("P1", "released-apart", 1, "{} and its spans are not released together."): """
        SELECT DISTINCT p.pod_name FROM scheduler_placement p
        JOIN scheduler_placementspan s ON s.placement_id = p.id
        WHERE (s.released_at IS NULL) <> (p.released_at IS NULL)
        """,
    Rule("P1", "no-device", 1, "{} holds {} thousandths of a GPU flavor and no device."): """
        SELECT p.pod_name, p.amount_milli FROM scheduler_placement p
        JOIN clusters_flavor f ON f.id = p.flavor_id
        WHERE f.kind <> 'cpu' AND (p.released_at IS NULL OR p.released_at > p.created_at)
          AND NOT EXISTS
         (SELECT 1 FROM scheduler_placementspan s WHERE s.placement_id = p.id)
        """,
    Rule(
        ROOM,
        "node-overfull",
        1,
        "node {1}: {2} of {3} thousandths of a core and {4} of {5} MiB are held.",
    ): """
        SELECT n.id, n.name, sum(p.cpu_milli), n.cpu_milli, sum(p.memory_mib), n.memory_mib
        FROM scheduler_placement p JOIN clusters_node n ON n.id = p.node_id
        WHERE p.released_at IS NULL GROUP BY n.id
        HAVING sum(p.cpu_milli) > n.cpu_milli OR sum(p.memory_mib) > n.memory_mib
        """,
    Rule(
        "P2",
        "miscounted",
        2,
        "project {}, flavor {}: {} thousandths are counted as used, {} are held.",
    ): f"""
        SELECT coalesce(q.project_id, h.project_id), coalesce(q.flavor_id, h.flavor_id),
               coalesce(q.used_milli, 0), coalesce(h.held, 0)
        FROM tenants_quota q FULL JOIN (
            SELECT project_id, flavor_id, sum(amount_milli) AS held
            FROM ({_HELD}) GROUP BY 1, 2
        ) h ON h.project_id = q.project_id AND h.flavor_id = q.flavor_id
        WHERE coalesce(q.used_milli, 0) <> coalesce(h.held, 0)
        """,  # noqa: S608  # constants
    # A cut quota may be passed by what was admitted before; the cut is in the audit. The minute is
    # lent.GRACE, and what holds above the projects is there.
    Rule(
        "P2",
        "over-limit",
        2,
        "project {}, flavor {}: {} held of {} at most, and the newest of it came after any cut.",
    ): f"""
        SELECT q.project_id, q.flavor_id, sum(p.amount_milli),
               q.nominal_milli + q.borrowing_limit_milli
        FROM tenants_quota q
        JOIN ({_HELD}) p ON p.flavor_id = q.flavor_id AND p.project_id = q.project_id
        WHERE q.borrowing_limit_milli IS NOT NULL GROUP BY q.id
        HAVING sum(p.amount_milli) > q.nominal_milli + q.borrowing_limit_milli
           AND max(p.created_at) > coalesce((SELECT max(e.at) FROM audit_auditevent e
                WHERE e.target_type = 'quota' AND e.target_id = q.id), '-infinity')
               + interval '1 minute'
        """,  # noqa: S608  # constants
    Rule("P3", "pod-twice", 1, "the pod {} stands for {} placements."): """
        SELECT pod_uid, count(*) FROM scheduler_placement WHERE pod_uid <> ''
        GROUP BY 1 HAVING count(*) > 1
        """,
    Rule("P4", "live-attempts", 1, "workload {} is {} and has {} live attempts."): """
        SELECT w.id, w.state, count(a.id) FROM scheduler_workload w
        LEFT JOIN scheduler_attempt a ON a.workload_id = w.id AND a.ended_at IS NULL
        GROUP BY w.id HAVING count(a.id) <> CASE WHEN w.state IN
            ('PENDING', 'SUCCEEDED', 'FAILED', 'CANCELLED') THEN 0 ELSE 1 END
        """,
    Rule(
        "P4", "stuck", 2, "attempt {} of workload {} is {} and nothing will ever move it: {}."
    ): """
        SELECT a.number, a.workload_id, w.state, CASE
            WHEN s.live = 0 THEN 'it holds nothing' WHEN s.unborn > 0 THEN 'it has no pods'
            ELSE 'its pods were not told' END
        FROM scheduler_attempt a JOIN scheduler_workload w ON w.id = a.workload_id
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE p.released_at IS NULL) AS live,
                   count(*) FILTER (WHERE p.released_at IS NULL AND p.pod_uid = '') AS unborn,
                   count(*) FILTER (WHERE p.released_at IS NULL AND p.opened_at IS NULL) AS shut
            FROM scheduler_placement p WHERE p.attempt_id = a.id) s
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE o.done_at IS NULL) AS due,
                   count(*) FILTER (WHERE o.kind = 'stop') AS stops
            FROM scheduler_operation o WHERE o.attempt_id = a.id) o
        WHERE a.ended_at IS NULL AND o.due = 0 AND (s.live = 0 OR s.unborn > 0
            OR (o.stops = 0 AND (s.shut > 0 OR w.state IN ('PREEMPTING', 'CANCELLING'))))
        """,
    Rule("P4", "ended-in-part", 2, "attempt {} of workload {} has ended, and {}."): """
        SELECT a.number, a.workload_id, 'an operation on it is open' FROM scheduler_attempt a
        JOIN scheduler_operation o ON o.attempt_id = a.id AND o.done_at IS NULL
        WHERE a.ended_at IS NOT NULL AND (a.unseen_since IS NULL OR o.kind <> 'stop')
        UNION ALL
        SELECT a.number, a.workload_id, p.pod_name || ' still holds room'
        FROM scheduler_attempt a
        JOIN scheduler_placement p ON p.attempt_id = a.id AND p.released_at IS NULL
        WHERE a.ended_at IS NOT NULL AND a.unseen_since IS NULL
        UNION ALL
        SELECT a.number, a.workload_id, CASE WHEN NOT h.any THEN 'is unseen, and holds nothing'
               ELSE 'is unseen, and was not told to stop' END
        FROM scheduler_attempt a CROSS JOIN LATERAL (
            SELECT EXISTS (SELECT FROM scheduler_placement p
                           WHERE p.attempt_id = a.id AND p.released_at IS NULL) AS any) h
        WHERE a.unseen_since IS NOT NULL AND NOT (h.any AND EXISTS (
            SELECT FROM scheduler_operation o WHERE o.attempt_id = a.id AND o.kind = 'stop'))
        """,
    Rule(
        "P5",
        "audit-differs",
        3,
        "workload {}, {} → {}: {} times in its timeline, {} in the audit.",
    ): """
        SELECT workload_id, before, after, coalesce(t.n, 0), coalesce(a.n, 0) FROM (
            SELECT workload_id, before::text, after::text, count(*) AS n
            FROM scheduler_workloadevent WHERE kind = 'state' GROUP BY 1, 2, 3
        ) t FULL JOIN (
            SELECT target_id AS workload_id, before->>'state' AS before,
                   after->>'state' AS after, count(*) AS n
            FROM audit_auditevent WHERE action = 'workload.state' GROUP BY 1, 2, 3
            UNION ALL
            SELECT target_id, '', after->>'state', count(*)
            FROM audit_auditevent WHERE action = 'workload.submit' GROUP BY 1, 2, 3
        ) a USING (workload_id, before, after)
        WHERE t.n IS DISTINCT FROM a.n
        """,
    # A timeline is one path: each state is left as often as it is entered, but for the last.
    Rule("P5", "no-path", 1, "workload {} is {}, and its timeline ends at: {}."): """
        SELECT w.id, w.state, coalesce(string_agg(e.state, ', '), 'nothing')
        FROM scheduler_workload w LEFT JOIN (
            SELECT workload_id, state, sum(n) AS n FROM (
                SELECT workload_id, after AS state, 1 AS n
                FROM scheduler_workloadevent WHERE kind = 'state'
                UNION ALL
                SELECT workload_id, before, -1
                FROM scheduler_workloadevent WHERE kind = 'state' AND before <> ''
            ) steps GROUP BY 1, 2 HAVING sum(n) <> 0
        ) e ON e.workload_id = w.id
        GROUP BY w.id
        HAVING count(e.state) <> 1 OR min(e.state) <> w.state OR min(e.n) <> 1
        """,
    Rule("P5", "version", 1, "workload {} is at version {} after {} steps."): """
        SELECT w.id, w.version, count(e.id) FROM scheduler_workload w
        LEFT JOIN scheduler_workloadevent e
          ON e.workload_id = w.id
         AND (e.kind = 'state' AND e.before <> '' OR e.kind = 'reordered')
        GROUP BY w.id HAVING w.version <> count(e.id) + 1
        """,
    Rule("P5", "no-step", 1, "workload {1} went from {2} to {3}, which is no step."): """
        SELECT id, workload_id, before, after FROM scheduler_workloadevent
        WHERE kind = 'state' AND before <> '' AND (before, after) NOT IN
        """  # noqa: S608  # constants
    + _STEPS,
    Rule(
        "P6", "metered-apart", 1, "{}: metered from {} to {}, {} in sum; it ran from {} to {}."
    ): """
        SELECT coalesce(p.pod_name, 'placement ' || m.placement_id), m.first, m.last, m.held,
               p.started_at, p.ended_at
        FROM scheduler_placement p FULL JOIN (
            SELECT placement_id, min(lower(during)) AS first, max(upper(during)) AS last,
                   sum(upper(during) - lower(during)) AS held
            FROM tenants_usageinterval GROUP BY 1
        ) m ON m.placement_id = p.id
        WHERE p.id IS NULL OR m.last IS DISTINCT FROM p.metered_until
           OR (m.first IS NOT NULL AND m.first IS DISTINCT FROM p.started_at)
           OR m.held <> m.last - m.first
           OR (p.released_at IS NOT NULL AND p.ended_at > p.started_at
               AND m.last IS DISTINCT FROM p.ended_at)
        """,
    Rule("P6", "not-ended", 1, "{} is released and did not end, or ended before it started."): """
        SELECT pod_name FROM scheduler_placement
        WHERE (released_at IS NULL) <> (ended_at IS NULL) OR ended_at < started_at
        """,
    Rule("P6", "metered-twice", 2, "{} is metered twice around {}."): """
        SELECT placement_id, lower(during) FROM (
            SELECT placement_id, during, max(upper(during)) OVER (
                PARTITION BY placement_id ORDER BY lower(during)
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS metered
            FROM tenants_usageinterval) u
        WHERE metered > lower(during)
        """,
    Rule(
        "P6",
        "usage-differs",
        1,
        "usage {} is not its placement's: project, flavor, cluster, user or amount differ.",
    ): """
        SELECT u.id FROM tenants_usageinterval u
        JOIN scheduler_placement p ON p.id = u.placement_id
        JOIN scheduler_workload w ON w.id = p.workload_id
        JOIN scheduler_attempt a ON a.id = p.attempt_id
        WHERE (u.project_id, u.flavor_id, u.cluster_id, u.user_id, u.amount_milli, u.workload_id)
           <> (w.project_id, p.flavor_id, a.cluster_id, w.submitted_by_id, p.amount_milli, w.id)
        """,
    Rule(
        "P6", "charge-differs", 1, "usage {} is charged {} times with {} in sum, where {} is due."
    ): """
        SELECT u.id, count(*), sum(c.amount), max(due.amount) FROM tenants_charge c
        JOIN tenants_usageinterval u ON u.id = c.usage_id JOIN tenants_rate r ON r.id = c.rate_id
        CROSS JOIN LATERAL (
            SELECT u.amount_milli * extract(epoch FROM upper(u.during) - lower(u.during))
                   * r.price_per_hour / 3600000 AS amount) due
        WHERE c.corrects_id IS NULL GROUP BY u.id
        HAVING count(*) > 1 OR abs(sum(c.amount) - max(due.amount)) > 0.000001
        """,
}
