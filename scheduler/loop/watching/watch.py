"""Follows one cluster: list, then watch, into `observing/observe` and the inventory.

What `readers` queue, one writer stores in batches. When anything breaks, the whole watch ends and
begins anew with fresh lists. The cluster counts as heard while all watches stand on a list that
is stored: an API that answers, but not these, is silent.
"""

import gc
import threading
import time
from collections.abc import Callable, Sequence, Set
from datetime import datetime
from functools import cache

from django.db import close_old_connections

from clusters.models import Cluster
from clusters.port import Change, ClusterPort, NodeReport, PodPhase, PodReport, WatchEvent
from clusters.published import DeviceClaimReport, ResourceSliceReport
from clusters.services import clusters, restoring
from controlplane.kernel import hints
from scheduler.core.failures import FailureClass, classify
from scheduler.loop.adopting import adopt, unknown
from scheduler.loop.observing import observe
from scheduler.loop.observing.retry import give_up
from scheduler.loop.pods import caught
from scheduler.loop.watching import strays
from scheduler.loop.watching.claimed import Claimed
from scheduler.loop.watching.doubts import Doubts
from scheduler.loop.watching.foreign import ForeignPods
from scheduler.loop.watching.hardware import Hardware
from scheduler.loop.watching.readers import ClaimList, Item, PodList, Readers, Signal, SliceList
from scheduler.models import Attempt

ACTOR = "system:observer"
UNSCHEDULABLE_S = 15.0
"""How long a pod may stay refused by its cluster before it is tried elsewhere."""
START_ERROR_S = 120.0
"""How long a kubelet may try in vain to pull an image or make a container: five times or so."""
MOST_STUCK = 10_000
"""How many such pods are looked after at once; of others the next list tells again."""
_ALL = frozenset(
    {Signal.NODES_WATCHED, Signal.SLICES_WATCHED, Signal.CLAIMS_WATCHED, Signal.PODS_WATCHED}
)


class Restored(Exception):
    """The lists were stored in a database that is no more, or are to be believed from now on:
    they are needed anew."""

    def __str__(self) -> str:
        return "the database was put back since the cluster was listed"


class Watch:
    """One cluster's watch. `run` returns when `stop` is set and raises when anything broke."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        port: ClusterPort,
        at: Callable[[], datetime],
        stop: threading.Event,
    ) -> None:
        self._readers = Readers(cluster=cluster, port=port, at=at, stop=stop)
        self._cluster = cluster
        self._at = at
        self._stop = stop
        self._claimed = Claimed(cluster)
        self._hardware = Hardware(cluster, at)
        self._foreign = ForeignPods(cluster, lambda: self._claimed.spans(self._hardware.places()))
        self._strays = adopt.Strays(cluster)
        self._doubts = Doubts(cluster)
        self._port = port
        self._listing: restoring.Listing | None = None
        self._stuck: dict[str, tuple[PodReport, float]] = {}
        self._standing: set[Signal] = set()

    def run(self) -> None:
        self._listing = restoring.begin(cluster=self._cluster)  # before any list
        with self._readers as readers:
            while not self._stop.is_set():
                self._write(readers.gather())
                self._observe(self._doubts.over())
                self._look_after_stuck()
                for uid in self._strays.take_in_when_due(at=self._at()):
                    self._foreign.forget(uid)
                self._foreign.store_when_due()
                close_old_connections()  # to the pool, as the readers do

    def _write(self, items: list[Item]) -> None:
        """In order; runs of events of one kind go together."""
        nodes: list[WatchEvent[NodeReport]] = []
        slices: list[WatchEvent[ResourceSliceReport]] = []
        claims: list[WatchEvent[DeviceClaimReport]] = []
        pods: list[WatchEvent[PodReport]] = []
        for item in items:
            if isinstance(item, Exception):
                raise item
            if isinstance(item, WatchEvent):
                if isinstance(item.report, PodReport):
                    pods.append(WatchEvent(item.change, item.report, item.resource_version))
                elif isinstance(item.report, NodeReport):
                    nodes.append(WatchEvent(item.change, item.report, item.resource_version))
                elif isinstance(item.report, ResourceSliceReport):
                    slices.append(WatchEvent(item.change, item.report, item.resource_version))
                elif item.report:
                    claims.append(WatchEvent(item.change, item.report, item.resource_version))
                continue
            self._write_events(nodes, slices, claims, pods)
            nodes, slices, claims, pods = [], [], [], []
            if isinstance(item, Signal):
                self._hear(item)
            elif isinstance(item, PodList):
                self._standing.discard(Signal.PODS_WATCHED)
                self._write_pod_list(item)
            elif isinstance(item, SliceList):
                self._standing.discard(Signal.SLICES_WATCHED)
                self._tell_if(self._hardware.slices_listed(item))
            elif isinstance(item, ClaimList):
                self._standing.discard(Signal.CLAIMS_WATCHED)
                self._hardware.refuse_untold(item)
                listing = item.listing
                self._claimed.listed(
                    listing.items if listing else (), left_out=listing.left_out if listing else ()
                )
                self._foreign.devices_changed()
            else:
                self._standing.discard(Signal.NODES_WATCHED)
                clusters.left_out(cluster=self._cluster, kind="nodes", told=item.left_out)
                self._tell_if(self._hardware.nodes_listed(item.items))
        self._write_events(nodes, slices, claims, pods)

    def _hear(self, signal: Signal) -> None:
        """All that came before the signal is stored: heard when all watches stand.

        A watch that ended is taken up again at once, or breaks all of this one; a connection that
        died without a word does so within the adapter's time limit.
        """
        before = len(self._standing)
        self._standing |= {signal} & _ALL
        stands = self._standing == _ALL and (signal is Signal.PULSE or before < len(_ALL))
        if stands and not clusters.heard(cluster=self._cluster, listing=self._listing):
            raise Restored
        if stands and self._listing:
            self._listing = self._listing._replace(restored_at=None)

    def _write_events(
        self,
        nodes: list[WatchEvent[NodeReport]],
        slices: list[WatchEvent[ResourceSliceReport]],
        claims: list[WatchEvent[DeviceClaimReport]],
        pods: list[WatchEvent[PodReport]],
    ) -> None:
        if nodes:
            self._tell_if(self._hardware.nodes_changed(nodes))
        if slices:
            self._tell_if(self._hardware.slices_changed(slices))
        if claims and self._claimed.changed(claims):
            self._foreign.devices_changed()
        if pods:
            latest = {event.report.uid: event for event in pods if event.report}
            gone = {uid for uid, event in latest.items() if event.change is Change.DELETE}
            reports = [event.report for event in latest.values() if event.report]
            self._note(reports, gone)
            if caught.note(cluster_id=self._cluster.id, reports=reports, gone=gone, at=self._at()):
                self._readers.caught()
            self._observe(self._doubts.hold(reports, gone=gone), gone=gone)

    def _observe(self, reports: Sequence[PodReport], *, gone: Set[str] = frozenset()) -> None:
        if reports:
            observe.pods(cluster_id=self._cluster.id, reports=reports, gone=gone, at=self._at())

    def _write_pod_list(self, item: PodList) -> None:
        self._foreign.clear()
        self._doubts.clear()
        there = {report.uid for report in item.listing.items}
        # Since when they are stays known: lists may come more often than a pod is given up.
        self._stuck = {uid: known for uid, known in self._stuck.items() if uid in there}
        clusters.left_out(cluster=self._cluster, kind="pods", told=item.listing.left_out)
        self._note(item.listing.items, gone=frozenset())
        at = self._at()
        if caught.listed(cluster_id=self._cluster.id, reports=item.listing.items, at=at):
            self._readers.caught()
        reports = item.listing.items
        owns = cache(lambda namespace: self._port.owns_namespace(namespace=namespace))
        if put_back := self._listing is not None and self._listing.restored_at is not None:
            unknown.recognise(cluster=self._cluster, reports=reports, owns=owns, at=at)
        found = unknown.find(reports)
        unknown.number_above(found)
        found = unknown.believed(
            cluster=self._cluster, found=found, owns=owns if put_back else None
        )
        unknown.supersede(cluster=self._cluster, found=found, reports=reports, at=at)
        observe.listed(cluster_id=self._cluster.id, reports=reports, expected=item.expected, at=at)
        self._strays.listed(found, at=at)
        self._note_strangers([r for r in reports if r.uid not in item.expected], at)
        # All that is known of the pods stays until the next list. To look for garbage among it,
        # again and again, would hold up events by half a second.
        gc.freeze()

    def _note_strangers(self, reports: Sequence[PodReport], at: datetime) -> None:
        """With our labels and of no placement: whoever made it, it holds what it holds."""
        found = [report for report in reports if report.workload and not report.phase.ended]
        if not found:
            return
        placed = observe.expected(cluster_id=self._cluster.id)  # by now, with what was adopted
        running = {report.uid for report in self._strays.running()}
        for report in found:
            if report.uid in running or (
                report.uid not in placed and strays.is_old(report, at=at)
            ):
                self._foreign.note(report, gone=False)

    def _tell_if(self, changed: bool) -> None:
        if changed:
            self._foreign.devices_changed()
            hints.send(hints.CYCLE)

    def _note(self, reports: Sequence[PodReport], gone: Set[str]) -> None:
        for report in reports:
            ended = report.uid in gone or report.phase.ended
            if not report.workload:
                self._foreign.note(report, gone=ended)
                continue
            self._strays.note(report, gone=report.uid in gone)
            if ended:
                self._foreign.forget(report.uid)
            known = report.uid in self._stuck or len(self._stuck) < MOST_STUCK
            if _is_stuck(report) and not ended and known:
                self._stuck.setdefault(report.uid, (report, time.monotonic()))
            else:
                self._stuck.pop(report.uid, None)

    def _look_after_stuck(self) -> None:
        """Pods that have not come to run for too long are given up."""
        for uid, (report, since) in list(self._stuck.items()):
            refused = report.phase is PodPhase.UNSCHEDULABLE
            if time.monotonic() - since < (UNSCHEDULABLE_S if refused else START_ERROR_S):
                continue
            del self._stuck[uid]
            attempt = (
                Attempt.objects.filter(
                    cluster=self._cluster, placements__pod_uid=uid, ended_at__isnull=True
                )
                .select_related("workload")
                .first()
            )
            if attempt is not None:
                failure = FailureClass.REFUSED if refused else FailureClass.START_ERROR
                what = "the cluster could not place it" if refused else "it could not start"
                give_up(
                    attempt_id=attempt.id,
                    workload_id=attempt.workload_id,
                    project_id=attempt.workload.project_id,
                    why=f"{what}: {report.reason}",
                    failure=failure,
                    actor=ACTOR,
                    at=self._at(),
                )


def _is_stuck(report: PodReport) -> bool:
    """Its cluster's scheduler refuses it, or its kubelet tries in vain to start it."""
    if report.phase is PodPhase.SCHEDULED:
        return classify(report.reason) is FailureClass.START_ERROR
    return report.phase is PodPhase.UNSCHEDULABLE
