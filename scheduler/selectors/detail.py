"""One workload, whole: its timeline, why it waits, where it runs, what it cost.

What must not live here: permission to act on it; the page asks `tenants.access`.
"""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from scheduler.core.failures import Retries
from scheduler.core.held.losses import gpu_hours
from scheduler.core.reasons import in_units
from scheduler.core.wording import moment
from scheduler.models import (
    Placement,
    PodSet,
    Workload,
    WorkloadEvent,
)
from scheduler.selectors import (
    accrual,
    decisions,
    idleness,
    kept,
    listing,
    node_asks,
    standing,
    topology,
)
from scheduler.selectors.accrual import Cost
from scheduler.selectors.attempts import AttemptDetail, attempts_of
from scheduler.selectors.decisions import Decided
from scheduler.selectors.dispatch import Dispatch, failing
from scheduler.selectors.idleness import Idle
from scheduler.selectors.listing import Asked, Line
from scheduler.selectors.node_asks import NodesAsked
from scheduler.selectors.standing import Standing
from tenants.selectors.prices import Prices

_UNITS = {"count": "", "s": " s", "mib": " MiB"}
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
        attempts=attempts_of(workload),
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
        asked=node_asks.of_waiting(workload=workload, at=at),
    )


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
