"""Arrays as one: counts by state, the one row that stands for each in a list, and what is waited
for."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Exists, F, Max, Min, OuterRef, Q, QuerySet

from scheduler.core.lifecycle import State
from scheduler.models import Dependency, DependencyKind, Gate, Workload, WorkloadArray
from scheduler.selectors import gates
from tenants import access
from tenants.access import Actor


@dataclass(frozen=True, slots=True)
class Sum:
    """`states`: how many elements are in each, in the order of a life; none is left out for 0."""

    id: UUID
    name: str
    size: int
    most_at_once: int | None
    states: Mapping[str, int]

    @property
    def present(self) -> tuple[tuple[str, int], ...]:
        """The states that some of it is in, and how many."""
        return tuple((state, count) for state, count in self.states.items() if count)


def sums(arrays: Iterable[UUID | None]) -> Mapping[UUID, Sum]:
    """By array; None among the ids is passed over. One query, none for no array."""
    wanted = {array for array in arrays if array is not None}
    if not wanted:
        return {}
    rows = (
        WorkloadArray.objects.filter(id__in=wanted)
        .values_list("id", "name", "size", "most_at_once", "elements__state")
        .annotate(count=Count("elements"))
        .order_by("id")
    )
    counts: dict[UUID, dict[str, int]] = {}
    facts: dict[UUID, tuple[str, int, int | None]] = {}
    for id, name, size, most, state, count in rows:
        facts[id] = name, size, most
        counts.setdefault(id, {})[state] = count
    return {
        id: Sum(id, *of, {state.value: counts[id].get(state, 0) for state in State})
        for id, of in facts.items()
    }


def listed(
    rows: QuerySet[Workload], *, states: Collection[str] | None = None
) -> QuerySet[Workload]:
    """Of each array its first element alone, and that if any of it is in one of `states`, as
    others have to be."""
    first = Q(array__isnull=True) | Q(array_index=0)
    if states is None:
        return rows.filter(first)
    like = Workload.objects.filter(array=OuterRef("array"), state__in=sorted(states))
    return rows.filter(first).filter(
        Q(array__isnull=True, state__in=sorted(states)) | Exists(like)
    )


def array(*, actor: Actor, id: UUID) -> WorkloadArray:
    """Raises NotFound, the same for foreign and missing ids."""
    rows = WorkloadArray.objects.select_related("project__tenant", "submitted_by")
    return access.get_or_404(rows, actor=actor, id=id)


AFTER_TEXTS: Mapping[str, str] = {
    DependencyKind.AFTER_SUCCESS: "After the success of",
    DependencyKind.AFTER_END: "After the end of",
    DependencyKind.AFTER_FAILURE: "After the failure of",
}


@dataclass(frozen=True, slots=True)
class Need:
    """What is waited for: `name` is "" for who does not see it. `by_index`: by each element of an
    array for that of its index; then `settled_at` is None while one waits."""

    workload: UUID | None
    array: UUID | None
    kind: str
    on_unmet: str
    unmet_at: datetime | None
    settled_at: datetime | None
    name: str
    by_index: bool = False

    @property
    def id(self) -> UUID | None:
        return self.workload or self.array

    @property
    def text(self) -> str:
        return f"{AFTER_TEXTS[self.kind]}{' the same index of' if self.by_index else ''}"

    @property
    def in_vain(self) -> bool:
        """Whether it holds who waits, who might be released."""
        return self.unmet_at is not None and self.settled_at is None


@dataclass(frozen=True, slots=True)
class Ties:
    """What a workload has to do with others: its array, what it, or its array, waits for, and
    whose word."""

    array: Sum | None
    needs: tuple[Need, ...]
    gates: tuple[Gate, ...]


def ties(*, actor: Actor, workload: Workload) -> Ties:
    """Two queries; one more for an array, and two for the names of what it waits for."""
    of = Q(workload=workload) | Q(array__isnull=False, array=workload.array_id)
    rows = list(Dependency.objects.filter(of).order_by("id"))
    array = sums([workload.array_id]).get(workload.array_id) if workload.array_id else None
    return Ties(array, _named(actor, rows), tuple(gates.of_workload(workload)))


def needs_of_array(*, actor: Actor, array: WorkloadArray) -> tuple[Need, ...]:
    """What all of it waits or waited for, then what its elements do by their index."""
    whole = _named(actor, list(Dependency.objects.filter(array=array).order_by("id")))
    return whole + _by_index(actor, array)


def _by_index(actor: Actor, array: WorkloadArray) -> tuple[Need, ...]:
    rows = (
        Dependency.objects.filter(workload__array=array)
        .values("kind", "on_unmet", on=F("on_workload__array_id"))
        .annotate(
            open=Count("id", filter=Q(settled_at__isnull=True)),
            seen=Max("settled_at"),
            unmet=Min("unmet_at", filter=Q(settled_at__isnull=True)),
        )
        .order_by("on", "kind")
    )
    found = list(rows)
    named = WorkloadArray.objects.filter(id__in={row["on"] for row in found})
    names = dict(access.for_actor(named, actor=actor).values_list("id", "name")) if found else {}
    return tuple(
        Need(
            workload=None,
            array=row["on"],
            kind=row["kind"],
            on_unmet=row["on_unmet"],
            unmet_at=row["unmet"],
            settled_at=None if row["open"] else row["seen"],
            name=names.get(row["on"], ""),
            by_index=True,
        )
        for row in found
    )


def _named(actor: Actor, rows: list[Dependency]) -> tuple[Need, ...]:
    if not rows:
        return ()
    workloads = Workload.objects.filter(id__in=[row.on_workload_id for row in rows])
    arrays = WorkloadArray.objects.filter(id__in=[row.on_array_id for row in rows])
    names: dict[UUID | None, str] = {
        **dict(access.for_actor(workloads, actor=actor).values_list("id", "name")),
        **dict(access.for_actor(arrays, actor=actor).values_list("id", "name")),
    }
    return tuple(
        Need(
            workload=row.on_workload_id,
            array=row.on_array_id,
            kind=row.kind,
            on_unmet=row.on_unmet,
            unmet_at=row.unmet_at,
            settled_at=row.settled_at,
            name=names.get(row.on_workload_id or row.on_array_id, ""),
        )
        for row in rows
    )
