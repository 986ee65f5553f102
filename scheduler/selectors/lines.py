"""Who waits, in which order, as pages show it: own projects line by line, all others as one
sum."""

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from scheduler.core.lifecycle import HOLDING, State
from scheduler.core.units import ONE_MILLI
from scheduler.models import Workload
from scheduler.selectors import fleet, listing, standing
from scheduler.selectors.listing import Line
from scheduler.selectors.standing import Standing
from tenants import access
from tenants.access import Actor
from tenants.models import Project
from tenants.selectors.queues import ClosedTenant, closed_tenants

SHOWN = 20
"""Workloads listed of each project; the rest is counted."""
MOST_QUEUES = 25
"""Projects whose queues are listed, and as many that have nothing that waits; the rest is
counted."""


@dataclass(frozen=True, slots=True)
class Load:
    """Workloads and what they ask for in thousandths of devices or slices."""

    count: int
    devices_milli: int

    def __add__(self, other: "Load") -> "Load":
        return Load(self.count + other.count, self.devices_milli + other.devices_milli)


NOTHING = Load(0, 0)


@dataclass(frozen=True, slots=True)
class Queue:
    """A project's pending work, first in line first; `lines` are the first SHOWN of `waiting`, an
    array being one.

    `state` and `note` say whether any of it starts, and if not, why; so do `closed_tenants`, the
    nearest first, of those above it, and `frozen_at`, since when its quota waits to be confirmed.
    """

    project_id: UUID
    project: str
    tenant: str
    state: str
    note: str
    frozen_at: datetime | None
    closed_tenants: tuple[ClosedTenant, ...]
    waiting: Load
    active: Load
    lines: tuple[Line, ...]
    standing: tuple[Standing, ...]

    @property
    def shown(self) -> int:
        """How many of those that wait stand in `lines`."""
        whole = [x.array.states[State.PENDING] if x.array else 1 for x in self.lines]
        return sum(whole)


@dataclass(frozen=True, slots=True)
class Queues:
    """By name: of more than MOST_QUEUES with work that waits those where most does, `beyond_count`
    being how many more there are, and likewise of those where nothing waits. `elsewhere` sums up
    what the actor does not see, without names."""

    queues: tuple[Queue, ...]
    beyond_count: int
    quiet_beyond_count: int
    elsewhere_waiting: Load
    elsewhere_active: Load


def queues(*, actor: Actor, at: datetime, project: UUID | None = None) -> Queues:
    """The projects that the actor sees and that have live work, or just that one. Fourteen
    queries."""
    waiting, active = _loads()
    seen = {
        p.id: p
        for p in access.for_actor(Project.objects.all(), actor=actor).select_related("tenant")
    }
    wanted = [
        p for p in seen.values() if (p.id in waiting or p.id in active) and project in (None, p.id)
    ]
    wait, quiet = ([p for p in wanted if (p.id in waiting) == waits] for waits in (True, False))
    wait.sort(key=lambda p: (-waiting[p.id].count, _by_name(p)))
    quiet.sort(key=_by_name)
    wanted = sorted([*wait[:MOST_QUEUES], *quiet[:MOST_QUEUES]], key=_by_name)
    lines = _first_lines([p.id for p in wanted if p.id in waiting])
    closed = closed_tenants()
    stand = standing.standings(projects=wanted, at=at)
    return Queues(
        queues=tuple(
            Queue(
                project_id=p.id,
                project=p.name,
                tenant=p.tenant.name,
                state=p.queue_state,
                note=p.queue_note,
                frozen_at=p.quota_frozen_at,
                closed_tenants=closed.get(p.tenant_id, ()),
                waiting=waiting.get(p.id, NOTHING),
                active=active.get(p.id, NOTHING),
                lines=lines.get(p.id, ()),
                standing=stand[p.id],
            )
            for p in wanted
        ),
        beyond_count=max(0, len(wait) - MOST_QUEUES),
        quiet_beyond_count=max(0, len(quiet) - MOST_QUEUES),
        elsewhere_waiting=sum((v for k, v in waiting.items() if k not in seen), NOTHING),
        elsewhere_active=sum((v for k, v in active.items() if k not in seen), NOTHING),
    )


def _by_name(project: Project) -> tuple[str, str, str]:
    return project.tenant.name, project.name, str(project.id)


# Who asks for memory of a device counts what its pods hold of one, or would of the first flavor
# that they may get and that has so much (core/quota/portions).
_PORTION = f"""
coalesce(
    (SELECT min(p.amount_milli) FROM scheduler_placement p
     WHERE p.workload_id = w.id AND p.pod_set_id = s.id AND p.released_at IS NULL),
    (SELECT CASE f.kind WHEN 'share'
            THEN (s.gpu_memory_mib * {ONE_MILLI} + f.memory_mib - 1) / f.memory_mib
            ELSE {ONE_MILLI} END
     FROM scheduler_podsetflavor a JOIN clusters_flavor f ON f.id = a.flavor_id
     WHERE a.pod_set_id = s.id AND f.memory_mib >= s.gpu_memory_mib
       AND berth_isolation_rank(f.isolation) >= greatest(
           berth_isolation_rank(s.least_isolation), berth_isolation_rank(t.least_isolation))
     ORDER BY a.position LIMIT 1),
    0)
"""  # noqa: S608  # constants
_LOADS = f"""
SELECT w.project_id, w.state = 'PENDING', count(DISTINCT w.id),
       sum(s.count * s.gpu_count * CASE WHEN s.gpu_memory_mib IS NULL THEN s.gpu_milli
                                        ELSE {_PORTION} END)::bigint
FROM scheduler_podset s
JOIN scheduler_workload w ON w.id = s.workload_id
JOIN tenants_project t ON t.id = w.project_id
WHERE w.ended_at IS NULL AND (w.state = 'PENDING' OR w.state = ANY(%s))
GROUP BY 1, 2
"""  # noqa: S608  # constants


def _loads() -> tuple[dict[UUID, Load], dict[UUID, Load]]:
    """Project → what waits and what holds capacity, over the fleet."""
    waiting: dict[UUID, Load] = {}
    active: dict[UUID, Load] = {}
    for project, waits, count, devices_milli in fleet.rows(_LOADS, [sorted(HOLDING)]):
        (waiting if waits else active)[project] = Load(count, devices_milli)
    return waiting, active


# In the order of queues.ORDER; of each array the first that waits.
_FIRST = """
SELECT id, place FROM (
    SELECT id, place, row_number() OVER (PARTITION BY project_id ORDER BY place) AS line FROM (
        SELECT id, project_id,
               row_number() OVER (PARTITION BY project_id
                                  ORDER BY priority DESC, at, name) AS place,
               row_number() OVER (PARTITION BY coalesce(array_id, id)
                                  ORDER BY priority DESC, at, name) AS nth
        FROM (SELECT id, project_id, array_id, priority,
                     coalesce(turn_at, submitted_at) AS at, coalesce(turn_of, id) AS name
              FROM scheduler_workload
              WHERE state = 'PENDING' AND ended_at IS NULL
                AND project_id = ANY(%s)) queued) waiting
    WHERE nth = 1) listed
WHERE line <= %s
"""


def _first_lines(projects: list[UUID]) -> dict[UUID, tuple[Line, ...]]:
    """The head of each queue."""
    places: dict[UUID, int] = dict(fleet.rows(_FIRST, [projects, SHOWN]))
    found: dict[UUID, list[Line]] = {}
    for line in listing.lines(rows=Workload.objects.filter(id__in=list(places))):
        found.setdefault(line.project_id, []).append(line)
    return {
        project: tuple(
            replace(line, place=places[line.id])
            for line in sorted(lines, key=lambda line: places[line.id])
        )
        for project, lines in found.items()
    }
