"""What work waits for besides capacity: whether that can be, and its rows. What is settled of it,
and what follows, is `loop/preparing/dependencies`."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from uuid import UUID

from controlplane.kernel import bulk
from controlplane.kernel.errors import Conflict, Problem
from controlplane.kernel.ids import uuid7s
from scheduler.core.lifecycle import TERMINAL, State
from scheduler.core.waits import UnmetView
from scheduler.models import Dependency, DependencyKind, Workload, WorkloadArray
from scheduler.services.specs import ArraySpec, DependencySpec, WorkloadSpec
from tenants import access
from tenants.access import Actor

UNSUCCESSFUL = TERMINAL - {State.SUCCEEDED}


def came_true(*, kind: str, states: Collection[str]) -> bool | None:
    """Whether work in these states, of a workload or of all of an array, has ended as `kind` says;
    None while that is open."""
    ended, failed = TERMINAL.issuperset(states), not UNSUCCESSFUL.isdisjoint(states)
    if kind == DependencyKind.AFTER_SUCCESS and failed:
        return False
    if not ended:
        return None
    return failed if kind == DependencyKind.AFTER_FAILURE else True


def problems(
    *, actor: Actor, specs: Sequence[WorkloadSpec], array: ArraySpec | None
) -> list[Problem]:
    """What cannot be waited for, by its pointer, which begins with the spec's index: it is not
    known to the actor, has ended in another way, or has no element for each of the `array`, which
    the one spec is of. No queries where nobody waits."""
    named = [one for spec in specs for one in spec.depends_on]
    known = _states(actor, named) if named else {}
    return [
        problem
        for nth, spec in enumerate(specs)
        for index, one in enumerate(spec.depends_on)
        for problem in _problem(f"/{nth}/depends_on/{index}", one, known.get(one.on), array)
    ]


def _states(actor: Actor, named: Sequence[DependencySpec]) -> dict[UUID, set[str]]:
    """By workload or array that the actor sees: the states of it."""
    workloads = Workload.objects.filter(id__in={one.on for one in named if not one.is_array})
    seen = access.for_actor(workloads, actor=actor).values_list("id", "state")
    found = {id: {state} for id, state in seen}
    arrays = WorkloadArray.objects.filter(id__in={one.on for one in named if one.is_array})
    elements = Workload.objects.filter(array__in=access.for_actor(arrays, actor=actor))
    for array, state in elements.order_by().values_list("array_id", "state").distinct():
        if array is not None:
            found.setdefault(array, set()).add(state)
    return found


def _problem(
    pointer: str, asked: DependencySpec, states: set[str] | None, array: ArraySpec | None
) -> Iterator[Problem]:
    what = "array" if asked.is_array else "workload"
    if states is None:
        message = f"There is no {what} {asked.on} that you see."
        yield Problem(pointer=f"{pointer}/{what}", code=f"unknown-{what}", message=message)
    elif asked.by_index:
        yield from _unmatched(pointer, asked, array)
    elif came_true(kind=asked.kind, states=states) is False:
        told = " and ".join(sorted(states & TERMINAL))
        message = (
            f"The {what} {asked.on} is {told} already, so {asked.kind} never comes true; after-end"
            " would."
        )
        yield Problem(pointer=f"{pointer}/kind", code="never-met", message=message)


def _unmatched(pointer: str, asked: DependencySpec, array: ArraySpec | None) -> Iterator[Problem]:
    if array is None:
        message = "Only an array waits so, element by element; this is one workload."
        yield Problem(pointer=f"{pointer}/by_index", code="invalid", message=message)
        return
    size = WorkloadArray.objects.values_list("size", flat=True).get(id=asked.on)
    if size < array.size:
        message = (
            f"The array {asked.on} has {size} elements and this one {array.size}: each waits for"
            " the one of its own index."
        )
        yield Problem(pointer=f"{pointer}/array", code="unmatched", message=message)


def unmet(*, actor: Actor, spec: WorkloadSpec) -> UnmetView | None:
    """What it, or the first element of its array, would wait for if it were submitted now;
    `problems` found nothing against it."""
    known = _states(actor, spec.depends_on) if spec.depends_on else {}
    found: list[str] = []
    in_vain: list[str] = []
    for one in spec.depends_on:
        states = known.get(one.on, set())
        if one.by_index:
            states = {Workload.objects.get(array_id=one.on, array_index=0).state}
        true = came_true(kind=one.kind, states=states)
        if not true:
            (found if true is None else in_vain).append(str(one.on))
    if not found and not in_vain:
        return None
    first = min(in_vain or found)
    return UnmetView(len(found) + len(in_vain), first, len(in_vain))


def store(*, of: Iterable[tuple[Workload | WorkloadArray, WorkloadSpec]]) -> None:
    """The rows of what each waits for as a whole. Raises Conflict when an id is not greater than
    one that it names."""
    found = []
    for work, spec in of:
        for one in spec.depends_on:
            if one.by_index:
                continue
            _check_order(one.on, work.id)
            found.append(
                Dependency(
                    workload=work if isinstance(work, Workload) else None,
                    array=work if isinstance(work, WorkloadArray) else None,
                    on_workload_id=None if one.is_array else one.on,
                    on_array_id=one.on if one.is_array else None,
                    kind=one.kind,
                    on_unmet=one.on_unmet,
                )
            )
    Dependency.objects.bulk_create(found)


def store_by_index(*, elements: Sequence[UUID], spec: WorkloadSpec) -> None:
    """The rows of what each element of an array waits for by its index; `elements` in the order of
    theirs. Raises as `store`."""
    for one in spec.depends_on:
        if one.by_index:
            others = Workload.objects.filter(array_id=one.on, array_index__lt=len(elements))
            ids = list(others.order_by("array_index").values_list("id", flat=True))
            _check_order(max(ids), min(elements))
            bulk.insert(
                Dependency,
                id=uuid7s(len(ids)),
                workload_id=list(elements),
                on_workload_id=ids,
                kind=one.kind,
                on_unmet=one.on_unmet,
            )


def _check_order(earlier: UUID, later: UUID) -> None:
    if earlier >= later:
        raise Conflict(f"{earlier} was submitted by a clock that is ahead of this one; try again.")
