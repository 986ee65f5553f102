"""Follows one cluster: list, then watch, into `observe` and the inventory.

Readers read the API and queue what they got; one writer does the database's part, in batches. Only
a whole list shows what is nobody's, so that its reader has that collected (`strays`).
When anything breaks, the whole watch ends and begins anew with fresh lists. The cluster counts as
heard while both watches stand on a list that is stored: an API that answers, but not these, is
silent.
"""

import logging
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from uuid import UUID

from django.db import connection

from clusters.models import Cluster
from clusters.port import (
    Change,
    ClusterError,
    ClusterPort,
    Fault,
    Listing,
    NodeReport,
    PodPhase,
    PodReport,
    WatchEvent,
)
from clusters.services import clusters, inventory
from controlplane.kernel import hints
from controlplane.kernel.crash import crash
from scheduler.core import mig
from scheduler.loop import observe, strays
from scheduler.loop.retry import give_up
from scheduler.models import Attempt

logger = logging.getLogger(__name__)

ACTOR = "system:observer"
BATCH = 1000
GATHER_S = 0.03
"""How long the writer waits for more once it has something: what it costs in latency."""
PULSE_S = 15.0
"""How often the API is asked for its version; a small part of what makes a cluster silent."""
RELIST_S = 600.0
UNSCHEDULABLE_S = 15.0
"""How long a pod may stay refused by its cluster before it is tried elsewhere."""
FOREIGN_S = 2.0
QUEUE = 10_000
PAUSE_S = 0.2  # between two watches when the server ends the first at once


@dataclass(frozen=True, slots=True)
class _PodList:
    listing: Listing[PodReport]
    expected: Mapping[str, tuple[UUID, datetime | None]]


type _NodeList = Listing[NodeReport]


class _Signal(Enum):
    """What readers tell the writer next to reports."""

    NODES_WATCHED = auto()  # the API accepted a watch from the last list on
    PODS_WATCHED = auto()
    PULSE = auto()  # the API answers


_BOTH = frozenset({_Signal.NODES_WATCHED, _Signal.PODS_WATCHED})
type _Item = (
    _PodList | _NodeList | WatchEvent[PodReport] | WatchEvent[NodeReport] | _Signal | Exception
)


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
        self._cluster = cluster
        self._port = port
        self._at = at
        self._stop = stop
        self._broken = threading.Event()
        self._items: queue.Queue[_Item] = queue.Queue(maxsize=QUEUE)
        self._foreign: dict[str, PodReport] = {}
        self._foreign_due = 0.0
        self._refused: dict[str, tuple[PodReport, float]] = {}
        self._standing: set[_Signal] = set()

    def run(self) -> None:
        readers = [
            threading.Thread(target=self._guarded, args=[read], daemon=True)
            for read in (self._read_nodes, self._read_pods, self._pulse)
        ]
        for reader in readers:
            reader.start()
        try:
            while not self._stop.is_set():
                self._write(self._gather())
                self._look_after_refused()
                self._store_foreign()
        finally:
            self._broken.set()

    # --- readers ---

    def _guarded(self, read: Callable[[], None]) -> None:
        try:
            read()
        except Exception as error:  # the edge of a thread: the writer raises it
            self._offer(error)
        finally:
            connection.close()

    def _offer(self, item: _Item) -> None:
        """Queue it, and don't wait for a writer that is gone."""
        while not self._over:
            with suppress(queue.Full):
                return self._items.put(item, timeout=1)

    @property
    def _over(self) -> bool:
        return self._stop.is_set() or self._broken.is_set()

    def _pulse(self) -> None:
        while not self._over:
            clusters.answered(cluster=self._cluster, version=self._port.version())
            self._offer(_Signal.PULSE)
            self._broken.wait(PULSE_S)

    def _read_nodes(self) -> None:
        def begin() -> str:
            listing = self._port.list_nodes()
            self._offer(listing)
            return listing.resource_version

        self._follow(begin, self._port.watch_nodes, _Signal.NODES_WATCHED)

    def _read_pods(self) -> None:
        def begin() -> str:
            expected = observe.expected(cluster_id=self._cluster.id)
            listing = self._port.list_pods()
            self._offer(_PodList(listing, expected))
            strays.collect(port=self._port, reports=listing.items, at=self._at())
            return listing.resource_version

        self._follow(begin, self._port.watch_pods, _Signal.PODS_WATCHED)

    def _follow[Report: (NodeReport, PodReport)](
        self,
        begin: Callable[[], str],
        watch: Callable[..., AbstractContextManager[Iterator[WatchEvent[Report]]]],
        watched: _Signal,
    ) -> None:
        """List, then watch from there; list again when the version has expired or is old."""
        while not self._over:
            version = begin()
            crash("O3")
            relist_at = time.monotonic() + RELIST_S
            try:
                while not self._over and time.monotonic() < relist_at:
                    begun = time.monotonic()
                    with watch(resource_version=version) as events:
                        self._offer(watched)
                        for event in events:
                            version = event.resource_version
                            if event.change is not Change.BOOKMARK:
                                self._offer(event)
                            if self._over:
                                return
                    if time.monotonic() - begun < PAUSE_S:
                        self._broken.wait(PAUSE_S)
            except ClusterError as error:
                if error.fault is not Fault.EXPIRED:
                    raise

    # --- the writer ---

    def _gather(self) -> list[_Item]:
        """What has come in, at least nothing after a second."""
        try:
            items = [self._items.get(timeout=1)]
        except queue.Empty:
            return []
        until = time.monotonic() + GATHER_S
        while len(items) < BATCH and (left := until - time.monotonic()) > 0:
            try:
                items.append(self._items.get(timeout=left))
            except queue.Empty:
                break
        return items

    def _write(self, items: list[_Item]) -> None:
        """In order; runs of events of one kind go together."""
        pods: list[WatchEvent[PodReport]] = []
        nodes: list[WatchEvent[NodeReport]] = []
        for item in items:
            if isinstance(item, Exception):
                raise item
            if isinstance(item, WatchEvent):
                if isinstance(item.report, PodReport):
                    pods.append(WatchEvent(item.change, item.report, item.resource_version))
                elif isinstance(item.report, NodeReport):
                    nodes.append(WatchEvent(item.change, item.report, item.resource_version))
                continue
            self._write_events(nodes, pods)
            nodes, pods = [], []
            if isinstance(item, _Signal):
                self._hear(item)
            elif isinstance(item, _PodList):
                self._standing.discard(_Signal.PODS_WATCHED)
                self._write_pod_list(item)
            else:
                self._standing.discard(_Signal.NODES_WATCHED)
                self._sync(item.items, gone=[], complete=True)
        self._write_events(nodes, pods)

    def _hear(self, signal: _Signal) -> None:
        """All that came before the signal is stored: heard when both watches stand.

        A watch that ended is taken up again at once, or breaks all of this one; a connection that
        died without a word does so within the adapter's time limit.
        """
        before = len(self._standing)
        self._standing |= {signal} & _BOTH
        if self._standing == _BOTH and (signal is _Signal.PULSE or before < len(_BOTH)):
            clusters.heard(cluster=self._cluster)

    def _write_events(
        self, nodes: list[WatchEvent[NodeReport]], pods: list[WatchEvent[PodReport]]
    ) -> None:
        if nodes:
            last = {event.report.name: event for event in nodes if event.report}
            self._sync(
                [e.report for e in last.values() if e.report and e.change is Change.UPSERT],
                gone=[name for name, e in last.items() if e.change is Change.DELETE],
                complete=False,
            )
        if pods:
            latest = {event.report.uid: event for event in pods if event.report}
            gone = {uid for uid, event in latest.items() if event.change is Change.DELETE}
            reports = [event.report for event in latest.values() if event.report]
            self._note(reports, gone)
            observe.pods(cluster_id=self._cluster.id, reports=reports, gone=gone, at=self._at())

    def _write_pod_list(self, item: _PodList) -> None:
        self._foreign.clear()
        self._refused.clear()
        self._note(item.listing.items, gone=frozenset())
        observe.listed(
            cluster_id=self._cluster.id,
            reports=item.listing.items,
            expected=item.expected,
            at=self._at(),
        )

    def _sync(self, reports: Sequence[NodeReport], *, gone: list[str], complete: bool) -> None:
        changed = inventory.sync(
            cluster=self._cluster,
            reports=reports,
            gone=gone,
            complete=complete,
            arrange=arrange,
            at=self._at(),
        )
        if changed:
            hints.send(hints.CYCLE)

    # --- what a single event can't tell ---

    def _note(self, reports: Sequence[PodReport], gone: Set[str]) -> None:
        for report in reports:
            ended = report.uid in gone or report.phase in {PodPhase.SUCCEEDED, PodPhase.FAILED}
            if not report.workload:
                self._foreign_due = self._foreign_due or time.monotonic() + FOREIGN_S
                if ended or not report.node:
                    self._foreign.pop(report.uid, None)
                else:
                    self._foreign[report.uid] = report
            elif report.phase is PodPhase.UNSCHEDULABLE and not ended:
                self._refused.setdefault(report.uid, (report, time.monotonic()))
            else:
                self._refused.pop(report.uid, None)

    def _store_foreign(self) -> None:
        if not self._foreign_due or time.monotonic() < self._foreign_due:
            return
        self._foreign_due = 0.0
        held: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for report in self._foreign.values():
            cpu_milli, memory_mib = held[report.node]
            held[report.node] = cpu_milli + report.cpu_milli, memory_mib + report.memory_mib
        inventory.sync_foreign(cluster=self._cluster, held=held)

    def _look_after_refused(self) -> None:
        """Pods that their cluster's scheduler has refused for too long are tried elsewhere."""
        for uid, (report, since) in list(self._refused.items()):
            if time.monotonic() - since < UNSCHEDULABLE_S:
                continue
            del self._refused[uid]
            attempt = (
                Attempt.objects.filter(
                    cluster=self._cluster, placements__pod_uid=uid, ended_at__isnull=True
                )
                .select_related("workload")
                .first()
            )
            if attempt is not None:
                give_up(
                    attempt_id=attempt.id,
                    workload_id=attempt.workload_id,
                    project_id=attempt.workload.project_id,
                    why=f"the cluster could not place it: {report.reason}",
                    actor=ACTOR,
                    at=self._at(),
                )


def arrange(model: str, counts: Mapping[str, int], devices: int) -> inventory.Layout:
    return [
        [(profile, span.start, span.end) for profile, span in device]
        for device in mig.arrange(model=model, counts=counts, devices=devices)
    ]
