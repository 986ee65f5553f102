"""Reads one cluster's API in threads: nodes, pods and whether it answers, queued for `watch`; and
what nodes can come, which is stored at once.

The pods' reader also reads which pods are expected, before each list, and deletes strays after it,
which only a whole list shows (`strays`). Nothing is missed meanwhile: its watch begins at the
list's version. No thread keeps a connection to the database while it waits: their pool is the
process's, however many clusters it follows.

What must not live here: storing what is reported (watch.py).
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Self
from uuid import UUID

from django.db import DatabaseError, close_old_connections, connection

from clusters.autoscaling import Autoscaling
from clusters.models import Cluster
from clusters.port import (
    Change,
    ClusterError,
    ClusterPort,
    Fault,
    Listing,
    NodeReport,
    PodReport,
    WatchEvent,
)
from clusters.published import DeviceClaimReport, ResourceSliceReport
from clusters.services import autoscaling, clusters
from controlplane.kernel.crash import crash
from scheduler.loop.catching import catch
from scheduler.loop.observing import observe
from scheduler.loop.watching import strays

logger = logging.getLogger(__name__)

BATCH = 1000
GATHER_S = 0.03
"""How long the writer waits for more once it has something: what it costs in latency."""
PULSE_S = 15.0
"""How often the API is asked for its version; a small part of what makes a cluster silent."""
RELIST_S = 600.0
QUEUE = 10_000
_NOT_TOLD = frozenset({Fault.NOT_FOUND, Fault.FORBIDDEN})
"""The cluster has no Dynamic Resource Allocation, or Berth may not look at it."""
CATCH_S = 15.0
"""How often what others made is looked at, though nothing is new of it."""
AUTOSCALING_S, UNSERVED_S = 15.0, 60.0
"""How often node pools are looked at, and how often whether there are any."""
EXPIRY_S = 2.0
"""No sound version expires so soon: who says so is not asked for lists without a pause."""
STALE_S = 300.0
"""After which nobody counts on nodes of pools that could not be read since."""
PAUSE_S = 0.2  # between two watches when the server ends the first at once


@dataclass(frozen=True, slots=True)
class PodList:
    listing: Listing[PodReport]
    expected: Mapping[str, tuple[UUID, datetime | None]]


type NodeList = Listing[NodeReport]


@dataclass(frozen=True, slots=True)
class SliceList:
    """What drivers publish of devices; None where the cluster does not tell. `told` is why."""

    listing: Listing[ResourceSliceReport] | None
    told: str = ""


@dataclass(frozen=True, slots=True)
class ClaimList:
    """As SliceList, of what claims have been given."""

    listing: Listing[DeviceClaimReport] | None
    told: str = ""


class Signal(Enum):
    """What readers tell the writer next to reports."""

    NODES_WATCHED = auto()  # the API accepted a watch from the last list on
    PODS_WATCHED = auto()
    SLICES_WATCHED = auto()
    CLAIMS_WATCHED = auto()
    PULSE = auto()  # the API answers


type Item = (
    PodList
    | NodeList
    | SliceList
    | ClaimList
    | WatchEvent[PodReport]
    | WatchEvent[NodeReport]
    | WatchEvent[ResourceSliceReport]
    | WatchEvent[DeviceClaimReport]
    | Signal
    | Exception
)


class Readers:
    """Threads that run inside its `with`, until `stop` is set. What breaks one is an item."""

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
        self._ended = threading.Event()
        self._caught = threading.Event()
        self._items: queue.Queue[Item] = queue.Queue(maxsize=QUEUE)

    def __enter__(self) -> Self:
        for read in (
            self._read_nodes,
            self._read_slices,
            self._read_claims,
            self._read_pods,
            self._pulse,
            self._take_in,
            self._read_coming,
        ):
            threading.Thread(target=self._guarded, args=[read], daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def gather(self) -> list[Item]:
        """What has come in, BATCH at most; nothing after a second without any."""
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

    def caught(self) -> None:
        """Something is new of the pods that others made."""
        self._caught.set()

    def _guarded(self, read: Callable[[], None]) -> None:
        try:
            read()
        except Exception as error:  # the edge of a thread: the writer raises it
            self._offer(error)
        finally:
            connection.close()

    def _offer(self, item: Item) -> None:
        """Queue it, and don't wait for a writer that is gone."""
        while not self._over:
            with suppress(queue.Full):
                return self._items.put(item, timeout=1)

    @property
    def _over(self) -> bool:
        return self._stop.is_set() or self._ended.is_set()

    def _pulse(self) -> None:
        while not self._over:
            clusters.answered(cluster=self._cluster, version=self._port.version())
            close_old_connections()
            self._offer(Signal.PULSE)
            self._ended.wait(PULSE_S)

    def _take_in(self) -> None:
        """Whenever the writer says that pods wait which others made, and now and then."""
        last = -CATCH_S
        while not self._over:
            told = self._caught.wait(timeout=1)
            if not told and time.monotonic() - last < CATCH_S:
                continue
            self._caught.clear()
            last = time.monotonic()
            catch.take_in(port=self._port, cluster=self._cluster, at=self._at())

    def _read_coming(self) -> None:
        """What nodes can come; a cluster that doesn't say that is watched all the same."""
        read_at = time.monotonic()
        while not self._over:
            pause_s = UNSERVED_S
            unread = []
            try:
                found = self._port.read_autoscaling()
                if found is not None:
                    pause_s = AUTOSCALING_S
                self._store_coming(found or Autoscaling())
                read_at = time.monotonic()
            except ClusterError as error:
                logger.warning("node pools of %s: %s", self._cluster.name, error)
                unread = [str(error)]
                if time.monotonic() - read_at > STALE_S:
                    self._store_coming(Autoscaling())
            clusters.left_out(cluster=self._cluster, kind="coming", told=unread)
            close_old_connections()
            self._ended.wait(pause_s)

    def _store_coming(self, found: Autoscaling) -> None:
        """Whatever of it cannot be stored ends no watch."""
        try:
            autoscaling.sync(cluster=self._cluster, found=found, at=self._at())
        except DatabaseError:
            logger.exception("node pools of %s", self._cluster.name)

    def _read_nodes(self) -> None:
        def begin() -> str:
            listing = self._port.list_nodes()
            self._offer(listing)
            return listing.resource_version

        self._follow(begin, self._port.watch_nodes, Signal.NODES_WATCHED)

    def _read_slices(self) -> None:
        def begin() -> str:
            listing = self._port.list_resource_slices()
            self._offer(SliceList(listing))
            return listing.resource_version

        self._follow_if_told(
            begin, self._port.watch_resource_slices, Signal.SLICES_WATCHED, SliceList
        )

    def _read_claims(self) -> None:
        def begin() -> str:
            listing = self._port.list_device_claims()
            self._offer(ClaimList(listing))
            return listing.resource_version

        self._follow_if_told(
            begin, self._port.watch_device_claims, Signal.CLAIMS_WATCHED, ClaimList
        )

    def _follow_if_told[Report: (ResourceSliceReport, DeviceClaimReport)](
        self,
        begin: Callable[[], str],
        watch: Callable[..., AbstractContextManager[Iterator[WatchEvent[Report]]]],
        watched: Signal,
        untold: Callable[[None, str], SliceList | ClaimList],
    ) -> None:
        """Where the cluster does not tell, it is asked again now and then: a driver may come."""
        while not self._over:
            try:
                self._follow(begin, watch, watched)
            except ClusterError as error:
                if error.fault not in _NOT_TOLD:
                    raise
                self._offer(untold(None, str(error) if error.fault is Fault.FORBIDDEN else ""))
                self._offer(watched)
                close_old_connections()
                self._ended.wait(RELIST_S)

    def _read_pods(self) -> None:
        def begin() -> str:
            expected = observe.expected(cluster_id=self._cluster.id)
            listing = self._port.list_pods()
            self._offer(PodList(listing, expected))
            strays.delete(port=self._port, reports=listing.items, at=self._at())
            close_old_connections()
            return listing.resource_version

        self._follow(begin, self._port.watch_pods, Signal.PODS_WATCHED)

    def _follow[Report: (NodeReport, PodReport, ResourceSliceReport, DeviceClaimReport)](
        self,
        begin: Callable[[], str],
        watch: Callable[..., AbstractContextManager[Iterator[WatchEvent[Report]]]],
        watched: Signal,
    ) -> None:
        """List, then watch from there; list again when the version has expired or is old."""
        while not self._over:
            listed = time.monotonic()
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
                        self._ended.wait(PAUSE_S)
            except ClusterError as error:
                if error.fault is not Fault.EXPIRED:
                    raise
                if time.monotonic() - listed < EXPIRY_S:
                    self._ended.wait(EXPIRY_S)
