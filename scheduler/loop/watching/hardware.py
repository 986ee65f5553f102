"""One cluster's nodes and devices, as reported → the inventory.

Which devices a node has follows from what it tells and from what drivers publish of it
(`published`), so nothing is stored before both have been listed.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from uuid import UUID

from django.db.models import Q

from clusters.models import Cluster, Device, Node
from clusters.port import Change, ClusterError, Fault, NodeReport, WatchEvent
from clusters.published import ResourceSliceReport
from clusters.services import clusters, inventory
from scheduler.core.node import mig
from scheduler.loop.watching.published import Place, Published
from scheduler.loop.watching.readers import ClaimList, SliceList
from scheduler.models import PlacementSpan


class Hardware:
    """Each method stores what it is given, and tells whether that changed anything."""

    def __init__(self, cluster: Cluster, at: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._at = at
        self._published = Published()
        self._nodes_listed = False
        self._slices_listed = False
        self._left_out: tuple[str, ...] = ()
        self._elsewhere: dict[str, list[str]] = {}

    def nodes_listed(self, reports: Sequence[NodeReport]) -> bool:
        self._nodes_listed = True
        return self._sync(self._published.nodes(reports, complete=True), complete=True)

    def slices_listed(self, item: SliceList) -> bool:
        """Raises ClusterError(FORBIDDEN) where Berth may no longer ask for devices that it has
        there: they are not gone."""
        self.refuse_untold(item)
        self._slices_listed = True
        self._left_out = item.listing.left_out if item.listing else ()
        slices = item.listing.items if item.listing else ()
        return self._sync(self._published.listed(slices), complete=True)

    def nodes_changed(self, events: Sequence[WatchEvent[NodeReport]]) -> bool:
        last = {event.report.name: event for event in events if event.report}
        gone = [name for name, event in last.items() if event.change is Change.DELETE]
        there = [
            event.report
            for event in last.values()
            if event.report and event.change is Change.UPSERT
        ]
        return self._sync(self._published.nodes(there, gone=gone), gone=gone)

    def slices_changed(self, events: Sequence[WatchEvent[ResourceSliceReport]]) -> bool:
        last = {event.report.name: event for event in events if event.report}
        gone = [name for name, event in last.items() if event.change is Change.DELETE]
        there = [
            event.report
            for event in last.values()
            if event.report and event.change is Change.UPSERT
        ]
        return self._sync(self._published.changed(there, gone))

    def places(self) -> Mapping[tuple[str, str, str], Place] | None:
        """Where what drivers publish is, by driver, pool and name; None while nothing is known."""
        return self._published.places() if self._slices_listed else None

    def refuse_untold(self, item: SliceList | ClaimList) -> None:
        """Raises as `slices_listed`."""
        there = Node.objects.filter(cluster=self._cluster, gone_at__isnull=True)
        if item.told and there.exclude(device_driver="").exists():
            raise ClusterError(Fault.FORBIDDEN, item.told)

    def _sync(
        self, reports: Sequence[NodeReport], *, gone: Sequence[str] = (), complete: bool = False
    ) -> bool:
        if not (self._nodes_listed and self._slices_listed):
            return False
        changed = inventory.sync(
            cluster=self._cluster,
            reports=reports,
            gone=gone,
            complete=complete,
            arrange=arrange,
            at=self._at(),
            held=_held(self._cluster, reports, None if complete else gone),
        )
        self._note_elsewhere(reports, gone, complete=complete)
        told = *self._left_out, *self._published.told, *chain(*self._elsewhere.values())
        clusters.left_out(cluster=self._cluster, kind="devices", told=told)
        return changed

    def _note_elsewhere(
        self, reports: Sequence[NodeReport], gone: Sequence[str], *, complete: bool
    ) -> None:
        """Which of their devices are none of theirs, for another node has them as well."""
        names = [report.name for report in reports if report.device_driver]
        rows = Device.objects.filter(node__cluster=self._cluster, node__name__in=names)
        there: dict[str, set[str]] = defaultdict(set)
        for name, uuid in rows.filter(gone_at=None).values_list("node__name", "uuid"):
            there[name].add(uuid)
        if complete:
            self._elsewhere = {}
        for name in gone:
            self._elsewhere.pop(name, None)
        for report in reports:
            lacks = sorted({seen.uuid for seen in report.devices} - {"", *there[report.name]})
            told = [f"{report.name}: {uuid} is a device of another node" for uuid in lacks]
            self._elsewhere[report.name] = told


def _held(
    cluster: Cluster, reports: Sequence[NodeReport], gone: Sequence[str] | None
) -> set[UUID]:
    """Devices that work is on, and that their node tells no longer, or in another way; of those
    nodes alone, unless `gone` is None. And those of other clusters that these nodes tell of."""
    published = [report.name for report in reports if report.device_driver]
    live = PlacementSpan.objects.filter(released_at__isnull=True)
    here = live.filter(
        Q(device__uuid="", device__node__name__in=published)
        | (~Q(device__uuid="") & ~Q(device__node__name__in=published)),
        device__node__cluster=cluster,
    )
    if gone is not None:
        here = here.filter(device__node__name__in=[*gone, *(report.name for report in reports)])
    held = set(here.values_list("device_id", flat=True))
    elsewhere = live.filter(device__uuid__in=inventory.uuids(reports)).exclude(
        device__node__cluster=cluster
    )
    return held.union(elsewhere.values_list("device_id", flat=True))


def arrange(model: str, counts: Mapping[str, int], devices: int) -> inventory.Layout:
    return [
        [(profile, span.start, span.end) for profile, span in device]
        for device in mig.arrange(model=model, counts=counts, devices=devices)
    ]
