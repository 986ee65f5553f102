"""Probes of clusters, as rows: asked for, made up for where a message or a worker got lost.

What must not live here: carrying one out (probing.py).
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from clusters.models import Cluster, ClusterCredential, ClusterProbe, Stop
from controlplane.kernel import hints

KEPT = 20
"""Of a cluster, the newest."""
MOST_TRIES = 2
LOST_AFTER = timedelta(seconds=45)
"""When whoever began one is dead: a task lives for 30 s at most."""
TAKEN_UP_WITHIN = timedelta(minutes=5)
PROBED_EVERY = timedelta(days=1)
DAILY = "Berth"
"""Who asks then."""


def ask(*, cluster: Cluster, actor_name: str, at: datetime) -> ClusterProbe:
    """A probe of it, to be carried out soon. The answer is one that is under way already, unless
    it was begun with a credential that has been replaced: that one is broken off."""
    with transaction.atomic():
        version = lock(cluster_id=cluster.id)
        under_way = ClusterProbe.objects.filter(cluster=cluster, ended_at=None)
        probe = under_way.first()
        if probe is not None and probe.tries and probe.credential_version != version:
            break_off(id=probe.id, why="The credential was replaced meanwhile.", at=at)
            probe = None
        if probe is None:
            probe = ClusterProbe.objects.create(cluster=cluster, asked_at=at, asked_by=actor_name)
            newest = ClusterProbe.objects.filter(cluster=cluster).order_by("-id")
            ClusterProbe.objects.filter(id__in=newest.values("id")[KEPT:]).delete()
        hints.hint(hints.PROBE_CLUSTER, probe_id=str(probe.id))
    return probe


def lock(*, cluster_id: UUID) -> int | None:
    """Hold the cluster's credential as it is until the transaction ends; its version, None where
    there is none."""
    Cluster.objects.select_for_update(no_key=True).get(id=cluster_id)
    rows = ClusterCredential.objects.filter(cluster_id=cluster_id)
    return rows.values_list("version", flat=True).first()


def break_off(*, id: UUID, why: str, at: datetime) -> None:
    """Its steps so far stay. One that has ended is left as it is."""
    ClusterProbe.objects.filter(id=id, ended_at=None).update(
        ended_at=at, stopped=Stop.BROKEN_OFF, why=why
    )


def sweep(*, at: datetime) -> None:
    """Ask again for what nobody took up and for what a dead worker began, once, and then break it
    off; ask for a probe of each cluster that had none for a day and has a credential."""
    for probe in ClusterProbe.objects.filter(ended_at=None).order_by("id"):
        if why := _given_up(probe, at=at):
            break_off(id=probe.id, why=why, at=at)
        elif probe.began_at is None or is_lost(probe, at=at):
            hints.send(hints.PROBE_CLUSTER, probe_id=str(probe.id))
    lately = ClusterProbe.objects.filter(asked_at__gt=at - PROBED_EVERY).values("cluster")
    for cluster in Cluster.objects.exclude(credential=None).exclude(id__in=lately).order_by("id"):
        ask(cluster=cluster, actor_name=DAILY, at=at)


def is_lost(probe: ClusterProbe, *, at: datetime) -> bool:
    """Whether whoever began it is dead."""
    return probe.began_at is not None and probe.began_at <= at - LOST_AFTER


def _given_up(probe: ClusterProbe, *, at: datetime) -> str:
    """Why it is broken off; "" while it may still be carried out."""
    if probe.began_at is None and probe.asked_at <= at - TAKEN_UP_WITHIN:
        return "No worker took it up: look whether one runs for the queue dispatch."
    if probe.tries >= MOST_TRIES and is_lost(probe, at=at):
        return "The workers that carried it out died in the middle: their logs say why."
    return ""
