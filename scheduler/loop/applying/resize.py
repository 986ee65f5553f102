"""Plan → rows, for work that runs: pods that come to it, and pods of it that go (ADR 0026).

What comes is looked at again and charged as in `apply`, and gets the next ranks of the attempt.
What goes is dismissed: it holds its room until its pod is seen gone. Both are then
`dispatching/dispatch`'s.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection, transaction

from controlplane.kernel import bulk, hints
from controlplane.kernel.crash import crash
from controlplane.kernel.ids import uuid7s
from scheduler.core.lifecycle import UNDER_WAY, State
from scheduler.core.plan import Grow, Shrink
from scheduler.core.reasons import PreemptRule
from scheduler.core.units import PlacementId, WorkloadId
from scheduler.loop.applying.apply import (
    RULES,
    amounts,
    by_halves,
    insert_placements,
    still_fitting,
    still_open,
)
from scheduler.loop.lease import Lease, fence
from scheduler.models import Placement, Workload, WorkloadEvent
from scheduler.selectors.fleet import rows
from scheduler.selectors.load import Loaded
from scheduler.services.transition import lock
from tenants.services import usage


class _Gang(NamedTuple):
    """A live attempt that nobody has told to stop. `next_rank` was never given."""

    attempt: UUID
    number: int
    state: State
    next_rank: int
    most: int


def grow(
    *, lease: Lease, loaded: Loaded, grows: Sequence[Grow], at: datetime
) -> frozenset[WorkloadId]:
    """Place the pods that come; the workloads that grew. Raises lease.Fenced."""
    projects = {held.id: UUID(held.project) for held in loaded.snapshot.holding}
    if not grows:
        return frozenset()
    return frozenset(by_halves(lease, grows, lambda some: _grow_batch(loaded, some, projects, at)))


def _grow_batch(
    loaded: Loaded, batch: Sequence[Grow], projects: dict[WorkloadId, UUID], at: datetime
) -> set[WorkloadId]:
    fitting = still_fitting(loaded, still_open(batch, projects))
    usage.lock(amounts(fitting, projects))
    gangs = _locked([each.workload for each in fitting])
    made = [
        replace(
            each,
            places=tuple(
                replace(place, rank=gang.next_rank + place.rank) for place in each.places
            ),
        )
        for each in fitting
        if (gang := gangs.get(each.workload)) and gang.state is State.RUNNING
    ]
    found = [gangs[each.workload] for each in made]
    usage.add(amounts(made, projects))
    insert_placements(made, [gang.attempt for gang in found], [gang.number for gang in found], at)
    crash("G1")
    _due([gang.attempt for gang in found])
    stay = _staying([gang.attempt for gang in found])
    _tell(
        "grown",
        {
            each.workload: f"{len(each.places)} more; {stay[gang.attempt]} of {gang.most} pods"
            for each, gang in zip(made, found, strict=True)
        },
        at,
    )
    return {each.workload for each in made}


def shrink(*, lease: Lease, shrinks: Sequence[Shrink], at: datetime) -> frozenset[WorkloadId]:
    """Dismiss the pods that go, never one of a set's least; whose they are. Raises
    lease.Fenced."""
    if not shrinks:
        return frozenset()
    asked: dict[PlacementId, Shrink] = {
        placement: shrink for shrink in shrinks for placement in shrink.placements
    }
    with transaction.atomic():
        fence(lease)
        gangs = _locked([shrink.victim for shrink in shrinks])
        gangs = {id: gang for id, gang in gangs.items() if gang.state in UNDER_WAY}
        going = _surplus([gang.attempt for gang in gangs.values()], asked)
        of = {gang.attempt: id for id, gang in gangs.items()}
        Placement.objects.filter(id__in=[id for id, _ in going]).update(dismissed_at=at)
        crash("G2")
        shrunk: dict[WorkloadId, list[PlacementId]] = defaultdict(list)
        for id, attempt in going:
            shrunk[of[attempt]].append(id)
        _due([gangs[id].attempt for id in shrunk])
        stay = _staying([gangs[id].attempt for id in shrunk])
        whom = _names([asked[pods[0]] for pods in shrunk.values()])
        _tell(
            "shrunk",
            {
                id: f"{len(pods)} fewer {whom[asked[pods[0]]]};"
                f" {stay[gangs[id].attempt]} of {gangs[id].most} pods"
                for id, pods in shrunk.items()
            },
            at,
        )
    return frozenset(shrunk)


_GANGS = """
SELECT a.workload_id::text, a.id, a.number, w.state,
       (SELECT max(p.rank) + 1 FROM scheduler_placement p WHERE p.attempt_id = a.id),
       (SELECT sum(s.count) FROM scheduler_podset s WHERE s.workload_id = w.id)
FROM scheduler_attempt a JOIN scheduler_workload w ON w.id = a.workload_id
WHERE a.id = ANY(%s) AND a.ended_at IS NULL AND NOT EXISTS
    (SELECT 1 FROM scheduler_operation o WHERE o.attempt_id = a.id AND o.kind = 'stop')
"""


def _locked(workloads: Sequence[WorkloadId]) -> dict[WorkloadId, _Gang]:
    """Their live attempts, held until the transaction ends."""
    attempts = [
        id
        for (id,) in rows(
            "SELECT id FROM scheduler_attempt"
            " WHERE workload_id = ANY(%s::uuid[]) AND ended_at IS NULL",
            [list(workloads)],
        )
    ]
    lock(attempts)
    return {
        WorkloadId(workload): _Gang(attempt, number, State(state), next_rank, most)
        for workload, attempt, number, state, next_rank, most in rows(_GANGS, [attempts])
    }


def _surplus(
    attempts: Sequence[UUID], asked: Mapping[PlacementId, Shrink]
) -> list[tuple[PlacementId, UUID]]:
    """Those of the asked pods, with their attempts, without which each set keeps its least: the
    highest ranks first."""
    found = rows(
        "SELECT p.id::text, p.attempt_id, p.pod_set_id, s.min_count FROM scheduler_placement p"
        " JOIN scheduler_podset s ON s.id = p.pod_set_id"
        " WHERE p.attempt_id = ANY(%s) AND p.released_at IS NULL AND p.dismissed_at IS NULL"
        " ORDER BY p.rank DESC, p.id",
        [list(attempts)],
    )
    left = Counter((attempt, pod_set) for _, attempt, pod_set, _ in found)
    going = []
    for id, attempt, pod_set, least in found:
        if id in asked and left[attempt, pod_set] > least:
            left[attempt, pod_set] -= 1
            going.append((PlacementId(id), attempt))
    return going


def _due(attempts: Sequence[UUID]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO scheduler_operation (id, attempt_id, kind, failures, last_error)"
            " SELECT u.id, u.attempt_id, 'resize', 0, ''"
            " FROM unnest(%s::uuid[], %s::uuid[]) AS u(id, attempt_id)"
            " ON CONFLICT (attempt_id, kind) DO UPDATE SET done_at = NULL, failures = 0,"
            " last_error = '', due_at = clock_timestamp()",
            [uuid7s(len(attempts)), list(attempts)],
        )
    if attempts:
        hints.hint(hints.DISPATCH)


def _staying(attempts: Sequence[UUID]) -> dict[UUID, int]:
    """How many pods of each stay."""
    found = rows(
        "SELECT attempt_id, count(*) FROM scheduler_placement WHERE attempt_id = ANY(%s)"
        " AND released_at IS NULL AND dismissed_at IS NULL GROUP BY attempt_id",
        [list(attempts)],
    )
    return dict(found)


def _names(shrinks: Sequence[Shrink]) -> dict[Shrink, str]:
    """For whom each is, as its own project may know it: of another project no more than why."""
    rows = Workload.objects.filter(
        id__in=[s.preemptor for s in shrinks if s.rule is PreemptRule.PRIORITY]
    )
    names = {str(id): name for id, name in rows.values_list("id", "name")}
    return {
        s: f"for {names[s.preemptor]}, {RULES[s.rule]}" if s.preemptor in names else RULES[s.rule]
        for s in shrinks
    }


def _tell(kind: str, messages: Mapping[WorkloadId, str], at: datetime) -> None:
    """A line in the timeline of each."""
    bulk.insert(
        WorkloadEvent,
        id=uuid7s(len(messages)),
        workload_id=[UUID(id) for id in messages],
        at=at,
        kind=kind,
        message=[message[:500] for message in messages.values()],
    )
