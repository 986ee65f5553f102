"""Projects → clusters: each namespace is confined before the first pod in it, again when what is
wanted of it changes, and looked at now and then, lest somebody changed it.

What is wanted follows from rows and settings. Which of it was applied last is stored, so that a
batch of starts asks the database and not the cluster. What differs in the cluster is told, and put
back where the cluster's `repair_drift` is on; a change of what is wanted is applied all the same.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

import orjson
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from clusters.port import CONFINEMENT, ClusterError, ClusterPort, Drift, Fault
from clusters.port import Confinement as Wanted
from controlplane.audit import services as audit
from scheduler.core.snapshot import DeviceMode, FlavorKind
from scheduler.loop.calls import Batch, Calls, threads
from scheduler.loop.walls import Entitled, Hardware, limits
from scheduler.models import Confinement
from scheduler.selectors.fleet import rows

logger = logging.getLogger(__name__)

ACTOR = "system:dispatcher"
EVERY = timedelta(minutes=10)
"""How often each is looked at."""
MOST = 8
"""Of one cluster at once: a start waits for them."""
MOST_DRIFTS = 20
"""That are kept of one look."""


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be applied for a project, and its digest."""

    wanted: Wanted
    digest: str


def due(*, cluster_id: UUID, projects: Mapping[UUID, str]) -> dict[UUID, Due]:
    """Of these projects, with their namespaces, those that are not confined as is wanted now."""
    known = Confinement.objects.filter(cluster_id=cluster_id, project_id__in=projects)
    applied = dict(known.values_list("project_id", "digest"))
    return {
        project: each
        for project, each in _wanted(cluster_id, projects).items()
        if applied.get(project) != each.digest
    }


def applied(*, cluster_id: UUID, project_id: UUID, digest: str, at: datetime) -> None:
    """It is as wanted: whatever stood of a drift went with it."""
    row, _ = Confinement.objects.get_or_create(cluster_id=cluster_id, project_id=project_id)
    repaired_at = at if row.is_drifted else row.repaired_at
    Confinement.objects.filter(pk=row.pk).update(
        digest=digest, applied_at=at, checked_at=at, error="", repaired_at=repaired_at
    )


def failed(*, cluster_id: UUID, project_id: UUID, why: str) -> None:
    """It could not be applied, or nobody knows: it is tried before the project's next pod."""
    row, _ = Confinement.objects.get_or_create(cluster_id=cluster_id, project_id=project_id)
    Confinement.objects.filter(pk=row.pk).update(digest="", error=why[:500])


def doubt(*, cluster_id: UUID, project_id: UUID, fault: Fault) -> None:
    """A pod was refused. Where something may be gone without which there is none, all is applied
    before the next; where its wall was reached, somebody may have lowered it: it is looked at
    soon."""
    known = Confinement.objects.filter(cluster_id=cluster_id, project_id=project_id)
    if fault in (Fault.NOT_FOUND, Fault.FORBIDDEN):
        known.update(digest="")
    elif fault is Fault.QUOTA:
        known.update(checked_at=None)


def is_due(*, at: datetime) -> Q:
    """Of confinements: to be looked at."""
    return Q(checked_at=None) | Q(checked_at__lt=at - EVERY)


def check(*, port: ClusterPort, cluster_id: UUID, at: Callable[[], datetime]) -> Batch:
    """Look at up to MOST of the cluster's, those first that nobody has looked at the longest."""
    known = list(
        Confinement.objects.filter(is_due(at=at()), cluster_id=cluster_id)
        .select_related("cluster", "project")
        .order_by(F("checked_at").asc(nulls_first=True), "id")[:MOST]
    )
    if not known:
        return Batch(0, reached=True)
    wanted = _wanted(cluster_id, {row.project_id: row.project.namespace for row in known})
    asked = {
        row.id: partial(
            port.confine,
            wanted=wanted[row.project_id].wanted,
            repair=row.cluster.repair_drift or row.digest != wanted[row.project_id].digest,
        )
        for row in known
    }
    with threads() as pool:
        calls = Calls(port, pool, alive=lambda: None)
        answers = calls.each(asked)
    for row in known:
        answer = answers[row.id]
        _store(row, wanted[row.project_id].digest, answer, at())
    return Batch(len(known), calls.reached)


def _store(
    row: Confinement, digest: str, answer: Sequence[Drift] | ClusterError, at: datetime
) -> None:
    """What a look came to, unless it was applied anew meanwhile."""
    before, repaired = row.digest, False
    row.checked_at, row.error = at, ""
    if isinstance(answer, ClusterError):
        logger.warning("the confinement %s is not checked: %s", row, answer)
        row.error = str(answer)[:500]
        if row.cluster.repair_drift or before != digest:
            row.digest = ""  # some of it may have been applied
    elif answer and before == digest:
        repaired = row.cluster.repair_drift
        found = [asdict(drift) for drift in answer[:MOST_DRIFTS]]
        if not (row.is_drifted and row.drift == found):
            row.drift, row.drifted_at = found, at
        row.repaired_at = at if repaired else None
    elif row.is_drifted:
        row.repaired_at = at
    if repaired or (before != digest and not row.error):
        row.digest, row.applied_at = digest, at
    with transaction.atomic():
        stored = Confinement.objects.filter(pk=row.pk, digest=before).update(
            digest=row.digest,
            applied_at=row.applied_at,
            checked_at=row.checked_at,
            drift=row.drift,
            drifted_at=row.drifted_at,
            repaired_at=row.repaired_at,
            error=row.error,
        )
        if stored and repaired:
            _record(row, at)


def _record(row: Confinement, at: datetime) -> None:
    entry = audit.Entry(
        "confinement.repair",
        "confinement",
        row.id,
        tenant_id=row.project.tenant_id,
        project_id=row.project_id,
        after={"cluster": row.cluster.name, "drift": row.drift},
    )
    audit.record(actor=ACTOR, actor_name="dispatcher", entries=[entry], at=at)


def _wanted(cluster_id: UUID, projects: Mapping[UUID, str]) -> dict[UUID, Due]:
    """Of each project."""
    hardware = _hardware(cluster_id)
    entitled = _entitled(projects)
    egress = tuple(map(str, settings.BERTH_EGRESS_NETWORKS))
    found = {}
    for project, namespace in projects.items():
        wall = limits(hardware=hardware, entitled=entitled[project])
        wanted = Wanted(namespace, wall, egress)
        told = orjson.dumps([CONFINEMENT, asdict(wanted)])
        found[project] = Due(wanted, hashlib.sha256(told).hexdigest())
    return found


# Used may be more than a quota that was lowered: what was rightly admitted still comes.
_ENTITLED = """
SELECT p.id, f.kind, f.model, f.profile, f.isolation,
       CASE WHEN q.id IS NULL THEN 0 WHEN q.borrowing_limit_milli IS NOT NULL
            THEN greatest(q.nominal_milli + q.borrowing_limit_milli, q.used_milli) END
FROM unnest(%s::uuid[]) AS p (id) CROSS JOIN clusters_flavor f
LEFT JOIN tenants_quota q ON q.flavor_id = f.id AND q.project_id = p.id
WHERE f.kind IN ('whole', 'mig', 'share')
"""


def _entitled(projects: Iterable[UUID]) -> dict[UUID, list[Entitled]]:
    found: dict[UUID, list[Entitled]] = {project: [] for project in projects}
    for project, kind, *rest in rows(_ENTITLED, [list(found)]):
        found[project].append(Entitled(FlavorKind(kind), *rest))
    return found


# What went lately counts on: the cluster may count its pods a while longer. So it depends on the
# time too, and is asked anew each time.
_HARDWARE = """
WITH lately AS (SELECT statement_timestamp() - interval '1 hour' AS since),
there AS (
    SELECT n.* FROM clusters_node n, lately WHERE n.cluster_id = %(cluster)s
       AND (n.gone_at IS NULL OR n.gone_at > since)),
devices AS (
    SELECT d.* FROM clusters_device d JOIN there n ON n.id = d.node_id, lately
    WHERE d.gone_at IS NULL OR d.gone_at > since),
found AS (
    SELECT d.model, d.mode, '' AS profile, d.node_id FROM devices d WHERE d.mode <> 'mig-static'
    UNION ALL
    SELECT d.model, 'mig-static', s.profile, d.node_id  -- it may be cut otherwise by now
    FROM clusters_deviceslice s JOIN devices d ON d.id = s.device_id, lately
    WHERE s.gone_at > since OR (s.gone_at IS NULL AND d.mode = 'mig-static'))
SELECT f.model, f.mode, f.profile, count(*), n.gpu_resource, n.share_resource, n.share_replicas,
       n.share_isolation, n.mig_single
FROM there n JOIN found f ON f.node_id = n.id
GROUP BY f.model, f.mode, f.profile, n.gpu_resource, n.share_resource, n.share_replicas,
         n.share_isolation, n.mig_single
"""


def _hardware(cluster_id: UUID) -> tuple[Hardware, ...]:
    return tuple(
        Hardware(model, DeviceMode(mode), *rest)
        for model, mode, *rest in rows(_HARDWARE, {"cluster": cluster_id})
    )
