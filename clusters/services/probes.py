"""Probes of clusters, as rows: asked for, made up for where a message or a worker got lost.

What must not live here: carrying one out (probing.py).
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Max, Q, QuerySet
from django.db.models.functions import Now

from clusters.models import Cluster, ClusterCredential, ClusterProbe, ProbeStop
from clusters.services import exposures
from controlplane.kernel import hints

KEPT = 20
"""Of a cluster, the newest."""
MOST_TRIES = 2
LOST_AFTER = timedelta(seconds=45)
"""When whoever began one is dead: a task lives for 30 s at most. This and the next are real
time."""
TAKEN_UP_WITHIN = timedelta(minutes=5)
PROBED_EVERY = timedelta(days=1)
DAILY = "Berth"
"""Who asks then."""
_NOT_TAKEN_UP = "No worker took it up: look whether one runs for the queue dispatch."
_DIED = "The workers that carried it out died in the middle: their logs say why."


def ask(*, cluster: Cluster, actor_name: str, at: datetime) -> ClusterProbe:
    """A probe of it, to be carried out soon. The answer is one that is under way already, unless
    it was begun with a credential that has been replaced: that one is broken off. Where there is
    a credential, the cluster's exposure is probed too."""
    with transaction.atomic():
        version = lock(cluster_id=cluster.id)
        under_way = ClusterProbe.objects.filter(cluster=cluster, ended_at=None)
        probe = under_way.first()
        if probe is not None and probe.tries and probe.credential_version != version:
            break_off(probe, why="The credential was replaced meanwhile.", at=at)
            probe = None
        if probe is None:
            probe = ClusterProbe.objects.create(cluster=cluster, asked_at=at, asked_by=actor_name)
            newest = ClusterProbe.objects.filter(cluster=cluster).order_by("-id")
            ClusterProbe.objects.filter(id__in=newest.values("id")[KEPT:]).delete()
        hints.hint(hints.PROBE_CLUSTER, probe_id=str(probe.id))
        if version is not None:
            exposures.ask(cluster=cluster, version=version, actor_name=actor_name, at=at)
    return probe


def lock(*, cluster_id: UUID) -> int | None:
    """Hold the cluster's credential as it is until the transaction ends; its version, None where
    there is none."""
    Cluster.objects.select_for_update(no_key=True).get(id=cluster_id)
    rows = ClusterCredential.objects.filter(cluster_id=cluster_id)
    return rows.values_list("version", flat=True).first()


def of_this_try(probe: ClusterProbe) -> QuerySet[ClusterProbe]:
    """It, while it has not ended and nobody has begun it, or begun it anew, since it was read."""
    return ClusterProbe.objects.filter(id=probe.id, tries=probe.tries, ended_at=None)


def break_off(probe: ClusterProbe, *, why: str, at: datetime) -> None:
    """Its steps so far stay. One that has ended, or is another's by now, is left as it is."""
    of_this_try(probe).update(ended_at=at, stopped=ProbeStop.BROKEN_OFF, why=why)


def lost() -> Q:
    """Those of which whoever began it is dead."""
    return Q(began_at__isnull=False, timed_from__lte=Now() - LOST_AFTER)


def sweep(*, at: datetime, speed: float = 1.0) -> None:
    """Ask again for what nobody took up and for what a dead worker began, once, and then break it
    off; ask for a probe of a cluster that had none for a day and has a credential. Of the real
    world, whatever the `speed` of the clock that `at` is read from."""
    under_way = ClusterProbe.objects.filter(ended_at=None).order_by("id")
    waits = Q(began_at=None)
    never = waits & Q(timed_from__lte=Now() - TAKEN_UP_WITHIN)
    for probe in under_way.filter(never):
        break_off(probe, why=_NOT_TAKEN_UP, at=at)
    for probe in under_way.filter(lost(), tries__gte=MOST_TRIES):
        break_off(probe, why=_DIED, at=at)
    for probe in under_way.filter(waits | lost()):
        hints.send(hints.PROBE_CLUSTER, probe_id=str(probe.id))
    if not under_way.exists():
        _ask_daily(at=at, speed=speed)


def _ask_daily(*, at: datetime, speed: float) -> None:
    """For one at a time, the longest unprobed first: slow clusters would otherwise hold all of the
    processes that dispatch."""
    last = Cluster.objects.exclude(credential=None).annotate(last=Max("probes__asked_at"))
    due = last.filter(Q(last=None) | Q(last__lte=at - PROBED_EVERY * speed))
    if (cluster := due.order_by(F("last").asc(nulls_first=True), "id").first()) is not None:
        ask(cluster=cluster, actor_name=DAILY, at=at)
