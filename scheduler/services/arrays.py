"""What users do with arrays: submit and cancel them, each as one."""

from dataclasses import replace
from datetime import datetime

from django.db import transaction

from controlplane.kernel import hints
from controlplane.kernel.errors import Conflict, Invalid
from scheduler.core.lifecycle import State
from scheduler.models import LIVE, Workload, WorkloadArray
from scheduler.services import elements, stops, workloads
from scheduler.services.specs import ArraySpec, WorkloadSpec
from scheduler.services.transition import Step, transition
from scheduler.services.workloads import Checked
from tenants.access import Actor
from tenants.models import Project

MAX_NAME = 100


def submit(
    *, actor: Actor, project: Project, spec: WorkloadSpec, array: ArraySpec, at: datetime
) -> WorkloadArray:
    """Store the array and its elements, all or none. Raises as `check` and `store`."""
    checked = check(actor=actor, project=project, spec=spec, array=array, at=at)
    return store(checked=checked, array=array, at=at)


def check(
    *, actor: Actor, project: Project, spec: WorkloadSpec, array: ArraySpec, at: datetime
) -> Checked:
    """As `workloads.check` of one element, which all the others are like. Raises Invalid as it
    does, and when the names of the elements would be too long."""
    longest = MAX_NAME - len(elements.name("", array.size - 1))
    if len(spec.name) > longest:
        message = f"The elements' names get a number behind it: at most {longest} characters."
        raise Invalid(message, pointer="/0/name")
    return workloads.check(actor=actor, project=project, specs=[spec], array=array, at=at)


def store(*, checked: Checked, array: ArraySpec, at: datetime) -> WorkloadArray:
    """Store the array and all of its elements as PENDING, whose names have their index. Raises as
    `workloads.store`."""
    [spec] = checked.specs
    row = WorkloadArray(
        project=checked.project,
        submitted_by=checked.actor.user,
        name=spec.name,
        size=array.size,
        most_at_once=array.most_at_once,
        submitted_at=at,
    )
    first = replace(spec, name=elements.name(spec.name, 0))
    workloads.store(checked=replace(checked, specs=[first]), array=row, at=at)
    return row


def cancel(*, actor: Actor, array: WorkloadArray, at: datetime) -> WorkloadArray:
    """Stop all of it: what waits at once, the rest once its pods are seen gone.

    What is on its way out already goes on. Raises NotAllowed, or Conflict when all has ended.
    """
    workloads.authorize(actor, array, "cancel")
    with transaction.atomic():
        live = Workload.objects.filter(LIVE, array=array)
        found = list(live.order_by("id").select_for_update(no_key=True).values_list("id", "state"))
        if not found:
            raise Conflict(f"{array.name} has ended already.")
        steps = [
            Step(
                id,
                array.project_id,
                State(state),
                State.CANCELLED if state == State.PENDING else State.CANCELLING,
                f"cancelled with its array by {actor.name}",
            )
            for id, state in found
            if state != State.CANCELLING
        ]
        transition(steps, actor=actor.label, actor_name=actor.name, at=at)
        stops.stop(
            workload_ids=[step.workload_id for step in steps if step.after == State.CANCELLING]
        )
        hints.hint(hints.CYCLE)
    return array
