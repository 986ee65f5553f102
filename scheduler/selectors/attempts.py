"""The attempts of one workload: where each ran, on which parts of which devices, and its end."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import F
from django.db.models.lookups import IsNull

from clusters.models import Isolation
from scheduler.core.held.losses import gpu_hours
from scheduler.core.reasons import in_units
from scheduler.core.units import ONE_MILLI
from scheduler.models import (
    Attempt,
    Placement,
    PlacementSpan,
    Workload,
)
from scheduler.selectors import (
    caught,
    choices,
    hardware,
    unseen,
)
from scheduler.selectors.offers import TAGS

PODS_SHOWN = 64


@dataclass(frozen=True, slots=True)
class PodSpan:
    """[start, end) of a device in a pod's hands. `exact` is False with the device plugin: the
    kubelet picks which of the node's devices it is, so the ordinal is a count token."""

    ordinal: int
    model: str
    axis: int
    start: int
    end: int
    exact: bool

    @property
    def whole(self) -> bool:
        return (self.start, self.end) == (0, self.axis)

    @property
    def text(self) -> str:
        """Which part of which device: "GPU 3, memory slices 2-3 of 8", "GPU 3, 0.25 of it"."""
        name = f"GPU {self.ordinal}"
        if self.whole:
            return f"{name}, whole"
        if self.axis == ONE_MILLI:
            return f"{name}, {in_units(self.end - self.start)} of it"
        return f"{name}, memory {_ranges('slice', range(self.start, self.end))} of {self.axis}"


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of an attempt. `tag` says what keeps it apart from who shares its device; "" when
    nobody does."""

    id: UUID
    name: str
    rank: int
    node: str
    flavor: str
    amount_milli: int
    started_at: datetime | None
    ended_at: datetime | None
    exit_code: int | None
    end_reason: str
    succeeded: bool | None
    spans: tuple[PodSpan, ...]
    tag: str = ""

    @property
    def counted(self) -> bool:
        """Whether its devices are count tokens: all of one node are, or none."""
        return any(not span.exact for span in self.spans)

    @property
    def span_texts(self) -> tuple[str, ...]:
        """A line for all whole devices together, then one for each part of a device."""
        whole = [span.ordinal for span in self.spans if span.whole]
        parts = tuple(span.text for span in self.spans if not span.whole)
        if not whole:
            return parts
        return (f"{_ranges('GPU', whole)}, whole", *parts)


@dataclass(frozen=True, slots=True)
class AttemptDetail:
    """One attempt with its first pods by rank, those that have gone last; `pod_count` is all of
    them. `trouble` says what broke it. `elsewhere_at` is when it is given up, at the soonest, if
    its cluster stays silent; `held_unseen` is what it holds though it has ended, unseen. `choice`
    is why it is there, as `choices.shown`."""

    number: int
    cluster: str
    simulated: bool
    cluster_state: str
    cluster_seen_at: datetime | None
    created_at: datetime
    ended_at: datetime | None
    outcome: str
    trouble: str
    lost_milli_s: int
    pod_count: int
    pods: tuple[Pod, ...] = ()
    elsewhere_at: datetime | None = None
    held_unseen: unseen.Held | None = None
    choice: choices.Told | None = None

    @property
    def lost(self) -> str:
        """The work that its end lost, in GPU-hours; "" where that is none."""
        return gpu_hours(self.lost_milli_s) if self.lost_milli_s else ""

    @property
    def counted(self) -> bool:
        """Whether any device shown is a count token."""
        return any(pod.counted for pod in self.pods)

    @property
    def exact(self) -> bool:
        """Whether any device shown is that very one."""
        return any(span.exact for pod in self.pods for span in pod.spans)


def attempts_of(workload: Workload) -> tuple[AttemptDetail, ...]:
    """All attempts, newest first; only the newest with its pods."""
    rows = list(Attempt.objects.filter(workload=workload).select_related("cluster", "workload"))
    rows.sort(key=lambda row: -row.number)
    newest = rows[0] if rows else None
    pods = _pods(newest) if newest else ()
    count = Placement.objects.filter(attempt=newest).count() if newest else 0
    held: Mapping[int, unseen.Held] = {}
    if any(row.unseen_since for row in rows):
        held = unseen.held(workload_id=workload.id)
    return tuple(
        AttemptDetail(
            number=row.number,
            cluster=row.cluster.name,
            simulated=row.cluster.simulated,
            cluster_state=row.cluster.state,
            cluster_seen_at=row.cluster.seen_at,
            created_at=row.created_at,
            ended_at=row.ended_at,
            outcome=row.outcome,
            trouble=row.trouble,
            lost_milli_s=row.lost_milli_s,
            pod_count=count if row is newest else 0,
            pods=pods if row is newest else (),
            elsewhere_at=unseen.elsewhere_at(attempt=row),
            held_unseen=held.get(row.number),
            choice=choices.shown(row.choice),
        )
        for row in rows
    )


def _pods(attempt: Attempt) -> tuple[Pod, ...]:
    rows = list(
        caught.named(Placement.objects.filter(attempt=attempt))
        .select_related("node", "flavor")
        .order_by(IsNull(F("released_at"), rhs=False), "rank")[:PODS_SHOWN]
    )
    spans = _spans([row.id for row in rows])
    return tuple(
        Pod(
            id=row.id,
            name=getattr(row, "pod"),  # noqa: B009  # an annotation, unknown to the class
            rank=row.rank,
            node=row.node.name,
            flavor=row.flavor.name,
            amount_milli=row.amount_milli,
            started_at=row.started_at,
            ended_at=row.ended_at,
            exit_code=row.exit_code,
            end_reason=row.end_reason,
            succeeded=row.succeeded,
            spans=spans.get(row.id, ()),
            tag=TAGS[Isolation(row.flavor.isolation)],
        )
        for row in rows
    )


def _spans(placements: Iterable[UUID]) -> dict[UUID, tuple[PodSpan, ...]]:
    found: dict[UUID, tuple[PodSpan, ...]] = {}
    rows = PlacementSpan.objects.filter(placement_id__in=list(placements)).select_related("device")
    for row in sorted(rows, key=lambda row: (row.device.ordinal, row.span.lower)):
        span = PodSpan(
            ordinal=row.device.ordinal,
            model=row.device.model,
            axis=hardware.axis(model=row.device.model, mode=row.device.mode),
            start=row.span.lower,
            end=row.span.upper,
            exact=bool(row.device.uuid),
        )
        found[row.placement_id] = (*found.get(row.placement_id, ()), span)
    return found


def _ranges(word: str, numbers: Iterable[int]) -> str:
    """ "GPU 3", "GPUs 0-3, 6": ascending numbers with runs joined."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    text = ", ".join("-".join(map(str, run)) for run in runs)
    single = len(runs) == 1 and len(runs[0]) == 1
    return f"{word} {text}" if single else f"{word}s {text}"
