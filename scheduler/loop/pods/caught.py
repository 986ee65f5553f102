"""Pods that others made, as rows: seen gated, and gone. And which of them are free to be started.

What must not live here: what becomes of them (`catching/catch`), and how they are
started (`dispatching/dispatch`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from clusters.caught import CaughtPod, OwnerRef
from clusters.claiming import ClaimRequest
from clusters.port import PodPhase, PodReport
from clusters.published import Selected
from controlplane.kernel import bulk, statements
from controlplane.kernel.ids import uuid7s
from scheduler.models import CaughtPod as Row
from scheduler.selectors.caught import FREE
from scheduler.selectors.fleet import rows


def note(
    *, cluster_id: UUID, reports: Sequence[PodReport], gone: Iterable[str], at: datetime
) -> bool:
    """Take in pods as reported, and the uids of pods seen gone; whether something is new of who
    waits."""
    away = set(gone)
    ours = [report for report in reports if report.caught is not None]
    over = [r.uid for r in ours if r.uid in away or r.deleting or r.phase.ended]
    there = [r for r in ours if r.phase is PodPhase.GATED and not r.deleting and r.uid not in away]
    noted = _take_note(cluster_id, there, at) if there else 0
    ended = 0
    if over:
        ended = _gone(Row.objects.filter(cluster_id=cluster_id, uid__in=over), at)
    return bool(noted or ended)


def listed(*, cluster_id: UUID, reports: Sequence[PodReport], at: datetime) -> bool:
    """Take in a complete list: of what was known before, what is not in it is gone."""
    present = [report.uid for report in reports]
    lost = _gone(Row.objects.filter(cluster_id=cluster_id).exclude(uid__in=present), at)
    return bool(note(cluster_id=cluster_id, reports=reports, gone=(), at=at) or lost)


def _gone(those: QuerySet[Row], at: datetime) -> int:
    """How many that waited are over; of what was no workload's nothing is kept."""
    there = those.filter(gone_at__isnull=True)
    forgotten, _ = there.filter(pod_set__isnull=True).delete()
    return forgotten + there.update(gone_at=at)


# In namespaces that are no project's nothing is anybody's to start.
_KNOWN = """
SELECT p.namespace, p.id FROM tenants_project p WHERE p.namespace = ANY(%s)
"""
_SEEN = """
SELECT uid, coalesce(said ->> 'behind', '') FROM scheduler_caughtpod
WHERE cluster_id = %s AND uid = ANY(%s)
"""


def _take_note(cluster_id: UUID, reports: Sequence[PodReport], at: datetime) -> int:
    """How many are new, or stand at other gates of others than before."""
    seen: dict[str, str] = dict(rows(_SEEN, [cluster_id, [report.uid for report in reports]]))
    moved = 0
    for report in reports:
        says = report.caught
        if says is not None and seen.get(report.uid, says.behind) != says.behind:
            before = Row.objects.filter(cluster_id=cluster_id, uid=report.uid)
            moved += before.update(said=_said(report, says), asked_at=None)  # to be asked at once
    return moved + _insert(cluster_id, [each for each in reports if each.uid not in seen], at)


def _insert(cluster_id: UUID, new: Sequence[PodReport], at: datetime) -> int:
    spaces = list({report.namespace for report in new})
    projects: dict[str, UUID] = dict(rows(_KNOWN, [spaces])) if new else {}
    new = [report for report in new if report.namespace in projects]
    bulk.insert(
        Row,
        id=uuid7s(len(new)),
        cluster_id=cluster_id,
        uid=[report.uid for report in new],
        project_id=[projects[report.namespace] for report in new],
        name=[report.name for report in new],
        said=[_said(report, report.caught) for report in new if report.caught is not None],
        refusal="",
        seen_at=at,
    )
    return len(new)


def _said(report: PodReport, caught: CaughtPod) -> dict[str, Any]:  # Any: JSON
    """What of a report is needed later."""
    return asdict(caught) | {
        "cpu_milli": report.cpu_milli,
        "memory_mib": report.memory_mib,
        "resources": dict(report.resources),
    }


def heard(said: dict[str, Any]) -> CaughtPod:  # Any: JSON
    """What a pod said, from its row; not what it requests."""
    # What an earlier version stored may lack a field.
    kept = {key: said[key] for key in CaughtPod.__dataclass_fields__ if key in said}
    owner = kept.pop("owner")
    kept |= {key: tuple(kept.get(key, ())) for key in ("flavors", "images")}
    kept |= {key: tuple(map(tuple, kept.get(key, ()))) for key in ("claims", "labels")}
    return CaughtPod(owner=OwnerRef(**owner) if owner else None, **kept)


def requests_heard(stored: Iterable[dict[str, Any]]) -> tuple[ClaimRequest, ...]:  # Any: JSON
    """What a pod claims, as it was when it was taken in: its row's "requests"."""
    return tuple(
        ClaimRequest(
            **each
            | {"selectors": tuple(each["selectors"]), "selected": Selected(**each["selected"])}
        )
        for each in stored
    )


_ASSIGN = f"""
WITH wanted AS (
    SELECT q.id, q.pod_set_id,
           row_number() OVER (PARTITION BY q.pod_set_id ORDER BY q.rank) AS nth
    FROM scheduler_placement q JOIN scheduler_origin o ON o.workload_id = q.workload_id
    WHERE q.attempt_id = ANY(%s) AND q.released_at IS NULL AND q.pod_uid = ''
      AND NOT EXISTS (SELECT 1 FROM scheduler_caughtpod has
                      WHERE has.placement_id = q.id AND has.gone_at IS NULL)),
free AS (
    SELECT c.id, c.pod_set_id,
           row_number() OVER (PARTITION BY c.pod_set_id ORDER BY c.name, c.id) AS nth
    FROM scheduler_caughtpod c
    WHERE c.pod_set_id IN (SELECT pod_set_id FROM wanted) AND {FREE})
UPDATE scheduler_caughtpod c SET placement_id = wanted.id
FROM free JOIN wanted USING (pod_set_id, nth) WHERE c.id = free.id
"""  # noqa: S608  # a constant


def assign(*, attempts: Sequence[UUID]) -> None:
    """Give each placement of these attempts that is to have one a free pod of its pod set, by rank
    and name. The caller has claimed the attempts, so that nobody else does. Where there are too
    few some stay without."""
    with statements.cursor() as cursor:
        cursor.execute(_ASSIGN, [list(attempts)])
