"""Pods whose programs have just failed on devices: what they tell is held back for a while.

A program dies of a sick device at once. That the device is sick is told later: by a kubelet within
ten seconds, as how many are left. Taken in before that it would have failed of its own doing.
"""

import time
from collections.abc import Sequence, Set

from django.db.models import Exists, OuterRef

from clusters.models import Cluster
from clusters.port import PodPhase, PodReport
from scheduler.core.failures import FailureClass, classify
from scheduler.models import Placement, PlacementSpan

DOUBT_S = 15.0
MOST = 1000
"""Pods that are held back at once; of others it is taken in what they tell."""


class Doubts:
    """Those of one cluster. A list of all pods ends them: what it tells is taken in."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._held: dict[str, tuple[PodReport, float]] = {}

    def clear(self) -> None:
        self._held.clear()

    def hold(self, reports: Sequence[PodReport], *, gone: Set[str]) -> list[PodReport]:
        """The others of them, which are to be taken in now; what is gone is held no longer."""
        for uid in gone:
            self._held.pop(uid, None)
        failed = {r.uid: r for r in reports if _has_failed(r) and r.uid not in gone}
        for uid in self._on_devices(set(failed) - self._held.keys()):
            if len(self._held) < MOST:
                self._held[uid] = failed[uid], time.monotonic() + DOUBT_S
        return [report for report in reports if report.uid not in self._held]

    def over(self) -> list[PodReport]:
        """Those that were held for long enough, each once."""
        now = time.monotonic()
        found = [report for report, until in self._held.values() if until <= now]
        for report in found:
            del self._held[report.uid]
        return found

    def _on_devices(self, uids: Set[str]) -> list[str]:
        """Which of them are of an attempt that holds a device: one without dies of the connection
        to one with."""
        if not uids:
            return []
        live = PlacementSpan.objects.filter(
            placement__attempt=OuterRef("attempt"), released_at__isnull=True
        )
        pods = Placement.objects.filter(
            Exists(live), pod_uid__in=uids, attempt__cluster=self._cluster
        )
        return sorted(pods.values_list("pod_uid", flat=True))


def _has_failed(report: PodReport) -> bool:
    """By itself, and is ours."""
    return (
        bool(report.workload)
        and report.phase is PodPhase.FAILED
        and not report.deleting
        and classify(report.reason) is FailureClass.EXIT_CODE
    )
