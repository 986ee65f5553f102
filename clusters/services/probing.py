"""Carrying a probe out, where the private keys are: each step is stored as it comes."""

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet

from clusters import registry
from clusters.credential import BadCredential
from clusters.models import ClusterProbe, Stop
from clusters.port import ProbeStep, Verdict
from clusters.services import probes
from controlplane.kernel.crash import crash

_BY_WEIGHT = tuple(Verdict)


def carry_out(
    *, id: UUID, at: Callable[[], datetime], connect_timeout_s: float, read_timeout_s: float
) -> None:
    """From its beginning to its end, unless somebody else is at it, or takes it over meanwhile.

    Who dies here leaves it to another try (`probes.sweep`).
    """
    probe = _begin(id=id, at=at())
    if probe is None:
        return
    if probe.credential_version is None:
        _end(probe, at=at(), stopped=Stop.NO_CREDENTIAL, why="No credential is stored yet.")
        return
    try:
        port = registry.connect(
            probe.cluster.name, connect_timeout_s=connect_timeout_s, read_timeout_s=read_timeout_s
        )
    except BadCredential as error:
        _end(probe, at=at(), stopped=Stop.UNOPENED, why=str(error))
        return
    steps: list[ProbeStep] = []
    try:
        for step in port.probe():
            steps.append(step)
            if not _own(probe).update(steps=[asdict(each) for each in steps]):
                return
            crash("P1")
    finally:
        port.close()
    worst = max((step.verdict for step in steps), key=_BY_WEIGHT.index)
    _end(probe, at=at(), verdict=worst)


def _begin(*, id: UUID, at: datetime) -> ClusterProbe | None:
    """None where it has ended, is gone, or was begun by somebody who may still live."""
    probe = ClusterProbe.objects.select_related("cluster").filter(id=id).first()
    if probe is None:
        return None
    free = Q(began_at=None) | Q(began_at__lte=at - probes.LOST_AFTER)
    with transaction.atomic():
        version = probes.lock(cluster_id=probe.cluster_id)
        begun = ClusterProbe.objects.filter(
            free, id=id, ended_at=None, tries__lt=probes.MOST_TRIES
        ).update(tries=F("tries") + 1, began_at=at, credential_version=version, steps=[])
        if not begun:
            return None
        probe.refresh_from_db(fields=["tries", "credential_version"])
    return probe


def _own(probe: ClusterProbe) -> QuerySet[ClusterProbe]:
    """It, while it has not ended and nobody else has begun it anew."""
    return ClusterProbe.objects.filter(id=probe.id, tries=probe.tries, ended_at=None)


def _end(
    probe: ClusterProbe, *, at: datetime, verdict: str = "", stopped: str = "", why: str = ""
) -> None:
    _own(probe).update(ended_at=at, verdict=verdict, stopped=stopped, why=why[:500])
