"""What claims have been given of a cluster's devices, and by whom that is not Berth.

Here the cluster tells which device somebody holds, so nothing is chosen, as it is for pods that
hold so many of a resource (`foreign`). A claim of ours that was given another device than its pod
was placed on is told, and holds what it holds; so does one of no live placement.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from django.conf import settings

from clusters.models import Cluster, Device, DeviceMode
from clusters.port import Change, WatchEvent
from clusters.published import DeviceClaimReport
from clusters.services import clusters
from clusters.services.foreign import SpanRow
from scheduler.core.node import mig
from scheduler.core.units import ONE_MILLI
from scheduler.loop.watching.published import Place
from scheduler.selectors.fleet import rows

type _Pod = tuple[str, int, int]
"""A workload's id, an attempt's number and a rank."""


class Claimed:
    """The claims of one cluster that have been given anything. What makes no sense of them, and
    what was given that was not asked for, is told on the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._claims: dict[tuple[str, str], DeviceClaimReport] = {}
        self._listed = False
        self._left_out: Sequence[str] = ()

    def listed(self, claims: Iterable[DeviceClaimReport], *, left_out: Sequence[str] = ()) -> None:
        self._listed = True
        self._left_out = left_out
        self._claims = {(each.namespace, each.name): each for each in claims if each.devices}

    def changed(self, events: Iterable[WatchEvent[DeviceClaimReport]]) -> bool:
        """Whether what is held may be another than before."""
        before = len(self._claims)
        known = 0
        for event in events:
            if (each := event.report) is None:
                continue
            key = each.namespace, each.name
            if each.devices and event.change is Change.UPSERT:
                known += self._claims.get(key) != each
                self._claims[key] = each
            else:
                self._claims.pop(key, None)
        return bool(known) or len(self._claims) != before

    def spans(self, places: Mapping[tuple[str, str, str], Place] | None) -> set[SpanRow] | None:
        """What is held by others, of devices that are where `places` says, by their published
        names; what lies on each other, which may be shared, is one. None while that is not
        known."""
        if places is None or not self._listed:
            return None
        held = [
            (claim, places[device])
            for claim in self._claims.values()
            for device in claim.devices
            if device in places
        ]
        devices = {
            row.uuid: row
            for row in Device.objects.filter(
                node__cluster=self._cluster,
                uuid__in={place.uuid for _, place in held},
                gone_at__isnull=True,
            )
        }
        ours = _ours(claim for claim, _ in held)
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        told = [f"the claim {each}" for each in self._left_out]
        for claim, place in held:
            device = devices.get(place.uuid)
            if device is None:
                continue
            span = (place.start, place.end) if place.end else (0, axis(device))
            if claim.workload and claim.installation == settings.BERTH_INSTALLATION:
                placed = ours.get((claim.workload, claim.attempt, claim.rank), set())
                if (str(device.pk), *span) in placed:
                    continue
                # Of no live placement its pod is about to go, or it is a stray, or forged.
                if placed:
                    told.append(
                        f"the claim {claim.name} was given {place.uuid} from {span[0]} to"
                        f" {span[1]}, which is not what its pod was placed on"
                    )
            found[str(device.pk)].append(span)
        clusters.left_out(cluster=self._cluster, kind="claims", told=told)
        return {(id, *span) for id, spans in found.items() for span in _merged(spans)}


def _ours(claims: Iterable[DeviceClaimReport]) -> dict[_Pod, set[SpanRow]]:
    """What the live placements of those claims hold."""
    workloads = {each.workload for each in claims if each.installation and each.workload}
    found: dict[_Pod, set[SpanRow]] = defaultdict(set)
    for workload, number, rank, device, start, end in rows(
        "SELECT q.workload_id::text, a.number, q.rank, z.device_id::text, lower(z.span),"
        " upper(z.span) FROM scheduler_placement q"
        " JOIN scheduler_attempt a ON a.id = q.attempt_id"
        " JOIN scheduler_placementspan z ON z.placement_id = q.id"
        " WHERE q.workload_id = ANY(%s) AND q.released_at IS NULL",
        [[UUID(each) for each in workloads if _is_uuid(each)]],
    ):
        found[workload, number, rank].add((device, start, end))
    return found


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:  # a forged or foreign label harms nobody
        return False
    return True


def axis(device: Device) -> int:
    board = mig.board(model=device.model)
    return ONE_MILLI if device.mode == DeviceMode.WHOLE or board is None else board.memory


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found
