"""What users do with workloads: submit and cancel. Each is one transaction with its audit rows;
whether work could start is found out before it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Value
from django.db.models.functions import Greatest

from controlplane.audit.services import Entry
from controlplane.kernel import hints, statements
from controlplane.kernel.crash import crash
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed, Problem
from scheduler.core.lifecycle import TERMINAL, State
from scheduler.core.snapshot import ClusterView, FlavorKind, FlavorView
from scheduler.models import Workload, WorkloadArray
from scheduler.selectors import fleet
from scheduler.services import (
    admissibility,
    dependencies,
    elements,
    gates,
    levels,
    policies,
    stops,
    storing,
    submit_rate,
    wishes,
)
from scheduler.services.specs import MAX_PENDING, ArraySpec, PodSetSpec, WorkloadSpec
from scheduler.services.transition import Step, transition
from tenants import access, policy
from tenants.access import Action, Actor
from tenants.models import Project
from tenants.policy import Said
from tenants.selectors import policies as policy_of
from tenants.services import places, trail


class QueueFull(Invalid):
    default_code = "queue-full"


@dataclass(frozen=True, slots=True)
class Checked:
    """Specs that `actor` may submit and that could start, with what their names stand for, and
    with what has what they wish, or is preferred; and by which policies."""

    actor: Actor
    project: Project
    specs: Sequence[WorkloadSpec]
    flavors: Mapping[str, FlavorView]
    clusters: Mapping[str, ClusterView]
    chain: Sequence[Said]


def submit(
    *, actor: Actor, project: Project, specs: Sequence[WorkloadSpec], at: datetime
) -> list[Workload]:
    """Store the workloads as PENDING, all or none, in the order given.

    Raises as `check` and `store`.
    """
    return store(checked=check(actor=actor, project=project, specs=specs, at=at), at=at)


def check(
    *,
    actor: Actor,
    project: Project,
    specs: Sequence[WorkloadSpec],
    array: ArraySpec | None = None,
    at: datetime,
) -> Checked:
    """Plan each spec in an idle fleet, which may take a while: no transaction should be open.
    With an `array` there is one spec, of an element.

    Raises NotFound or NotAllowed for the project, Invalid (pointers begin with the spec's index)
    when a flavor, cluster or what it shall wait for is unknown, a policy refuses it, or it could
    never start.
    """
    access.authorize(actor, Action.SUBMIT, project=project)
    said = wishes.widened(project=project, specs=specs, at=at)
    chain = policy_of.of_project(project)
    told = policy.defaults(chain)
    specs = [policies.with_defaults(told, spec) for spec in said]
    flavors = {flavor.name: flavor for flavor in fleet.flavors()}
    clusters = {cluster.name: cluster for cluster in fleet.clusters()}
    problems = [
        problem
        for index, spec in enumerate(specs)
        for problem in _unknown_names(f"/{index}", spec, flavors, clusters)
    ]
    problems += wishes.problems(project=project, specs=specs)
    problems += dependencies.problems(actor=actor, specs=specs, array=array)
    problems += gates.problems(project=project, specs=specs)
    if not problems:
        problems = policies.problems(chain, said=said, specs=specs, flavors=flavors)
    if not problems:
        problems = admissibility.problems(
            project=project, specs=specs, flavors=flavors, clusters=clusters, at=at
        )
    if problems:
        raise Invalid(problems[0].message, code=problems[0].code, problems=tuple(problems))
    return Checked(actor, project, specs, flavors, clusters, chain)


def store(*, checked: Checked, at: datetime, array: WorkloadArray | None = None) -> list[Workload]:
    """The second half of `submit`. With an `array`, which is new, there is one spec, of its first
    element; the others are stored like it and not in the answer.

    Raises QueueFull when too many wait in the project, of all or of its submitter, RateReached
    when too many were submitted in the last minute, and Conflict when the clock of what it shall
    wait for goes before this one's, or other policies hold by now than it was checked by.
    """
    actor, project = checked.actor, checked.project
    with transaction.atomic():
        [project] = statements.read(Project, _LOCKED, [project.id])
        _check_rules(checked, project)
        submit_rate.check(project=project, actor=actor, count=len(checked.specs), at=at)
        _check_room(actor, project, len(checked.specs) if array is None else array.size)
        if array is not None:
            array.save(force_insert=True)
        workloads = storing.insert(
            actor, project, checked.specs, checked.flavors, checked.clusters, at, array
        )
        works: Sequence[Workload | WorkloadArray] = workloads if array is None else [array]
        submitted = list(zip(works, checked.specs, strict=True))
        dependencies.store(of=submitted)
        gates.store(of=submitted, project=project, at=at)
        stored = [(workload.id, workload.name) for workload in workloads]
        if array is not None:
            stored += elements.copy(first=workloads[0], array=array)
            dependencies.store_by_index(elements=[id for id, _ in stored], spec=checked.specs[0])
        trail.record(
            *(
                Entry(
                    action="workload.submit",
                    target_type="workload",
                    target_id=id,
                    tenant_id=project.tenant_id,
                    project_id=project.id,
                    after={"name": name, "state": State.PENDING.value},
                )
                for id, name in stored
            ),
            actor=actor,
            at=at,
        )
        crash("A1")
        # After the outermost commit: a keyed request has a transaction around this one.
        transaction.on_commit(lambda: crash("A3"))
        hints.hint(hints.CYCLE)
        transaction.on_commit(lambda: crash("A2"))
    return workloads


_LOCKED = f"id = %s AND {places.TREE_STAYS} FOR NO KEY UPDATE"


def _check_rules(checked: Checked, project: Project) -> None:
    """The caller holds the project's row and the tree, so that nobody changes them before it is
    stored. One query. Raises Conflict."""
    if project.tenant_id != checked.project.tenant_id:
        raise Conflict(f"{project.name} was moved meanwhile, to other rules: submit it again.")
    chain = policy_of.of_project(project)
    if [said.rules for said in chain] != [said.rules for said in checked.chain]:
        raise Conflict(
            f"What is permitted and wanted in {project.name} was changed meanwhile: submit it"
            " again, to be checked by that."
        )


_PENDING = """
SELECT count(*) FROM scheduler_workload
WHERE ended_at IS NULL AND state = 'PENDING' AND project_id = %s
"""


def _check_room(actor: Actor, project: Project, count: int) -> None:
    """The caller holds the project's row, so that who is next counts right."""
    most = min(project.max_pending or MAX_PENDING, MAX_PENDING)
    [(waiting,)] = fleet.rows(_PENDING, [project.id])
    _check_cap(project.name, waiting, count, most)
    if project.user_max_pending is not None:
        [(own,)] = fleet.rows(f"{_PENDING} AND submitted_by_id = %s", [project.id, actor.user.id])
        _check_cap(f"{actor.name} in {project.name}", own, count, project.user_max_pending)


def _check_cap(whose: str, waiting: int, count: int, limit: int) -> None:
    if waiting + count > limit:
        raise QueueFull(
            f"{whose} has {waiting} pending workloads; with {count} more it would "
            f"pass the limit of {limit}."
        )


def _unknown_names(
    root: str,
    spec: WorkloadSpec,
    flavors: Mapping[str, FlavorView],
    clusters: Mapping[str, ClusterView],
) -> list[Problem]:
    problems = levels.problems(root, spec)
    for index, name in enumerate(spec.clusters):
        if name not in clusters:
            problems.append(
                Problem(
                    pointer=f"{root}/clusters/{index}",
                    code="unknown-cluster",
                    message=f"There is no cluster {name!r}; known: {', '.join(sorted(clusters))}.",
                )
            )
    for position, pod_set in enumerate(spec.pod_sets):
        for index, name in enumerate(pod_set.flavors):
            problem = _flavor_problem(pod_set, flavors.get(name), name, flavors)
            if problem:
                code, message = problem
                pointer = f"{root}/pod_sets/{position}/flavors/{index}"
                problems.append(Problem(pointer=pointer, code=code, message=message))
    return problems


def _flavor_problem(
    pod_set: PodSetSpec, flavor: FlavorView | None, name: str, known: Iterable[str]
) -> tuple[str, str] | None:
    if flavor is None:
        return "unknown-flavor", f"There is no flavor {name!r}; known: {', '.join(sorted(known))}."
    if flavor.kind == FlavorKind.MODEL:
        return (
            "wrong-flavor",
            f"{name} is a quota over all of {flavor.model}: name what the pods are to get of it.",
        )
    if (flavor.kind == FlavorKind.CPU) != (pod_set.gpu_count == 0):
        wish = "a CPU flavor" if pod_set.gpu_count == 0 else "a GPU flavor"
        return (
            "wrong-flavor",
            f"{name} does not go with gpu_count {pod_set.gpu_count}: name {wish}.",
        )
    if pod_set.gpu_milli != 1000 and flavor.kind != FlavorKind.SHARE:
        return (
            "wrong-flavor",
            f"{name} is given whole; gpu_milli {pod_set.gpu_milli} needs a share flavor.",
        )
    return None


def cancel(*, actor: Actor, workload: Workload, at: datetime) -> Workload:
    """Stop it: at once when it waits, else once its pods are seen gone (CANCELLING until then).

    Cancelling what is already on its way out changes nothing, and what others moved meanwhile is
    stopped from where it is. Raises NotAllowed, or Conflict when it has ended.
    """
    authorize(actor, workload, "cancel")
    with transaction.atomic():
        while True:
            state = State(workload.state)
            if state == State.CANCELLING:
                return workload
            if state in TERMINAL:
                raise Conflict(f"{workload.name} has ended already ({state}).")
            after = State.CANCELLED if state == State.PENDING else State.CANCELLING
            step = Step(
                workload.id, workload.project_id, state, after, f"cancelled by {actor.name}"
            )
            if transition([step], actor=actor.label, actor_name=actor.name, at=at):
                break
            workload.refresh_from_db()
        if after == State.CANCELLING:
            stops.stop(workload_ids=[workload.id])
        else:
            hints.hint(hints.CYCLE)  # others may have waited for its end
    workload.refresh_from_db()
    return workload


def checkpoint(*, actor: Actor, workload: Workload, at: datetime) -> Workload:
    """Note that its work is saved as of `at`: what eviction loses counts from there.

    Also while it is being preempted, for that is when it saves its work: if it was given notice,
    that ends, and its pods are stopped at once. Told again, the later moment stands. Raises
    NotAllowed, or Conflict when it does not run.
    """
    authorize(actor, workload, "tell of a checkpoint of")
    with transaction.atomic():
        running = Workload.objects.filter(
            id=workload.id, state__in=[State.RUNNING, State.PREEMPTING]
        )
        if not running.update(checkpointed_at=Greatest("checkpointed_at", Value(at))):
            workload.refresh_from_db(fields=["state"])
            raise Conflict(
                f"{workload.name} is {workload.state}; only work that is RUNNING has anything to"
                " save."
            )
        stops.end_notice(workload_id=workload.id, at=at)
        entry = Entry(
            action="workload.checkpoint",
            target_type="workload",
            target_id=workload.id,
            tenant_id=workload.project.tenant_id,
            project_id=workload.project_id,
            after={"checkpointed_at": at.isoformat()},
        )
        trail.record(entry, actor=actor, at=at)
    workload.refresh_from_db()
    return workload


def authorize(actor: Actor, work: Workload | WorkloadArray, act: str) -> None:
    """For what its submitter, an owner or an operator may do to it. Raises NotAllowed."""
    access.authorize(actor, Action.VIEW, project=work.project)
    own = work.submitted_by_id == actor.user.id
    needed = Action.SUBMIT if own else Action.CANCEL
    if not access.allowed(actor, needed, project=work.project):
        kind = "array" if isinstance(work, WorkloadArray) else "workload"
        raise NotAllowed(f"Only its submitter, an owner or an operator may {act} this {kind}.")
