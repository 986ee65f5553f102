"""What a tick of the loop has to do, asked at once: mostly there is nothing of it."""

from datetime import datetime, timedelta
from typing import NamedTuple

from scheduler.core.moving.movers import REST_S
from scheduler.selectors.elastic import SHORT
from scheduler.selectors.fleet import rows
from scheduler.selectors.gates import OF_WAITING


class Due(NamedTuple):
    """Whether anything is to be planned: it waits, runs with fewer pods than it asks for, may move
    to a flavor that it prefers, or is held beyond a quota that is enforced by now. Then whether a
    queue drains, a planned defragmentation has begun, anything was seen idle, anything waits for
    another's end, a gate is past its deadline, anything stood idle because it is kept, and there
    are budgets that stop what runs."""

    plan: bool
    drain: bool
    defragment: bool
    idle: bool
    follow: bool
    expire: bool
    kept: bool
    hard: bool


# PostgreSQL asks no further once one of those between OR is so.
_DUE = f"""
SELECT EXISTS (SELECT FROM scheduler_workload WHERE ended_at IS NULL AND state = 'PENDING')
    OR EXISTS ({SHORT})
    OR EXISTS (SELECT FROM scheduler_workload w
               WHERE w.move_to_better AND w.ended_at IS NULL AND w.state = 'RUNNING'
                 AND (w.moved_at IS NULL OR w.moved_at <= %(rested)s)
                 AND EXISTS (SELECT FROM scheduler_placement p JOIN scheduler_attempt a
                               ON a.id = p.attempt_id AND a.ended_at IS NULL
                             JOIN scheduler_podsetflavor f
                               ON f.pod_set_id = p.pod_set_id AND f.flavor_id = p.flavor_id
                             JOIN scheduler_podset s ON s.id = p.pod_set_id AND NOT s.any_order
                             WHERE p.workload_id = w.id AND p.released_at IS NULL
                               AND f.position > 0))
    OR EXISTS (SELECT FROM tenants_quota WHERE enforce_at <= %(at)s)
    OR EXISTS (SELECT FROM tenants_tenantquota WHERE enforce_at <= %(at)s),
  EXISTS (SELECT FROM tenants_project WHERE queue_state = 'draining')
    OR EXISTS (SELECT FROM tenants_tenant WHERE queue_state = 'draining')
    OR EXISTS (SELECT FROM clusters_hardwarequeue WHERE queue_state = 'draining'),
  EXISTS (SELECT FROM scheduler_defragmentation
          WHERE ended_at IS NULL AND starts_at <= %(at)s),
  EXISTS (SELECT FROM scheduler_idleness),
  EXISTS (SELECT FROM scheduler_dependency WHERE settled_at IS NULL AND unmet_at IS NULL),
  EXISTS (SELECT FROM scheduler_gate g
          WHERE g.state = 'waiting' AND g.deadline_at <= %(at)s AND {OF_WAITING}),
  EXISTS (SELECT FROM scheduler_keptroom WHERE idle_milli > 0),
  EXISTS (SELECT FROM tenants_budget WHERE mode = 'hard')
"""  # noqa: S608  # constants


def now(*, at: datetime) -> Due:
    """One query."""
    rested = at - timedelta(seconds=REST_S)
    return Due(*rows(_DUE, {"at": at, "rested": rested})[0])
