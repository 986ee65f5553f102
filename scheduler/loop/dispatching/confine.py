"""Projects → clusters: each namespace is confined before the first pod in it, again soon after
what is wanted of it has changed, and looked at now and then, lest somebody changed it.

What is wanted follows from rows and settings. Which of it was applied last is stored, so that a
batch of starts asks the database and not the cluster. What differs in the cluster is told, and put
back where the cluster's `repair_drift` is on; with it off, only what is missing is made before a
pod. A change of what is wanted is applied all the same.
"""

import hashlib
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from uuid import UUID

import orjson
from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q

from clusters.confinement import CONFINEMENT, Drift, Repair
from clusters.confinement import Confinement as Wanted
from clusters.port import ClusterError, ClusterPort, Fault
from controlplane.audit import services as audit
from controlplane.kernel.bulk import array
from scheduler.core.snapshot import DeviceMode, FlavorKind
from scheduler.loop.dispatching.calls import Batch, Calls, threads
from scheduler.loop.dispatching.walls import Entitled, Hardware, limits
from scheduler.models import Confinement
from scheduler.selectors.fleet import rows

type Json = dict[str, str]

logger = logging.getLogger(__name__)

ACTOR = "system:dispatcher"
EVERY = timedelta(minutes=10)
"""How often each is looked at."""
AGAIN = tuple(timedelta(seconds=each) for each in (15, 15, 30, 60, 120, 240))
"""How soon, after so many failures in a row, what may be applied in part is tried again: a changed
quota is in force within a minute where a cluster answers, though it erred once or twice."""
MOST = 8
"""Of one cluster at once: a start waits for them."""
MOST_DRIFTS = 20
"""That are kept of one look."""


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be applied for a project, its digest, and the versions of the quotas it follows
    from, by flavor's id."""

    wanted: Wanted
    digest: str
    quotas: dict[str, int]


def due(*, cluster_id: UUID, projects: Mapping[UUID, str]) -> dict[UUID, Due]:
    """Of these projects, with their namespaces, those that are not confined as is wanted now, or
    of which something went wrong the last time."""
    known = Confinement.objects.filter(cluster_id=cluster_id, project_id__in=projects, error="")
    applied = dict(known.values_list("project_id", "digest"))
    return {
        project: each
        for project, each in _wanted(cluster_id, projects).items()
        if applied.get(project) != each.digest
    }


def apply(
    *, calls: Calls, cluster_id: UUID, due: Mapping[UUID, Due], at: Callable[[], datetime]
) -> dict[UUID, ClusterError]:
    """Before their next pods; why that failed, by project. It is tried again then."""
    Confinement.objects.bulk_create(
        [Confinement(cluster_id=cluster_id, project_id=project) for project in due],
        ignore_conflicts=True,
    )
    known = Confinement.objects.filter(cluster_id=cluster_id, project_id__in=due)
    return _carry_out(
        calls, known.select_related("cluster", "project"), due, at, least=Repair.MISSING
    )


def doubt(*, cluster_id: UUID, project_id: UUID, fault: Fault) -> None:
    """A pod was refused. Where something may be gone without which there is none, that is applied
    before the next; where its wall was reached, somebody may have lowered it: it is looked at
    soon."""
    known = Confinement.objects.filter(cluster_id=cluster_id, project_id=project_id)
    if fault in (Fault.NOT_FOUND, Fault.FORBIDDEN):
        known.update(error=f"a pod was refused there: {fault}")
    elif fault is Fault.QUOTA:
        known.update(checked_at=None)


def follow() -> int:
    """Have those looked at soon of which something else is wanted than was applied, as after a
    quota has changed; how many. Of the others note which quotas that was found with, where those
    are others than before. What may be applied in part is tried again anyhow."""
    known = Confinement.objects.filter(Q(error="") | ~Q(digest=""), checked_at__isnull=False)
    projects: dict[UUID, dict[UUID, str]] = defaultdict(dict)
    applied = {}
    for row in known.select_related("project"):
        projects[row.cluster_id][row.project_id] = row.project.namespace
        applied[row.cluster_id, row.project_id] = row
    stale, found = [], []
    for cluster, here in projects.items():
        for project, due in _wanted(cluster, here).items():
            row = applied[cluster, project]
            if row.digest != due.digest:
                stale.append(row.pk)
            elif row.quotas != due.quotas:
                found.append((row.pk, due.digest, orjson.dumps(due.quotas).decode()))
    if found:
        with connection.cursor() as cursor:
            cursor.execute(_FOUND, [array(column) for column in zip(*found, strict=True)])
    return Confinement.objects.filter(pk__in=stale).update(checked_at=None)


# Unless something else is being applied by now.
_FOUND = """
UPDATE scheduler_confinement c SET quotas = u.quotas::jsonb
FROM unnest(%s::uuid[], %s::text[], %s::text[]) AS u (id, digest, quotas)
WHERE c.id = u.id AND c.digest = u.digest AND c.error = ''
"""


def is_due(*, at: datetime, speed: float = 1.0) -> Q:
    """Of confinements: to be looked at. Clusters are asked as often in the real world, whatever
    the `speed` of the clock that `at` is read from."""
    due = Q(checked_at=None) | Q(checked_at__lt=at - EVERY * speed)
    for count, wait in enumerate(AGAIN, 1):
        due |= Q(failed_count=count, digest="", checked_at__lt=at - wait * speed)
    return due


def check(
    *, port: ClusterPort, cluster_id: UUID, at: Callable[[], datetime], speed: float = 1.0
) -> Batch:
    """Look at up to MOST of the cluster's, those first that nobody has looked at the longest.
    Taken are those of which it came to something. `speed` is as in `is_due`."""
    known = list(
        Confinement.objects.filter(is_due(at=at(), speed=speed), cluster_id=cluster_id)
        .select_related("cluster", "project")
        .order_by(F("checked_at").asc(nulls_first=True), "id")[:MOST]
    )
    if not known:
        return Batch(0, reached=True)
    wanted = _wanted(cluster_id, {row.project_id: row.project.namespace for row in known})
    with threads() as pool:
        calls = Calls(port, pool, alive=lambda: None)
        failed = _carry_out(calls, known, wanted, at, least=Repair.NOTHING)
    return Batch(len(known) - len(failed), calls.reached)


def _carry_out(
    calls: Calls,
    known: Iterable[Confinement],
    wanted: Mapping[UUID, Due],
    at: Callable[[], datetime],
    *,
    least: Repair,
) -> dict[UUID, ClusterError]:
    """Ask it of all of them at once, and store what it came to; what failed, by project."""
    asked = {}
    for row in known:
        due = wanted[row.project_id]
        all_of_it = row.cluster.repair_drift or row.digest != due.digest
        asked[row] = due.wanted, Repair.ALL if all_of_it else least
    # Before: whatever breaks this off, nobody knows of what may have been applied, and what is
    # slow waits for its next turn.
    ids = [row.pk for row in asked]
    anew = [row.pk for row in asked if row.digest != wanted[row.project_id].digest]
    Confinement.objects.filter(pk__in=ids).update(checked_at=at())
    Confinement.objects.filter(pk__in=anew).update(digest="")
    failed = {}
    for row, answer in calls.confine(asked).items():
        _store(row, wanted[row.project_id], asked[row][1], answer, at())
        if isinstance(answer, ClusterError):
            failed[row.project_id] = answer
    return failed


def _store(
    row: Confinement,
    due: Due,
    repair: Repair,
    answer: Sequence[Drift] | ClusterError,
    at: datetime,
) -> None:
    """What it came to, unless it was applied anew meanwhile."""
    digest = due.digest
    asked = row.digest if row.digest == digest else ""
    repaired: list[Json] = []
    row.checked_at, row.error = at, ""
    if isinstance(answer, ClusterError):
        logger.warning("the confinement %s: %s", row, answer)
        row.error = str(answer)[:500]
        row.digest = asked if repair is Repair.NOTHING else ""  # some may have been applied
    else:
        repaired = _note(row, digest, repair, answer, at)
        if repair is Repair.ALL:
            row.applied_at = at if answer or row.digest != digest else row.applied_at
            row.digest = digest
    with transaction.atomic():
        stored = Confinement.objects.filter(pk=row.pk, digest=asked).update(
            digest=row.digest,
            applied_at=row.applied_at,
            checked_at=row.checked_at,
            drift=row.drift,
            drifted_at=row.drifted_at,
            repaired_at=row.repaired_at,
            error=row.error,
            failed_count=F("failed_count") + 1 if row.error else 0,
            **({} if row.error else {"quotas": due.quotas}),
        )
        if stored and repaired:
            _record(row, repaired, at)


def _note(
    row: Confinement, digest: str, repair: Repair, answer: Sequence[Drift], at: datetime
) -> list[Json]:
    """On the row, what of it somebody changed; which of that was put right just now."""
    told = _by_others(row, digest, answer)[:MOST_DRIFTS]
    if not told:
        if row.is_drifted:
            row.repaired_at = at
        return []
    found = [_json(drift) for drift in told]
    if not (row.is_drifted and row.drift == found):
        row.drift, row.drifted_at = found, at
    repaired = [
        _json(drift)
        for drift in told
        if repair is Repair.ALL or (repair is Repair.MISSING and not drift.field)
    ]
    row.repaired_at = at if len(repaired) == len(told) else None
    return repaired


def _by_others(row: Confinement, digest: str, answer: Sequence[Drift]) -> list[Drift]:
    """What no change of what is wanted explains; where nobody knows what was applied last, all."""
    if row.applied_at is None:
        return []
    if row.digest in ("", digest):
        return list(answer)
    return [drift for drift in answer if not drift.follows]


def _json(drift: Drift) -> Json:
    return {
        "object": drift.object,
        "field": drift.field,
        "found": drift.found,
        "wanted": drift.wanted,
    }


def _record(row: Confinement, repaired: Sequence[Json], at: datetime) -> None:
    entry = audit.Entry(
        "confinement.repair",
        "confinement",
        row.id,
        tenant_id=row.project.tenant_id,
        project_id=row.project_id,
        after={"cluster": row.cluster.name, "drift": list(repaired)},
    )
    audit.record(actor=ACTOR, actor_name="dispatcher", entries=[entry], at=at)


def _wanted(cluster_id: UUID, projects: Mapping[UUID, str]) -> dict[UUID, Due]:
    """Of each project."""
    hardware = _hardware(cluster_id)
    entitled, quotas = _entitled(projects)
    egress = tuple(map(str, settings.BERTH_EGRESS_NETWORKS))
    found = {}
    for project, namespace in projects.items():
        wall = limits(hardware=hardware, entitled=entitled[project])
        wanted = Wanted(namespace, wall, egress)
        told = orjson.dumps([CONFINEMENT, asdict(wanted)])
        found[project] = Due(wanted, hashlib.sha256(told).hexdigest(), quotas[project])
    return found


# Used may be more than a quota that was lowered: what was rightly admitted still comes. CPU
# and model quotas are in no wall, but of theirs too it is told which versions were read.
_ENTITLED = """
SELECT p.id, f.id::text, q.version, f.kind, f.model, f.profile, f.isolation,
       CASE WHEN q.id IS NULL THEN 0 WHEN q.borrowing_limit_milli IS NOT NULL
            THEN greatest(q.nominal_milli + q.borrowing_limit_milli, q.used_milli) END
FROM unnest(%s::uuid[]) AS p (id) CROSS JOIN clusters_flavor f
LEFT JOIN tenants_quota q ON q.flavor_id = f.id AND q.project_id = p.id
"""


def _entitled(
    projects: Iterable[UUID],
) -> tuple[dict[UUID, list[Entitled]], dict[UUID, dict[str, int]]]:
    """By project, and the versions of the quotas that this was read from, by flavor's id."""
    found: dict[UUID, list[Entitled]] = {project: [] for project in projects}
    versions: dict[UUID, dict[str, int]] = {project: {} for project in found}
    for project, flavor, version, kind, *rest in rows(_ENTITLED, [list(found)]):
        found[project].append(Entitled(FlavorKind(kind), *rest))
        if version is not None:
            versions[project][flavor] = version
    return found, versions


# What went lately counts on: the cluster may count its pods a while longer. So it depends on the
# time too, and is asked anew each time.
_HARDWARE = """
WITH lately AS (SELECT statement_timestamp() - interval '1 hour' AS since),
devices AS (
    SELECT d.id, d.model, d.mode, d.gone_at, n.gpu_resource, n.share_resource, n.share_replicas,
           n.share_isolation, n.mig_single
    FROM clusters_device d JOIN clusters_node n ON n.id = d.node_id, lately
    WHERE n.cluster_id = %s AND (n.gone_at IS NULL OR n.gone_at > since)
      AND (d.gone_at IS NULL OR d.gone_at > since)),
found AS (
    SELECT d.*, '' AS profile FROM devices d WHERE d.mode <> 'mig-static'
    UNION ALL
    SELECT d.id, d.model, 'mig-static', d.gone_at, d.gpu_resource, d.share_resource,
           d.share_replicas, d.share_isolation, d.mig_single, s.profile
    FROM clusters_deviceslice s JOIN devices d ON d.id = s.device_id, lately
    -- It may be cut otherwise by now.
    WHERE s.gone_at > since OR (s.gone_at IS NULL AND d.mode = 'mig-static'))
SELECT model, mode, profile, count(*), gpu_resource, share_resource, share_replicas,
       share_isolation, mig_single
FROM found
GROUP BY model, mode, profile, gpu_resource, share_resource, share_replicas, share_isolation,
         mig_single
"""


def _hardware(cluster_id: UUID) -> tuple[Hardware, ...]:
    return tuple(
        Hardware(model, DeviceMode(mode), *rest)
        for model, mode, *rest in rows(_HARDWARE, [cluster_id])
    )
