"""Pods of ours that the database does not know → attempts of their workloads, or strays.

There are such pods when the database was put back from a backup: what was started since then runs
on. A whole attempt later than all that are known is adopted: it gets the rows that it had, of new
ids, and is shown, charged from now on and judged as any. What can't be adopted is stored as a
stray with the reason; while one runs its workload is not started (`core.blocked`), and what it
holds counts as foreign (`watch`). Nothing is ever deleted here (P8).

What must not live here: which devices an adopted pod is taken to hold (berths.py).
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import IntegrityError, transaction

from clusters.models import Cluster
from clusters.port import PodPhase, PodReport
from controlplane.kernel import hints, statements
from scheduler.core.lifecycle import State
from scheduler.core.plan import Admit, Place
from scheduler.core.units import ClusterId, WorkloadId
from scheduler.loop import apply, observe
from scheduler.loop.berths import Misplaced, places
from scheduler.loop.unknown import ACTOR, LATER, Unknown
from scheduler.models import Attempt, SchedulerLease, Stray, Workload
from scheduler.selectors import asked
from scheduler.services.transition import Step, transition
from tenants.services import usage

AGAIN_S = 15.0
"""How soon what could not be adopted is tried again: a node may be known by then, or a quota be
raised."""


class Strays:
    """What one cluster's last list has of such pods. Times are those of a monotonic clock."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._found: dict[str, Unknown] = {}
        self._due: float | None = None

    def listed(self, found: Iterable[Unknown], *, at: datetime) -> None:
        """Adopt what can be, and store of the others what runs."""
        self._found = {each.report.uid: each for each in found}
        self._take_in(at=at)

    def note(self, report: PodReport, *, gone: bool) -> None:
        """What is new of a pod, if it is one of these."""
        known = self._found.get(report.uid)
        if known is None:
            return
        if gone:
            del self._found[report.uid]
        else:
            self._found[report.uid] = known._replace(report=report)
        if gone or report.phase.ended:
            Stray.objects.filter(cluster=self._cluster, uid=report.uid).delete()
            hints.send(hints.CYCLE)

    def running(self) -> list[PodReport]:
        return [each.report for each in self._found.values() if _runs(each.report)]

    def take_in_when_due(self, *, at: datetime) -> list[str]:
        """The uids of those that were adopted now."""
        if self._due is None or time.monotonic() < self._due:
            return []
        before = set(self._found)
        self._take_in(at=at)
        return sorted(before - set(self._found))

    def _take_in(self, *, at: datetime) -> None:
        why: dict[str, str] = {}
        for (workload, number), group in _attempts(self._found.values()).items():
            told = adopt(
                cluster=self._cluster, workload_id=workload, number=number, reports=group, at=at
            )
            for report in group:
                if told:
                    why[report.uid] = told
                else:
                    del self._found[report.uid]
        self._store(why, at)
        self._due = time.monotonic() + AGAIN_S if self._found else None

    def _store(self, why: Mapping[str, str], at: datetime) -> None:
        running = {uid: each for uid, each in self._found.items() if _runs(each.report)}
        rows = Stray.objects.filter(cluster=self._cluster)
        stored = {uid: tuple(rest) for uid, *rest in rows.values_list("uid", "why", "workload")}
        if gone := stored.keys() - running.keys():
            rows.filter(uid__in=gone).delete()
        come = []
        for uid, (report, workload, _, doubt) in running.items():
            told = why.get(uid, LATER if workload else doubt or "there is no such workload")[:200]
            if uid not in stored:
                come.append(_stray(self._cluster, report, workload, told, at))
            elif stored[uid] != (told, workload):
                rows.filter(uid=uid).update(why=told, workload=workload)
        Stray.objects.bulk_create(come)


def _stray(
    cluster: Cluster, report: PodReport, workload: UUID | None, why: str, at: datetime
) -> Stray:
    return Stray(
        cluster=cluster,
        uid=report.uid,
        namespace=report.namespace[:253],
        name=report.name[:253],
        node=report.node[:253],
        attempt=report.attempt,
        workload_id=workload,
        why=why,
        found_at=at,
    )


def _runs(report: PodReport) -> bool:
    """Or may: its gate is open, and it has not ended."""
    return not report.phase.ended and report.phase is not PodPhase.GATED


def _attempts(found: Iterable[Unknown]) -> dict[tuple[UUID, int], list[PodReport]]:
    """The last of each workload, where that is later than all known, with its pods."""
    groups: dict[tuple[UUID, int], list[PodReport]] = defaultdict(list)
    for report, workload, known, _ in found:
        if workload is not None and report.attempt > known:
            groups[workload, report.attempt].append(report)
    last: dict[UUID, int] = {}
    for workload, number in groups:
        last[workload] = max(number, last.get(workload, 0))
    return {key: group for key, group in groups.items() if last[key[0]] == key[1]}


def adopt(
    *,
    cluster: Cluster,
    workload_id: UUID,
    number: int,
    reports: Sequence[PodReport],
    at: datetime,
) -> str:
    """Give an attempt the rows that it lost, and take in what its pods have come to; "" when that
    was done, else why it can't be."""
    workload = Workload.objects.get(id=workload_id)
    if State(workload.state) is not State.PENDING:
        return f"its workload is {workload.state}"
    if workload.attempts.filter(number__gte=number).exists():
        return LATER  # it was tried again meanwhile
    accepted = set(workload.clusters.values_list("id", flat=True))
    if accepted and cluster.id not in accepted:
        return "its workload does not accept this cluster"
    if hasattr(workload, "origin"):
        return "others made its pods"
    views = asked.of({str(workload.id): workload.asks_version})[str(workload.id)].pod_sets
    try:
        held = places(cluster=cluster, pod_sets=views, reports=reports)
        _insert(cluster, workload, number, held, reports, at)
    except Misplaced as why:
        return str(why)
    except usage.MissingQuota:
        return "its project has no quota of its flavor"
    except IntegrityError as error:
        return f"its rows are refused: {str(error).splitlines()[0]}"
    observe.pods(cluster_id=cluster.id, reports=reports, gone=(), at=at)
    return ""


def _insert(
    cluster: Cluster,
    workload: Workload,
    number: int,
    held: tuple[Place, ...],
    reports: Sequence[PodReport],
    at: datetime,
) -> None:
    """Raises Misplaced where the workload has moved on meanwhile, and what `usage.add` raises."""
    made = Admit(WorkloadId(str(workload.id)), ClusterId(str(cluster.id)), held)
    amounts = apply.amounts([made], {made.workload: workload.project_id})
    move = partial(transition, actor=ACTOR, actor_name="observer", at=at)
    with transaction.atomic():
        usage.lock(amounts)
        step = Step(workload.id, workload.project_id, State.PENDING, State.ADMITTED, _told(number))
        if not move([step]):
            raise Misplaced("its workload does not wait any more")
        usage.add(amounts)
        lease = SchedulerLease.objects.order_by("-epoch").first()
        attempt = Attempt.objects.create(
            workload=workload,
            number=number,
            cluster=cluster,
            epoch=lease.epoch if lease else 0,
            created_at=at,
        )
        apply.insert_placements([made], [attempt.id], [number], at)
        with statements.cursor() as cursor:
            cursor.execute(
                "UPDATE scheduler_placement p SET pod_uid = u.uid, opened_at = %s"
                " FROM unnest(%s::text[], %s::int[]) AS u (uid, rank)"
                " WHERE p.attempt_id = %s AND p.rank = u.rank",
                [at, [r.uid for r in reports], [r.rank for r in reports], attempt.id],
            )
        step = Step(workload.id, workload.project_id, State.ADMITTED, State.BOUND)
        move([step])


def _told(number: int) -> str:
    return f"attempt {number} was found in its cluster and adopted: the database is older than it"
