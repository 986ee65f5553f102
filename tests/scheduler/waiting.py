"""Work that waits for other work, and the ends of that."""

from dataclasses import replace

from scheduler.core.lifecycle import State
from scheduler.models import (
    Workload,
    WorkloadArray,
)
from scheduler.services import arrays, workloads
from scheduler.services.specs import AFTER, ArraySpec, DependencySpec
from scheduler.services.transition import Step, transition
from tests.factories import AT
from tests.flows.world import spec
from tests.scheduler.stage import LATER, Stage

SUCCESS, END, FAILURE = AFTER


def after(
    stage: Stage, *needed: Workload | WorkloadArray, kind: str = SUCCESS, name: str = "later"
) -> Workload:
    asked = replace(spec(stage.flavor.name, name=name), depends_on=named(*needed, kind=kind))
    [made] = workloads.submit(actor=stage.actor, project=stage.project, specs=[asked], at=AT)
    return made


def named(*needed: Workload | WorkloadArray, kind: str = SUCCESS) -> tuple[DependencySpec, ...]:
    return tuple(DependencySpec(kind, n.id, isinstance(n, WorkloadArray)) for n in needed)


def array_of(
    stage: Stage, size: int, *needed: Workload | WorkloadArray, name: str = "sweep"
) -> WorkloadArray:
    array = ArraySpec(size)
    asked = replace(spec(stage.flavor.name, name=name), depends_on=named(*needed))
    checked = arrays.check(
        actor=stage.actor, project=stage.project, spec=asked, array=array, at=AT
    )
    return arrays.store(checked=checked, array=array, at=AT)


def end(workload: Workload, *states: State) -> None:
    """Move it so, from where it is."""
    for state in states:
        workload.refresh_from_db()
        step = Step(workload.id, workload.project_id, State(workload.state), state)
        assert transition([step], actor="system:test", actor_name="test", at=LATER)


def state(of: Workload) -> str:
    of.refresh_from_db()
    return of.state


RUN = State.ADMITTED, State.RUNNING
