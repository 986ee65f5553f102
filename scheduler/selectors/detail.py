"""One workload, whole: its timeline, why it waits, where it runs, what it cost.

What must not live here: permission to act on it; the page asks `tenants.access`.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import F
from django.db.models.lookups import IsNull

from clusters.models import Isolation
from scheduler.core.failures import Retries
from scheduler.core.losses import gpu_hours
from scheduler.core.reasons import in_units, moment
from scheduler.core.units import ONE_MILLI
from scheduler.models import (
    Attempt,
    Placement,
    PlacementSpan,
    PodSet,
    Workload,
    WorkloadEvent,
)
from scheduler.selectors import (
    accrual,
    caught,
    decisions,
    hardware,
    idleness,
    kept,
    listing,
    node_asks,
    standing,
    topology,
    unseen,
)
from scheduler.selectors.accrual import Cost
from scheduler.selectors.decisions import Decided
from scheduler.selectors.dispatch import Dispatch, failing
from scheduler.selectors.idleness import Idle
from scheduler.selectors.listing import Asked, Line
from scheduler.selectors.node_asks import NodesAsked
from scheduler.selectors.offers import TAGS
from scheduler.selectors.standing import Standing
from tenants.selectors.prices import Prices

_UNITS = {"count": "", "s": " s", "mib": " MiB"}
PODS_SHOWN = 64
EVENTS_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Event:
    """A line of the timeline. `lasted_s` is how long the state that it began lasted, None if it
    still does or the line began none; `decided` the cycle whose decision it was."""

    at: datetime
    state: str
    kind: str
    text: str
    lasted_s: int | None
    decided: Decided | None = None

    @property
    def title(self) -> str:
        """Words of its own for what is no change of state; a state has its words elsewhere."""
        return "" if self.kind == "state" else self.kind.replace("-", " ").capitalize()


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
    its cluster stays silent; `unseen_pods` is how many it holds though it has ended, unseen."""

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
    unseen_pods: int = 0

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


@dataclass(frozen=True, slots=True)
class PodSetDetail:
    """A pod set as it was asked for. Values of its environment are not shown: they may be
    secrets. `held_count` is how many of its pods hold room, of a set that comes and goes."""

    name: str
    asked: Asked
    image: str
    command: tuple[str, ...]
    env_names: tuple[str, ...]
    held_count: int = 0
    topology: str = ""

    @property
    def command_line(self) -> str:
        return shlex.join(self.command)

    @property
    def memory_gib(self) -> str:
        return f"{self.asked.memory_mib / 1024:.4g}"


@dataclass(frozen=True, slots=True)
class Detail:
    """`cost` is None for those who may not see spend; `dispatch` is there while it fails. `domain`
    is where the newest attempt stands, of work that asks for a topology. `notice_until` is to
    come, else None. `idle` is there while it leaves all its devices unused. `decided` is
    the cycle whose word it is that it waits. `kept` is what stood idle for it before it started,
    in GPU-hours; "" where that is nothing."""

    line: Line
    run_time_limit_s: int | None
    checkpointed_at: datetime | None
    grace_s: int
    notice_s: int
    cluster_loss_requeue_s: int | None
    move_to_better: bool
    notice_until: datetime | None
    retries: Retries
    not_before: datetime | None
    reason_code: str
    reason_numbers: tuple[tuple[str, str], ...]
    clusters: tuple[str, ...]
    pod_sets: tuple[PodSetDetail, ...]
    events: tuple[Event, ...]
    attempts: tuple[AttemptDetail, ...]
    cost: Cost | None
    dispatch: Dispatch | None = None
    standing: tuple[Standing, ...] = ()
    topology: str = ""
    domain: tuple[tuple[str, str], ...] = ()
    idle: Idle | None = None
    decided: Decided | None = None
    kept: str = ""
    asked: tuple[NodesAsked, ...] = ()

    @property
    def lost(self) -> str:
        """The work that all its attempts lost, in GPU-hours; "" where that is none."""
        total = sum(attempt.lost_milli_s for attempt in self.attempts)
        return gpu_hours(total) if total else ""


def detail(*, workload: Workload, prices: Prices | None, at: datetime) -> Detail:
    """Everything the page shows of a workload that the caller may see, in at most 24 queries.

    `prices` None leaves the cost out.
    """
    line = listing.lines(rows=Workload.objects.filter(id=workload.id))[0]
    reason, until = workload.reason or {}, workload.notice_until
    return Detail(
        line=line,
        run_time_limit_s=workload.run_time_limit_s,
        checkpointed_at=workload.checkpointed_at,
        grace_s=workload.grace_s,
        notice_s=workload.notice_s,
        cluster_loss_requeue_s=workload.cluster_loss_requeue_s,
        move_to_better=workload.move_to_better,
        notice_until=until if until is not None and until > at else None,
        retries=workload.retries,
        not_before=workload.not_before,
        reason_code=reason.get("code", "") if line.why else "",
        reason_numbers=_numbers(reason.get("numbers", {})) if line.why else (),
        clusters=tuple(workload.clusters.order_by("name").values_list("name", flat=True)),
        pod_sets=_pod_sets(workload, line.asked),
        events=_events(workload),
        attempts=_attempts(workload),
        cost=None
        if prices is None
        else accrual.cost(workload_id=workload.id, prices=prices, at=at),
        dispatch=failing(workload=workload),
        standing=standing.of_waiting(workload=workload, at=at),
        topology=topology.asked(workload=workload),
        domain=topology.domain(workload=workload),
        idle=idleness.of_running(workload=workload),
        decided=decisions.of_waiting(workload=workload) if line.why else None,
        kept=kept.of(workload),
        asked=node_asks.of_waiting(workload=workload),
    )


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


def _numbers(numbers: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """A reason's numbers as (words, value with its unit), by the words."""
    found = []
    for key, value in numbers.items():
        name, _, suffix = key.rpartition("_")
        if suffix == "milli":
            found.append((name, in_units(int(str(value)))))
        elif suffix in {"count", "s", "mib"}:
            found.append((name, f"{value}{_UNITS[suffix]}"))
        elif suffix == "at":
            found.append((name, moment(int(str(value)))))
        else:
            found.append((key, str(value)))
    return tuple(sorted((words.replace("_", " "), value) for words, value in found))


def _pod_sets(workload: Workload, asked: Sequence[Asked]) -> tuple[PodSetDetail, ...]:
    sets = PodSet.objects.filter(workload=workload).order_by("position")
    held: Counter[UUID] = Counter()
    if any(asks.min_count < asks.count for asks in asked):
        live = Placement.objects.filter(
            workload=workload, attempt__ended_at__isnull=True, released_at__isnull=True
        )
        held.update(live.values_list("pod_set_id", flat=True))
    return tuple(
        PodSetDetail(
            name=one.name,
            asked=asks,
            image=one.image,
            command=(*one.command, *one.args),
            env_names=tuple(sorted(one.env)),
            held_count=held[one.id],
            topology=topology.of_set(pod_set=one),
        )
        for one, asks in zip(sets, asked, strict=True)
    )


def _events(workload: Workload) -> tuple[Event, ...]:
    """The newest, newest first."""
    rows = list(WorkloadEvent.objects.filter(workload=workload).order_by("-id")[:EVENTS_SHOWN])
    found = []
    following: datetime | None = None
    cycles = decisions.of_events(rows)
    for row in rows:
        moved = row.kind == "state"
        lasted = int((following - row.at).total_seconds()) if moved and following else None
        state, decided = row.after or row.before, cycles.get(row.id)
        found.append(Event(row.at, state, row.kind, row.message, lasted, decided))
        if moved:
            following = row.at
    return tuple(found)


def _attempts(workload: Workload) -> tuple[AttemptDetail, ...]:
    """All attempts, newest first; only the newest with its pods."""
    rows = list(Attempt.objects.filter(workload=workload).select_related("cluster"))
    rows.sort(key=lambda row: -row.number)
    newest = rows[0] if rows else None
    pods = _pods(newest) if newest else ()
    count = Placement.objects.filter(attempt=newest).count() if newest else 0
    held: Mapping[int, int] = {}
    if any(row.unseen_since for row in rows):
        held = unseen.held_pods(workload_id=workload.id)
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
            elsewhere_at=None
            if row.ended_at
            else unseen.elsewhere_at(workload=workload, cluster=row.cluster),
            unseen_pods=held.get(row.number, 0),
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
