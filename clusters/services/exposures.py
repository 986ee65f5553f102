"""Probes of exposure, as rows: asked for, made up for where nobody carried one on.

What must not live here: carrying one out (exposing.py).
"""

from datetime import datetime, timedelta

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from clusters.models import Cluster, Exposure, ExposureVerdict
from clusters.models.exposure import SAFE_FOR
from controlplane.kernel import hints

WITHIN = timedelta(minutes=10)
"""How long one node's pod may take to be placed, to get its image and to look: real time."""
GIVEN_UP_AFTER = WITHIN + timedelta(minutes=5)
"""When nobody carries one on, not even to its end."""


def ask(*, cluster: Cluster, version: int, actor_name: str, at: datetime) -> None:
    """Have it probed soon, by the credential of that version, in the caller's transaction, which
    holds the cluster's row. One that is under way with it goes on; with another it begins anew,
    and what was safe by that one is not known to be."""
    row, _ = Exposure.objects.get_or_create(cluster=cluster)
    if row.credential_version != version:
        believed = Exposure.objects.filter(id=row.id, verdict=ExposureVerdict.SAFE)
        believed.update(verdict=ExposureVerdict.UNKNOWN)
        row.answers = {name: answer for name, answer in row.answers.items() if answer["saw"]}
    if row.asked_at is None or row.credential_version != version:
        Exposure.objects.filter(id=row.id).update(
            asked_at=at,
            asked_by=actor_name,
            timed_from=Now(),
            credential_version=version,
            answers=row.answers,
            tried_node="",
            pod_uid="",
            why="",
        )
    hints.hint(hints.PROBE_EXPOSURE, cluster_id=str(cluster.id))


def under_way() -> QuerySet[Exposure]:
    return Exposure.objects.filter(asked_at__isnull=False)


def left_behind() -> QuerySet[Exposure]:
    """Those whose probe is over, and whose pod may still be there."""
    return Exposure.objects.filter(asked_at=None).exclude(pod_uid="")


def of_this_try(row: Exposure) -> QuerySet[Exposure]:
    """It, while the probe is the one that was read."""
    return Exposure.objects.filter(
        id=row.id, asked_at=row.asked_at, credential_version=row.credential_version
    )


def overdue(limit: timedelta = WITHIN) -> Q:
    return Q(timed_from__lte=Now() - limit)


def sweep(*, at: datetime) -> None:
    """Have each that is under way carried on, give up what nobody did, and believe no old answer
    that all was well."""
    for row in under_way().filter(overdue(GIVEN_UP_AFTER)):
        why = "No worker carried it out: look whether one runs for the queue dispatch."
        without_answer(row, why=why, at=at)
    old = Exposure.objects.filter(verdict=ExposureVerdict.SAFE, seen_at__lte=at - SAFE_FOR)
    old.update(verdict=ExposureVerdict.UNKNOWN)
    there = under_way() | left_behind()
    for id in there.order_by("id").values_list("cluster_id", flat=True):
        hints.send(hints.PROBE_EXPOSURE, cluster_id=str(id))


def without_answer(row: Exposure, *, why: str, at: datetime) -> None:
    """The probe is over before its end: what was safe is not known any more, what was unsafe
    stays so. A pod of it that could not be taken away is left to `left_behind`."""
    unsafe = row.is_unsafe
    of_this_try(row).update(
        verdict=ExposureVerdict.UNSAFE if unsafe else ExposureVerdict.UNKNOWN,
        why=why[:500],
        ended_at=at,
        asked_at=None,
    )
