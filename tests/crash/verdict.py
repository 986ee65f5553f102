"""What has to be true once everything has ended, however often somebody died on the way."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from uuid import UUID

from clusters.port import PodReport
from scheduler.core.lifecycle import TERMINAL
from scheduler.loop.checking import invariants, rules
from scheduler.models import Placement, PlacementSpan, Workload
from tenants.models import Charge, Quota, UsageInterval
from tests.crash.diary import Diary
from tests.scheduler.remembered import differing


def faults(
    *,
    told: Diary,
    pods: Iterable[PodReport],
    services: int,
    of: Iterable[UUID] | None = None,
    apart: timedelta = timedelta(),
) -> list[str]:
    """A sentence for each thing that is wrong; [] when nothing was lost, doubled or left over.

    `told` is the story of the pods of all workloads, or of those workloads; `pods` and `services`
    are what the cluster has. `apart` is how far its times and ours may be.
    """
    return [
        *rules.told(invariants.violations()),
        *_not_ended(),
        *_left_over(),
        *_left_there(pods, services),
        *_twice(told),
        *_times(told, of, apart),
    ]


def _not_ended() -> Iterator[str]:
    for workload in Workload.objects.exclude(state__in=sorted(TERMINAL)):
        yield f"{workload.name} is {workload.state}"


def _left_over() -> Iterator[str]:
    for quota in Quota.objects.exclude(used_milli=0):
        yield f"quota {quota} still counts {quota.used_milli} as used"
    for placement in Placement.objects.filter(released_at__isnull=True):
        yield f"{placement.pod_name} still holds room"
    for span in PlacementSpan.objects.filter(released_at__isnull=True):
        yield f"{span} is still held"
    for usage in UsageInterval.objects.filter(charges__isnull=True):
        yield f"{usage} was not charged"
    for day, kept, derived in differing():
        yield f"{kept} is remembered of {day}, and {derived} was used"
    if Charge.objects.filter(corrects__isnull=False).exists():
        yield "something had to be corrected"


def _left_there(pods: Iterable[PodReport], services: int) -> Iterator[str]:
    for pod in pods:
        if pod.workload and not pod.phase.ended:
            yield f"the cluster still has {pod.name}, {pod.phase}"
    if services:
        yield f"the cluster still has {services} services"


def _twice(told: Diary) -> Iterator[str]:
    """P3: one pod opened, and so at most one started, for each workload, attempt and rank."""
    for place in told.pods:
        if len(told.opened[place]) > 1:
            yield f"{len(told.opened[place])} pods were opened for {place}"
        if len(told.ran[place]) > 1:
            yield f"{len(told.ran[place])} pods ran for {place}"


def _times(told: Diary, of: Iterable[UUID] | None, apart: timedelta) -> Iterator[str]:
    """Each pod that ran is one placement's, under its own times."""
    found = Placement.objects.select_related("attempt")
    placements = {
        (str(p.workload_id), p.attempt.number, p.rank): p
        for p in (found if of is None else found.filter(workload__in=list(of)))
    }
    for place, uids in told.ran.items():
        for uid in uids:
            pod, placement = told.pods[place][uid], placements.get(place)
            if placement is None or placement.pod_uid != uid:
                yield f"{pod.name} ran and is nobody's"
                continue
            stays = uid in told.there  # else its end may have been missed, and is when that showed
            told_start = stays or placement.started_at
            if told_start and not _agree(placement.started_at, pod.started_at, apart):
                yield f"{pod.name} started {pod.started_at}, not {placement.started_at}"
            ended_at, finished_at = placement.ended_at, pod.finished_at
            if stays and not _agree(ended_at, finished_at, apart):
                yield f"{pod.name} ended {finished_at}, not {ended_at}"
            elif ended_at and finished_at and ended_at < finished_at - apart:
                yield f"{pod.name} ended {finished_at}, after {ended_at}"
    for place, placement in placements.items():
        if placement.started_at and placement.pod_uid not in told.ran[place]:
            yield f"{placement.pod_name} never ran, and is said to have"


def _agree(ours: datetime | None, theirs: datetime | None, apart: timedelta) -> bool:
    return ours == theirs or bool(ours and theirs and abs(ours - theirs) <= apart)
