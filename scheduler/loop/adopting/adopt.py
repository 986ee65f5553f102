"""Pods of ours that the database does not know → attempts of their workloads, or strays.

There are such pods when the database was put back from a backup: what was started since then runs
on. A whole attempt later than all that are known is adopted: it gets the rows that it had, of new
ids, and is shown, charged from now on and judged as any. What can't be adopted is stored as a
stray with the reason; while one runs its workload is not started (`core.admitting.blocked`), and
what it holds counts as foreign (`watching/watch`). Nothing is ever deleted here (P8).

What must not live here: which devices an adopted pod is taken to hold (berths.py).
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Max

from clusters.models import Cluster
from clusters.port import PodPhase, PodReport
from controlplane.kernel import hints
from scheduler.core.lifecycle import State
from scheduler.core.plan import Admit, Place
from scheduler.core.units import ClusterId, WorkloadId
from scheduler.loop.adopting.berths import Berths, Misplaced
from scheduler.loop.adopting.unknown import ACTOR, LATER, Unknown
from scheduler.loop.applying import apply
from scheduler.loop.observing import observe
from scheduler.models import Attempt, SchedulerLease, Stray, Workload
from scheduler.selectors import asked
from scheduler.selectors.fleet import rows
from scheduler.services.transition import Step, transition
from tenants.services import usage

AGAIN_S, MOST_AGAIN_S = 15.0, 240.0
"""How soon what could not be adopted is tried again: a node may be known by then, or a quota be
raised. Twice as late each time, for most of it is so until its pods are gone."""


class Strays:
    """What one cluster's last list has of such pods. Times are those of a monotonic clock."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._found: dict[str, Unknown] = {}
        self._due: float | None = None
        self._again_s = AGAIN_S

    def listed(self, found: Iterable[Unknown], *, at: datetime) -> None:
        """Adopt what can be, and store of the others what runs, or has succeeded: that is not to
        be run again."""
        self._found = {each.report.uid: each for each in found}
        self._again_s = AGAIN_S
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
        if gone or (report.phase.ended and known.workload is None):
            Stray.objects.filter(cluster=self._cluster, uid=report.uid).delete()
            hints.send(hints.CYCLE)
        elif report.phase.ended:
            self._due = time.monotonic()  # its work waits until it is known how it ended

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
        groups = _attempts(self._found.values())
        for (workload, number), told in adopt(cluster=self._cluster, groups=groups, at=at).items():
            for report in groups[workload, number]:
                if told:
                    why[report.uid] = told
                else:
                    del self._found[report.uid]
        self._store(why, at)
        self._due = time.monotonic() + self._again_s if why else None
        self._again_s = min(2 * self._again_s, MOST_AGAIN_S)

    def _store(self, why: Mapping[str, str], at: datetime) -> None:
        kept = {
            uid: each
            for uid, each in self._found.items()
            if _runs(each.report) or (uid in why and each.report.phase is PodPhase.SUCCEEDED)
        }
        known = Stray.objects.filter(cluster=self._cluster)
        stored = {uid: tuple(rest) for uid, *rest in known.values_list("uid", "why", "workload")}
        if gone := stored.keys() - kept.keys():
            known.filter(uid__in=gone).delete()
            hints.send(hints.CYCLE)
        come = []
        for uid, (report, workload, _, doubt) in kept.items():
            told = why.get(uid, LATER if workload else doubt or "there is no such workload")[:200]
            if uid not in stored:
                come.append(_stray(self._cluster, report, workload, told, at))
            elif stored[uid] != (told, workload):
                known.filter(uid=uid).update(why=told, workload=workload)
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


type Groups = Mapping[tuple[UUID, int], Sequence[PodReport]]
"""By workload and number of the attempt."""


def _attempts(found: Iterable[Unknown]) -> Groups:
    """The last of each workload, where that is later than all known, with its pods."""
    groups: dict[tuple[UUID, int], list[PodReport]] = defaultdict(list)
    for report, workload, known, _ in found:
        if workload is not None and report.attempt > known:
            groups[workload, report.attempt].append(report)
    last: dict[UUID, int] = {}
    for workload, number in groups:
        last[workload] = max(number, last.get(workload, 0))
    return {key: group for key, group in groups.items() if last[key[0]] == key[1]}


@dataclass(frozen=True, slots=True)
class _Lost:
    """An attempt that the database lacks, with its pods."""

    workload: Workload
    number: int
    asks: asked.Asked
    reports: Sequence[PodReport]

    @property
    def ended(self) -> bool:
        """All of it: then it holds nothing, no room, no device and no quota."""
        return all(report.phase.ended for report in self.reports)


def adopt(*, cluster: Cluster, groups: Groups, at: datetime) -> dict[tuple[UUID, int], str]:
    """Give attempts the rows that they lost, and take in what their pods have come to; "" of those
    of which that was done, else why it can't be."""
    if not groups:
        return {}
    ids = {workload for workload, _ in groups}
    works = Workload.objects.select_related("origin").in_bulk(ids)
    tried = dict(
        Attempt.objects.filter(workload__in=ids)
        .values("workload")
        .annotate(last=Max("number"))
        .values_list("workload", "last")
    )
    asks = asked.of({str(work.id): work.asks_version for work in works.values()})
    berths = Berths(cluster=cluster, reports=chain.from_iterable(groups.values()))
    told = {}
    for (id, number), reports in groups.items():
        lost = _Lost(works[id], number, asks[str(id)], reports)
        # Where it was tried again meanwhile, that is the later one.
        why = LATER if tried.get(id, 0) >= number else _refused(lost, cluster)
        told[id, number] = why or _adopt(lost, cluster, berths, at)
    adopted = [report for key, why in told.items() if not why for report in groups[key]]
    observe.pods(cluster_id=cluster.id, reports=adopted, gone=(), at=at)
    return told


def _refused(lost: _Lost, cluster: Cluster) -> str:
    """Why it can't be adopted there, "" where it may be."""
    if State(lost.workload.state) is not State.PENDING:
        return f"its workload is {lost.workload.state}"
    if lost.asks.clusters and str(cluster.id) not in lost.asks.clusters:
        return "its workload does not accept this cluster"
    return "others made its pods" if hasattr(lost.workload, "origin") else ""


def _adopt(lost: _Lost, cluster: Cluster, berths: Berths, at: datetime) -> str:
    choose = berths.left if lost.ended else berths.places
    try:
        places = choose(pod_sets=lost.asks.pod_sets, reports=lost.reports)
        with transaction.atomic():
            _insert(lost, cluster, places, at)
    except Misplaced as why:
        return str(why)
    except usage.MissingQuota:
        return "its project has no quota of its flavor"
    except IntegrityError as error:
        return f"its rows are refused: {str(error).splitlines()[0]}"
    if not lost.ended:
        berths.take(places)
    return ""


def _insert(lost: _Lost, cluster: Cluster, places: tuple[Place, ...], at: datetime) -> None:
    """In the caller's transaction. Raises Misplaced where the workload has moved on meanwhile, and
    what `usage.add` raises."""
    work = lost.workload
    made = Admit(WorkloadId(str(work.id)), ClusterId(str(cluster.id)), places)
    amounts = {} if lost.ended else apply.amounts([made], {made.workload: work.project_id})
    move = partial(transition, actor=ACTOR, actor_name="observer", at=at)
    usage.lock(amounts)
    told = _told(lost.number)
    if not move([Step(work.id, work.project_id, State.PENDING, State.ADMITTED, told)]):
        raise Misplaced("its workload does not wait any more")
    usage.add(amounts)
    lease = SchedulerLease.objects.order_by("-epoch").first()
    attempt = Attempt.objects.create(
        workload=work,
        number=lost.number,
        cluster=cluster,
        epoch=lease.epoch if lease else 0,
        created_at=at,
    )
    apply.insert_placements([made], [attempt.id], [lost.number], at)
    ranks = _known(attempt, lost.reports, at)
    move([Step(work.id, work.project_id, State.ADMITTED, State.BOUND)])
    if lost.ended:
        of = {report.rank: report for report in lost.reports}
        placements = {id: of[rank] for id, rank in ranks}
        observe.ended_before(attempt_id=attempt.id, placements=placements, at=at)


_KNOWN = """
UPDATE scheduler_placement p SET pod_uid = u.uid, opened_at = %s
FROM unnest(%s::text[], %s::int[]) AS u (uid, rank)
WHERE p.attempt_id = %s AND p.rank = u.rank RETURNING p.id, p.rank
"""


def _known(attempt: Attempt, reports: Sequence[PodReport], at: datetime) -> list[tuple[UUID, int]]:
    """Store which pods are whose; the placements with their ranks."""
    asked = [at, [r.uid for r in reports], [r.rank for r in reports], attempt.id]
    return [(id, rank) for id, rank in rows(_KNOWN, asked)]


def _told(number: int) -> str:
    return f"attempt {number} was found in its cluster and adopted: the database is older than it"
