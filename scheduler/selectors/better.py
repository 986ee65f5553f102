"""Work that asks to be moved to a flavor that it prefers."""

from datetime import datetime, timedelta

from scheduler.core.movers import REST_S
from scheduler.selectors.fleet import rows

_LATER = """
SELECT 1 FROM scheduler_workload w
WHERE w.move_to_better AND w.ended_at IS NULL AND w.state = 'RUNNING'
  AND (w.moved_at IS NULL OR w.moved_at <= %s)
  AND EXISTS (SELECT 1 FROM scheduler_placement p
              JOIN scheduler_podsetflavor f
                ON f.pod_set_id = p.pod_set_id AND f.flavor_id = p.flavor_id
              WHERE p.workload_id = w.id AND p.released_at IS NULL AND f.position > 0)
LIMIT 1
"""


def any_may_move(*, at: datetime) -> bool:
    """Whether anything that asks for it runs on a later of its flavors, and has rested. One
    query."""
    return bool(rows(_LATER, [at - timedelta(seconds=REST_S)]))
