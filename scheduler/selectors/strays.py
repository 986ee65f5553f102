"""What clusters run and the database does not know, as it was put back from a backup."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from scheduler.models import Stray
from scheduler.selectors.fleet import rows

SHOWN = 20


@dataclass(frozen=True, slots=True)
class One:
    namespace: str
    name: str
    node: str
    why: str


@dataclass(frozen=True, slots=True)
class Found:
    """Of one cluster: how many such pods there are, since when the oldest of them is known, the
    first of them by name; `restored_at` is since when it is known that the database was put
    back, None where the cluster was listed since."""

    count: int
    since: datetime | None
    first: tuple[One, ...]
    restored_at: datetime | None

    @property
    def more(self) -> int:
        return self.count - len(self.first)


_FOUND = """
SELECT count(s.id), min(s.found_at), c.restored_at
FROM clusters_cluster c LEFT JOIN scheduler_stray s ON s.cluster_id = c.id
WHERE c.id = %s GROUP BY c.id
"""


def found_in(*, cluster_id: UUID) -> Found:
    """One query, and another where there are any."""
    [[count, since, restored_at]] = rows(_FOUND, [cluster_id])
    strays = Stray.objects.filter(cluster_id=cluster_id).order_by("name")[:SHOWN] if count else ()
    first = tuple(One(each.namespace, each.name, each.node, each.why) for each in strays)
    return Found(count, since, first, restored_at)


_EVERYWHERE = """
SELECT c.name, count(s.id), c.restored_at
FROM clusters_cluster c LEFT JOIN scheduler_stray s ON s.cluster_id = c.id
GROUP BY c.id ORDER BY c.name
"""


def counts() -> list[tuple[str, int, datetime | None]]:
    """By cluster: how many such pods there are, and since when it is to be listed, None where it
    was listed. One query."""
    return [(name, count, restored_at) for name, count, restored_at in rows(_EVERYWHERE)]
