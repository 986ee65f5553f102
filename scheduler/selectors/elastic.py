"""Work that runs with fewer pods than it asks for."""

from scheduler.selectors.fleet import rows

SHORT = """
SELECT s.count - held.pods AS missing
FROM scheduler_podset s JOIN scheduler_workload w ON w.id = s.workload_id
CROSS JOIN LATERAL (SELECT count(*) AS pods FROM scheduler_placement p
                    JOIN scheduler_attempt a ON a.id = p.attempt_id AND a.ended_at IS NULL
                    WHERE p.workload_id = w.id AND p.pod_set_id = s.id
                      AND p.released_at IS NULL) held
WHERE s.min_count < s.count AND w.ended_at IS NULL AND w.state = 'RUNNING' AND held.pods < s.count
"""
"""Its pod sets, a row each, with how many pods each may still get."""


def missing() -> int:
    """How many pods running work may still get. One query."""
    return sum(row[0] for row in rows(SHORT))
