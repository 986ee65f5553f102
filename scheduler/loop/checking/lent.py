"""P2 above the projects: what a tenant, or the fleet, has of a flavor, and what is held of it.

By definition, each value from those below it; it shares no arithmetic with the planner's book and
with the trigger, and takes what is held from placements. What must not live here: the limits of
one project (promises.py).
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler.loop.checking.rules import Rule
from scheduler.selectors import fleet
from scheduler.selectors.fleet import Row

OVER = Rule(
    "P2",
    "over-lent",
    2,
    "flavor {2}: {4} are held of the {5} that {3}, and the newest of it came after any cut.",
)
GRACE = timedelta(minutes=1)
"""A cut and a cycle are dated by when they began, on two clocks, and either may have waited for
the other. A wall that is missing is found by what comes later."""

_CHILDREN = """
SELECT parent_id, id FROM tenants_tenant UNION ALL SELECT tenant_id, id FROM tenants_project
"""
_QUOTAS = """
SELECT flavor_id, project_id, nominal_milli, borrowing_limit_milli, lending_limit_milli
FROM tenants_quota
UNION ALL
SELECT flavor_id, tenant_id, nominal_milli, borrowing_limit_milli, lending_limit_milli
FROM tenants_tenantquota
"""
_HELD = """
SELECT p.flavor_id, w.project_id, sum(p.amount_milli)::bigint, max(p.created_at)
FROM scheduler_placement p JOIN scheduler_workload w ON w.id = p.workload_id
WHERE p.released_at IS NULL GROUP BY 1, 2
UNION ALL
SELECT q.flavor_id, q.project_id, sum(p.amount_milli * part.milli / 1000)::bigint,
       max(p.created_at)
FROM scheduler_placement p JOIN scheduler_workload w ON w.id = p.workload_id
JOIN clusters_flavorpart part ON part.part_id = p.flavor_id
JOIN tenants_quota q ON q.project_id = w.project_id AND q.flavor_id = part.whole_id
WHERE p.released_at IS NULL GROUP BY 1, 2
"""
_FLAVORS = """
SELECT f.id, f.name, max(e.at) FROM clusters_flavor f
LEFT JOIN (SELECT id, flavor_id FROM tenants_quota
           UNION ALL SELECT id, flavor_id FROM tenants_tenantquota) q ON q.flavor_id = f.id
LEFT JOIN audit_auditevent e
  ON e.target_id = q.id AND e.target_type IN ('quota', 'tenant-quota')
GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class _State:
    """Of one member of the tree: `newest` is when the last of `used` came that counts above it."""

    capacity: int
    used: int
    kept: int
    newest: datetime | None


def over() -> Iterator[Row]:
    """The columns of OVER for each tenant, and the fleet, of which more is held than they have and
    may borrow, though no quota of the flavor was cut since."""
    children: dict[object, list[object]] = defaultdict(list)
    for parent, child in fleet.rows(_CHILDREN):
        children[parent].append(child)
    quotas: dict[object, dict[object, Row]] = defaultdict(dict)
    for flavor, member, *amounts in fleet.rows(_QUOTAS):
        quotas[flavor][member] = tuple(amounts)
    held: dict[object, dict[object, Row]] = defaultdict(dict)
    for flavor, project, amount, newest in fleet.rows(_HELD):
        held[flavor][project] = (amount, newest)
    names: dict[object, str] = dict(fleet.rows("SELECT id, name FROM tenants_tenant"))
    for flavor, name, cut_at in fleet.rows(_FLAVORS):
        tree = _Tree(children, quotas[flavor], held[flavor])
        for member in (None, *names):
            state, most = tree.state(member), tree.most(member)
            late = cut_at is None or (state.newest and state.newest > cut_at + GRACE)
            if most is not None and state.used > most and late:
                whose = f"{names[member]} has and may borrow" if member else "the fleet has"
                yield flavor, member or "", name, whose, state.used, most


class _Tree:
    """One flavor. None is the fleet."""

    def __init__(
        self,
        children: dict[object, list[object]],
        quotas: dict[object, Row],
        held: dict[object, Row],
    ) -> None:
        self._children, self._quotas, self._held = children, quotas, held
        self._known: dict[object, _State] = {}

    def state(self, member: object) -> _State:
        found = self._known.get(member)
        if found is None:
            found = self._known[member] = self._derived(member)
        return found

    def most(self, member: object) -> int | None:
        """None is no limit."""
        capacity = self.state(member).capacity
        if member is None:
            return capacity
        _, borrowing, _ = self._quotas.get(member, (0, None, None))
        return None if borrowing is None else capacity + borrowing

    def _derived(self, member: object) -> _State:
        nominal, _, lending = self._quotas.get(member, (0, None, None))
        used, newest = self._held.get(member, (0, None))
        below = [self.state(child) for child in self._children.get(member, ())]
        over = [one for one in below if one.used > one.kept]
        capacity = nominal + sum(one.capacity - one.kept for one in below)
        times = [newest, *(one.newest for one in over)]
        return _State(
            capacity=capacity,
            used=used + sum(one.used - one.kept for one in over),
            kept=0 if lending is None else max(0, capacity - lending),
            newest=max((at for at in times if at is not None), default=None),
        )
