"""Which pods that failed had a device that is sick or gone: a driver says so of that very one; of
count tokens it is known of their node alone.

A program that dies of its GPU ends as one that fails by itself, and the others of its gang of the
connection to it. That is the doing of none of them.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from scheduler.core.failures import DEVICE_LOST
from scheduler.selectors.fleet import rows

# Of the whole attempt, for those who were connected to it: but for what went by other hands than
# ours, which says something of its own device alone. A token that has come back was not lost; a
# slice that has is another row.
_LOST = """
WITH lost AS (
    SELECT o.attempt_id, o.id,
           CASE d.uuid WHEN '' THEN 'its node ' || n.name || ' has lost devices'
                       ELSE d.uuid || ' of node ' || n.name || ' is sick or gone' END AS told
    FROM scheduler_placement o JOIN scheduler_attempt a ON a.id = o.attempt_id
    JOIN clusters_flavor f ON f.id = o.flavor_id
    JOIN scheduler_placementspan s ON s.placement_id = o.id
    JOIN clusters_device d ON d.id = s.device_id JOIN clusters_node n ON n.id = d.node_id
    WHERE o.attempt_id IN (SELECT attempt_id FROM scheduler_placement WHERE id = ANY(%(these)s))
      AND CASE WHEN d.uuid <> '' THEN d.gone_at IS NOT NULL OR NOT d.usable
          ELSE EXISTS (
              SELECT FROM clusters_device x LEFT JOIN clusters_deviceslice c ON c.device_id = x.id
              WHERE x.node_id = d.node_id AND x.uuid = ''
                AND (x.gone_at >= a.created_at AND x.model = d.model
                     OR c.gone_at >= a.created_at AND c.profile = f.profile AND NOT EXISTS (
                         SELECT FROM clusters_deviceslice l
                         WHERE l.device_id = x.id AND l.gone_at IS NULL
                           AND l.profile = c.profile AND l.span = c.span))) END)
SELECT p.id, min(l.told)
FROM scheduler_placement p JOIN lost l ON l.attempt_id = p.attempt_id
WHERE p.id = ANY(%(these)s) AND (p.id = ANY(%(by_itself)s) OR (
    l.id = p.id AND p.dismissed_at IS NULL AND NOT EXISTS (
        SELECT FROM scheduler_operation o WHERE o.attempt_id = p.attempt_id AND o.kind = 'stop')))
GROUP BY p.id
"""


def reasons(*, by_itself: Sequence[UUID], taken_away: Sequence[UUID]) -> Mapping[UUID, str]:
    """In place of the cluster's word, of those of these placements that have lost a device: whose
    program ended by itself, and whose pod somebody took away, unless we asked for that."""
    asked = {"these": [*by_itself, *taken_away], "by_itself": list(by_itself)}
    return {id: f"{DEVICE_LOST}: {told}" for id, told in rows(_LOST, asked)}
