"""Carrying a probe out, where the private keys are: each step is stored as it comes."""

import logging
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from uuid import UUID

from celery.exceptions import SoftTimeLimitExceeded
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from clusters import registry
from clusters.credential import BadCredential
from clusters.models import ClusterProbe, ProbeStop
from clusters.port import ProbeStep, Verdict
from clusters.services import probes
from controlplane.kernel.crash import crash

logger = logging.getLogger(__name__)

_BY_WEIGHT = tuple(Verdict)
_TOO_LONG = "It took too long: the cluster answers, and each answer takes its time."


def carry_out(
    *, id: UUID, at: Callable[[], datetime], connect_timeout_s: float, read_timeout_s: float
) -> None:
    """From its beginning to its end, unless somebody else is at it, or takes it over meanwhile.

    Who dies here leaves it to another try (`probes.sweep`).
    """
    probe = _begin(id=id, at=at())
    if probe is None:
        return
    try:
        _try(probe, at=at, connect_timeout_s=connect_timeout_s, read_timeout_s=read_timeout_s)
    except SoftTimeLimitExceeded:
        logger.warning("probe %s of %s takes too long", id, probe.cluster.name)
        probes.break_off(probe, why=_TOO_LONG, at=at())
    except Exception:  # of Berth's own: another try would end so too, and nobody would know
        logger.exception("probe %s of %s failed", id, probe.cluster.name)
        probes.break_off(probe, why="Berth failed: its log says why.", at=at())


def _try(
    probe: ClusterProbe,
    *,
    at: Callable[[], datetime],
    connect_timeout_s: float,
    read_timeout_s: float,
) -> None:
    if probe.credential_version is None:
        _end(probe, at=at(), stopped=ProbeStop.NO_CREDENTIAL, why="No credential is stored yet.")
        return
    try:
        port = registry.connect(
            probe.cluster.name, connect_timeout_s=connect_timeout_s, read_timeout_s=read_timeout_s
        )
    except BadCredential as error:
        _end(probe, at=at(), stopped=ProbeStop.UNOPENED, why=str(error))
        return
    steps: list[ProbeStep] = []
    try:
        for step in port.probe():
            steps.append(step)
            if not probes.of_this_try(probe).update(steps=[asdict(each) for each in steps]):
                return
            crash("W1")
    finally:
        port.close()
    worst = max((step.verdict for step in steps), key=_BY_WEIGHT.index)
    _end(probe, at=at(), verdict=worst)


def _begin(*, id: UUID, at: datetime) -> ClusterProbe | None:
    """None where it has ended, is gone, or was begun by somebody who may still live."""
    probe = ClusterProbe.objects.select_related("cluster").filter(id=id).first()
    if probe is None:
        return None
    free = Q(began_at=None) | probes.lost()
    with transaction.atomic():
        version = probes.lock(cluster_id=probe.cluster_id)
        begun = ClusterProbe.objects.filter(
            free, id=id, ended_at=None, tries__lt=probes.MOST_TRIES
        ).update(
            tries=F("tries") + 1,
            began_at=at,
            timed_from=Now(),
            credential_version=version,
            steps=[],
        )
        if not begun:
            return None
        probe.refresh_from_db(fields=["tries", "credential_version"])
    return probe


def _end(
    probe: ClusterProbe, *, at: datetime, verdict: str = "", stopped: str = "", why: str = ""
) -> None:
    probes.of_this_try(probe).update(ended_at=at, verdict=verdict, stopped=stopped, why=why[:500])
