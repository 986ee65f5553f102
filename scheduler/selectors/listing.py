"""Lists of workloads for pages: what an actor sees, newest first, a page at a time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import QuerySet, Window
from django.db.models.functions import Coalesce, RowNumber

from scheduler.core.lifecycle import HOLDING, TERMINAL, State
from scheduler.core.reasons import in_units
from scheduler.core.simulating.estimate import HORIZON_S, Basis
from scheduler.core.units import ONE_MILLI
from scheduler.models import LIVE, Attempt, Estimate, PodSet, PodSetFlavor, Workload, WorkloadArray
from scheduler.selectors import arrays
from scheduler.selectors.arrays import Sum
from tenants import access
from tenants.access import Actor

PAGE = 25
TIMES = "\N{MULTIPLICATION SIGN}"
GROUPS: Mapping[str, frozenset[State]] = {
    "waiting": frozenset({State.PENDING}),
    "active": HOLDING,
    "ended": TERMINAL,
}
"""What a list may be narrowed to, besides one exact state."""
BASES: Mapping[str, str] = {
    Basis.PLAN: "on the plan made now",
    Basis.HISTORY: "on how long finished work of the projects ran",
    Basis.NODE: "on how long the nodes that were asked for take to come",
    Basis.LIMIT: "partly on declared run-time limits",
}
"""What an estimate rests on, in words."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One pod set in a line. `flavors` are names in the order of acceptance, those that have what
    is wished behind the others; `as_preferred`, what the project prefers; `any_order`, in none."""

    count: int
    min_count: int
    gpu_count: int
    gpu_milli: int
    cpu_milli: int
    memory_mib: int
    flavors: tuple[str, ...]
    least_memory_mib: int | None = None
    vendors: tuple[str, ...] = ()
    gpu_memory_mib: int | None = None
    as_preferred: bool = False
    any_order: bool = False

    @property
    def wish(self) -> str:
        """What it accepts besides named flavors, in words; "" for nothing."""
        if self.least_memory_mib is None:
            return ""
        of = f" of {' or '.join(self.vendors)}" if self.vendors else ""
        least = f" with {self.least_memory_mib} MiB or more" if self.least_memory_mib else ""
        return f"any whole GPU{of}{least}"

    @property
    def each(self) -> str:
        """What one pod asks for of its first flavor: "2 h100-80gb", "0.25 a10-share", "8 cpu",
        "10 GiB of a10-share"."""
        flavor = self.flavors[0] if self.flavors else "GPU"
        if self.gpu_memory_mib is not None:
            return f"{self.gpu_memory_mib / 1024:.3g} GiB of {flavor}"
        milli = self.gpu_count * self.gpu_milli or self.cpu_milli
        return flavor if milli == ONE_MILLI and self.gpu_count else f"{in_units(milli)} {flavor}"

    @property
    def text(self) -> str:
        """The same for all pods, with their number in front."""
        return f"{self.count:,} {TIMES} {self.each}" if self.count > 1 else self.each


@dataclass(frozen=True, slots=True)
class Forecast:
    """The newest estimate of a start. Both seconds None: it was tried and had no basis."""

    as_of: datetime
    p50_s: int | None
    p90_s: int | None
    basis: str
    passes: int

    @property
    def bound_s(self) -> int | None:
        """p90_s, or the horizon of the simulation where nine in ten starts lie beyond it."""
        return HORIZON_S if self.p90_s is None and self.p50_s is not None else self.p90_s

    @property
    def basis_text(self) -> str:
        return BASES.get(self.basis, f"on {self.basis}")


@dataclass(frozen=True, slots=True)
class Line:
    """A workload in a list. `why` and `forecast` are set while it waits, `cluster` is where it ran
    last, or runs, when it does not wait. `array` is the one that it is an element of; `place` that
    in its queue, where queues are listed."""

    id: UUID
    name: str
    state: str
    project: str
    project_id: UUID
    tenant: str
    submitted_by: str
    priority_class: str
    preemptible: bool
    submitted_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    why: str
    why_at: datetime | None
    asked: tuple[Asked, ...]
    cluster: str
    forecast: Forecast | None
    array: Sum | None = None
    place: int | None = None

    @property
    def ran(self) -> timedelta | None:
        """From start to end, None for what has not done both."""
        return self.ended_at - self.started_at if self.started_at and self.ended_at else None

    @property
    def asks(self) -> str:
        return ", ".join(one.text for one in self.asked)


@dataclass(frozen=True, slots=True)
class Page:
    """`newer` and `older` are the ids to go on from, None at the ends. `arrived` counts rows that
    came after the first one shown."""

    lines: tuple[Line, ...]
    newer: UUID | None
    older: UUID | None
    arrived: int = 0


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What to list. `state` is "", a group or a state; `mine` keeps the actor's own."""

    state: str = ""
    project: UUID | None = None
    mine: bool = False


def narrowed(*, actor: Actor, by: Narrowed) -> QuerySet[Workload]:
    """The workloads the actor sees that match; of each array the first element stands for all."""
    rows = access.for_actor(Workload.objects.all(), actor=actor)
    states = GROUPS.get(by.state, frozenset({by.state})) if by.state else None
    rows = arrays.listed(rows, states=states)
    if by.project is not None:
        rows = rows.filter(project_id=by.project)
    if by.mine:
        rows = rows.filter(submitted_by=actor.user)
    return rows


def page(
    *,
    actor: Actor,
    by: Narrowed,
    before: UUID | None = None,
    after: UUID | None = None,
    first: UUID | None = None,
    limit: int = PAGE,
) -> Page:
    """One page, newest first: the rows older than `before`, or newer than `after`.

    `first` is the newest row of a page that is on a screen already: later ones are only counted.
    """
    rows = narrowed(actor=actor, by=by)
    shown = rows.filter(id__lte=first) if first else rows
    if after is not None:
        found = list(
            shown.filter(id__gt=after).order_by("id").values_list("id", flat=True)[: limit + 1]
        )
        more_newer, more_older = len(found) > limit, True
        ids = found[:limit][::-1]
    else:
        older = shown.filter(id__lt=before) if before else shown
        found = list(older.order_by("-id").values_list("id", flat=True)[: limit + 1])
        more_newer, more_older = before is not None, len(found) > limit
        ids = found[:limit]
    return Page(
        lines=lines(rows=rows.filter(id__in=ids).order_by("-id")),
        newer=ids[0] if ids and more_newer else None,
        older=ids[-1] if ids and more_older else None,
        arrived=rows.filter(id__gt=first).count() if first else 0,
    )


@dataclass(frozen=True, slots=True)
class Elements:
    """Some of an array, by index; `next` is the index to go on from, None at the end."""

    lines: tuple[Line, ...]
    next: int | None


def elements(*, array: WorkloadArray, state: str, start: int, limit: int = PAGE) -> Elements:
    """Those from `start` on, "" for any state, of an array that the caller may see."""
    rows = Workload.objects.filter(array=array, array_index__gte=start).order_by("array_index")
    if state:
        rows = rows.filter(state=state)
    found = list(rows.values_list("id", "array_index")[: limit + 1])
    shown = Workload.objects.filter(id__in=[id for id, _ in found[:limit]])
    return Elements(
        lines=lines(rows=shown.order_by("array_index")),
        next=found[limit][1] if len(found) > limit else None,
    )


def lines(*, rows: QuerySet[Workload]) -> tuple[Line, ...]:
    """Those workloads, in their order. Five queries, however many rows; one more for arrays."""
    found = list(rows.select_related("project__tenant", "submitted_by"))
    ids = [workload.id for workload in found]
    asks = asked(ids)
    where = places([w.id for w in found if w.state != State.PENDING])
    expected = forecasts([w.id for w in found if w.state == State.PENDING])
    whole = arrays.sums(w.array_id for w in found)
    return tuple(
        Line(
            id=w.id,
            name=w.name,
            state=w.state,
            project=w.project.name,
            project_id=w.project_id,
            tenant=w.project.tenant.name,
            submitted_by=w.submitted_by.get_username(),
            priority_class=w.priority_class,
            preemptible=w.preemptible,
            submitted_at=w.submitted_at,
            started_at=w.started_at,
            ended_at=w.ended_at,
            why=(w.reason or {}).get("text", "") if w.state == State.PENDING else "",
            why_at=w.reason_at,
            asked=asks.get(w.id, ()),
            cluster=where.get(w.id, ""),
            forecast=expected.get(w.id),
            array=whole.get(w.array_id) if w.array_id else None,
        )
        for w in found
    )


def asked(workloads: Iterable[UUID]) -> Mapping[UUID, tuple[Asked, ...]]:
    """The pod sets of each workload, in order. Two queries."""
    sets = list(PodSet.objects.filter(workload_id__in=list(workloads)).order_by("position"))
    names: dict[UUID, list[str]] = {}
    for pod_set, name in (
        PodSetFlavor.objects.filter(pod_set_id__in=[s.id for s in sets])
        .order_by("position")
        .values_list("pod_set_id", "flavor__name")
    ):
        names.setdefault(pod_set, []).append(name)
    found: dict[UUID, list[Asked]] = {}
    for one in sets:
        found.setdefault(one.workload_id, []).append(
            Asked(
                count=one.count,
                min_count=one.min_count,
                gpu_count=one.gpu_count,
                gpu_milli=one.gpu_milli,
                cpu_milli=one.cpu_milli,
                memory_mib=one.memory_mib,
                flavors=tuple(names.get(one.id, ())),
                least_memory_mib=one.least_memory_mib,
                vendors=tuple(one.vendors),
                gpu_memory_mib=one.gpu_memory_mib,
                as_preferred=one.as_preferred,
                any_order=one.any_order,
            )
        )
    return {workload: tuple(listed) for workload, listed in found.items()}


def places(workloads: Sequence[UUID]) -> Mapping[UUID, str]:
    """Workload → the cluster of its newest attempt."""
    if not workloads:
        return {}
    return dict(
        Attempt.objects.filter(workload_id__in=workloads)
        .order_by("workload_id", "-number")
        .distinct("workload_id")
        .values_list("workload_id", "cluster__name")
    )


def forecasts(workloads: Sequence[UUID]) -> Mapping[UUID, Forecast]:
    """Workload → its newest estimate, where there is one."""
    if not workloads:
        return {}
    newest = (
        Estimate.objects.filter(workload_id__in=workloads)
        .order_by("workload_id", "-as_of")
        .distinct("workload_id")
    )
    return {e.workload_id: Forecast(e.as_of, e.p50_s, e.p90_s, e.basis, e.passes) for e in newest}


def running_and_waiting(*, actor: Actor, limit: int) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
    """(what holds capacity, what waits): the newest of each, at most `limit`. Of an array the
    first element that waits stands for all that do. Eight queries, one more for arrays."""
    rows = access.for_actor(Workload.objects.all(), actor=actor)
    newest = rows.order_by("-id").values_list("id", flat=True)
    nth = Window(RowNumber(), partition_by=Coalesce("array_id", "id"), order_by="id")
    ids = [
        *newest.filter(LIVE, state__in=sorted(HOLDING))[:limit],
        *newest.filter(LIVE, state=State.PENDING).annotate(nth=nth).filter(nth=1)[:limit],
    ]
    found = lines(rows=Workload.objects.filter(id__in=ids).order_by("-id"))
    waiting = tuple(line for line in found if line.state == State.PENDING)
    return tuple(line for line in found if line.state != State.PENDING), waiting
