"""What work waits for besides capacity: whether that can be, and its rows. What is settled of it,
and what follows, is `loop/dependencies`."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from uuid import UUID

from controlplane.kernel.errors import Conflict, Problem
from scheduler.core.lifecycle import TERMINAL, State
from scheduler.core.snapshot import UnmetView
from scheduler.models import Dependency, DependencyKind, Workload, WorkloadArray
from scheduler.services.specs import DependencySpec, WorkloadSpec
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


def problems(*, actor: Actor, specs: Sequence[WorkloadSpec]) -> list[Problem]:
    """What cannot be waited for, by its pointer, which begins with the spec's index: it is not
    known to the actor, or has ended in another way. No queries where nobody waits."""
    named = [one for spec in specs for one in spec.depends_on]
    known = _states(actor, named) if named else {}
    return [
        problem
        for nth, spec in enumerate(specs)
        for index, one in enumerate(spec.depends_on)
        for problem in _problem(f"/{nth}/depends_on/{index}", one, known.get(one.on))
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


def _problem(pointer: str, asked: DependencySpec, states: set[str] | None) -> Iterator[Problem]:
    what = "array" if asked.is_array else "workload"
    if states is None:
        message = f"There is no {what} {asked.on} that you see."
        yield Problem(pointer=f"{pointer}/{what}", code=f"unknown-{what}", message=message)
    elif came_true(kind=asked.kind, states=states) is False:
        told = " and ".join(sorted(states & TERMINAL))
        message = (
            f"The {what} {asked.on} is {told} already, so {asked.kind} never comes true; after-end"
            " would."
        )
        yield Problem(pointer=f"{pointer}/kind", code="never-met", message=message)


def unmet(*, actor: Actor, spec: WorkloadSpec) -> UnmetView | None:
    """What it would wait for if it were submitted now; `problems` found nothing against it."""
    known = _states(actor, spec.depends_on) if spec.depends_on else {}
    found = sorted(
        str(one.on)
        for one in spec.depends_on
        if came_true(kind=one.kind, states=known.get(one.on, set())) is None
    )
    return UnmetView(len(found), found[0]) if found else None


def store(*, of: Iterable[tuple[Workload | WorkloadArray, WorkloadSpec]]) -> None:
    """The rows of what each waits for. Raises Conflict when an id is not greater than one that it
    names."""
    found = []
    for work, spec in of:
        for one in spec.depends_on:
            if one.on >= work.id:
                raise Conflict(
                    f"{one.on} was submitted by a clock that is ahead of this one; try again."
                )
            found.append(
                Dependency(
                    workload=work if isinstance(work, Workload) else None,
                    array=work if isinstance(work, WorkloadArray) else None,
                    on_workload_id=None if one.is_array else one.on,
                    on_array_id=one.on if one.is_array else None,
                    kind=one.kind,
                )
            )
    Dependency.objects.bulk_create(found)
