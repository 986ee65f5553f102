"""Gates of what is submitted, and the word of who opens or refuses one. Those past their deadline
are `loop/preparing/gates`'s."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from controlplane.audit.services import Entry
from controlplane.kernel import hints, statements
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed, NotFound, Problem
from scheduler.core.lifecycle import State
from scheduler.core.waits import GateView
from scheduler.models import LIVE, Gate, GateState, Workload, WorkloadArray, WorkloadEvent
from scheduler.services.specs import WorkloadSpec
from scheduler.services.transition import Step, transition
from tenants import access
from tenants.access import Action, Actor
from tenants.gating import GateSpec
from tenants.models import GateKind, Project, StandingGate, User
from tenants.selectors import gates as selectors
from tenants.services import trail

MAX_NOTE = 500


def problems(*, project: Project, specs: Sequence[WorkloadSpec]) -> list[Problem]:
    """What gates there can't be, by pointer, which begins with the spec's index: one called as a
    gate of the project is, or of an owner who has no role there. No queries without gates."""
    asked = [gate for spec in specs for gate in spec.gates]
    if not asked:
        return []
    standing = {gate.name for gate in selectors.of_project(project)}
    names = {gate.owner for gate in asked}
    known = {name for name in names if selectors.owner(username=name, project=project)}
    return [
        problem
        for nth, spec in enumerate(specs)
        for index, gate in enumerate(spec.gates)
        for problem in _problems(f"/{nth}/gates/{index}", gate, project, standing, known)
    ]


def _problems(
    pointer: str, gate: GateSpec, project: Project, standing: set[str], known: set[str]
) -> Iterator[Problem]:
    if gate.name in standing:
        message = f"All work of {project.name} gets a gate {gate.name} already: name it otherwise."
        yield Problem(pointer=f"{pointer}/name", code="repeated", message=message)
    if gate.owner not in known:
        message = selectors.no_owner(gate.owner, project)
        yield Problem(pointer=f"{pointer}/owner", code="unknown-owner", message=message)


def store(
    *,
    of: Iterable[tuple[Workload | WorkloadArray, WorkloadSpec]],
    project: Project,
    at: datetime,
) -> None:
    """The rows of each one's gates: the project's, and its own. The caller holds the project's
    row, so that the project's are those of one moment. Raises Conflict when the project got one
    of the same name since `problems` looked."""
    pairs = list(of)
    standing = statements.read(StandingGate, "project_id = %s ORDER BY id", [project.id])
    asked = [gate for _, spec in pairs for gate in spec.gates]
    names = {gate.owner for gate in asked}
    owners = {user.get_username(): user.id for user in User.objects.filter(username__in=names)}
    twice = {gate.name for gate in standing} & {gate.name for gate in asked}
    if twice:
        raise Conflict(f"{project.name} got a gate {min(twice)} meanwhile: name yours otherwise.")
    found = []
    for work, spec in pairs:
        found += [_row(work, each, each.owner_id, at, standing=True) for each in standing]
        found += [_row(work, each, owners[each.owner], at, standing=False) for each in spec.gates]
    Gate.objects.bulk_create(found)


def _row(
    work: Workload | WorkloadArray,
    asked: GateSpec | StandingGate,
    owner: UUID,
    at: datetime,
    *,
    standing: bool,
) -> Gate:
    within_s = asked.within_s
    return Gate(
        project_id=work.project_id,
        workload=work if isinstance(work, Workload) else None,
        array=work if isinstance(work, WorkloadArray) else None,
        name=asked.name,
        kind=asked.kind,
        owner_id=owner,
        standing=standing,
        created_at=at,
        deadline_at=None if within_s is None else at + timedelta(seconds=within_s),
    )


def wanted(*, project: Project, spec: WorkloadSpec) -> tuple[GateSpec, ...]:
    """All that it would get if it were submitted now, the project's first."""
    standing = (
        GateSpec(gate.name, gate.kind, gate.owner.get_username(), gate.within_s)
        for gate in selectors.of_project(project).order_by("id")
    )
    return (*standing, *spec.gates)


def first(gates: Sequence[GateSpec], *, at: int) -> GateView | None:
    """The one that is told of such gates, as `selectors.load` has it: which ends first."""
    if not gates:
        return None
    told = min(gates, key=lambda one: (one.within_s is None, one.within_s, one.name))
    deadline = None if told.within_s is None else at + told.within_s
    return GateView(told.name, told.owner, at, deadline, len(gates))


def may_decide(actor: Actor, gate: Gate, *, project: Project) -> bool:
    """Whether it is the actor's to decide: its owner's, or who administers the project's."""
    if not access.allowed(actor, Action.VIEW, project=project):
        return False
    own = gate.owner_id == actor.user.id and Action.DECIDE_GATE in actor.ceiling
    return own or access.allowed(actor, Action.DECIDE_GATE, project=project)


def may_open(actor: Actor, gate: Gate, *, work: Workload | WorkloadArray) -> bool:
    """The same of opening it."""
    return not _no_approval(actor, gate, work) and may_decide(actor, gate, project=work.project)


def _no_approval(actor: Actor, gate: Gate, work: Workload | WorkloadArray) -> str:
    """Why who decides the gate still may not open it: by a token nobody approves, nor of their
    own work, nor of a service account's whose tokens are theirs to make. "" where they may."""
    if gate.kind != GateKind.APPROVAL:
        return ""
    if actor.token is not None:
        return f"A token approves of nothing: sign in on the portal to open {gate.name}."
    if work.submitted_by_id == actor.user.id or _makes_tokens_of(actor, work.submitted_by):
        return f"You submitted {work.name}: somebody else has to approve of it."
    return ""


def _makes_tokens_of(actor: Actor, submitter: User) -> bool:
    place = submitter.service_place
    return place is not None and access.allowed_at(actor, Action.MANAGE_MEMBERS, place=place)


def decide(
    *,
    actor: Actor,
    work: Workload | WorkloadArray,
    name: str,
    state: GateState,
    note: str,
    at: datetime,
) -> Gate:
    """Open the gate of the workload, or of the array, or refuse it, which cancels what waits.

    Deciding again what is decided so changes nothing. Raises NotFound for the project or a gate
    that it has not, NotAllowed, Invalid when it is refused without a note, Conflict when it was
    decided otherwise, its deadline has passed, or the work has ended.
    """
    access.authorize(actor, Action.VIEW, project=work.project)
    with transaction.atomic():
        gate = _locked(work, name)
        if not may_decide(actor, gate, project=work.project):
            raise NotAllowed(
                f"The gate {name} is for {gate.owner} to decide, or for who administers"
                f" {work.project.name}."
            )
        if state == GateState.OPEN and (refused := _no_approval(actor, gate, work)):
            raise NotAllowed(refused)
        if gate.state == state:
            return gate
        note = note.strip()
        if state == GateState.REFUSED and not note:
            raise Invalid(
                "To refuse takes a note that says why.", pointer="/note", code="required"
            )
        _check_open(gate, work, at)
        Gate.objects.filter(id=gate.id).update(
            state=state, note=note, decided_at=at, decided_by=actor.user
        )
        gate = Gate.objects.select_related("owner", "decided_by").get(id=gate.id)
        _tell(gate, work, actor, at)
        if state == GateState.REFUSED:
            why = f"refused by {actor.name}: {note}"
            end(gate, why, actor=actor.label, actor_name=actor.name, at=at)
        hints.hint(hints.CYCLE)
    return gate


def _locked(work: Workload | WorkloadArray, name: str) -> Gate:
    rows = list(work.gates.select_related("owner").select_for_update(of=("self",)).order_by("id"))
    gate = next((row for row in rows if row.name == name), None)
    if gate is not None:
        return gate
    if isinstance(work, Workload) and work.array_id is not None:
        raise NotFound(f"{work.name} has no gate of its own: decide those of its array.")
    has = ", ".join(sorted(row.name for row in rows)) or "none"
    raise NotFound(f"{work.name} has no gate {name}; it has {has}.")


def _check_open(gate: Gate, work: Workload | WorkloadArray, at: datetime) -> None:
    """Raises Conflict unless it can be decided still."""
    if gate.state != GateState.WAITING:
        by = gate.decided_by or "its deadline"
        said = f": {gate.note}" if gate.note else ""
        raise Conflict(
            f"The gate {gate.name} is {gate.state} since {gate.decided_at:%Y-%m-%d %H:%M} (UTC),"
            f" by {by}{said}."
        )
    if not _waiting(gate).exists():
        raise Conflict(f"{work.name} waits no more: there is nothing to let in.")
    if gate.deadline_at is not None and gate.deadline_at <= at:
        raise Conflict(
            f"The gate {gate.name} had to be opened by {gate.deadline_at:%Y-%m-%d %H:%M} (UTC)."
        )


def _waiting(gate: Gate) -> QuerySet[Workload]:
    waits = Workload.objects.filter(LIVE, state=State.PENDING)
    if gate.workload_id is not None:
        return waits.filter(id=gate.workload_id)
    return waits.filter(array=gate.array_id)


def _tell(gate: Gate, work: Workload | WorkloadArray, actor: Actor, at: datetime) -> None:
    said = f": {gate.note}" if gate.note else ""
    word = "opened" if gate.state == GateState.OPEN else "refused"
    ids = _waiting(gate).order_by("id").values_list("id", flat=True)
    message = f"gate {gate.name} {word} by {actor.name}{said}"[:500]
    WorkloadEvent.objects.bulk_create(
        WorkloadEvent(workload_id=id, at=at, kind="gate", message=message) for id in ids
    )
    kind = "array" if isinstance(work, WorkloadArray) else "workload"
    entry = Entry(
        action=f"{kind}.gate",
        target_type=kind,
        target_id=work.id,
        tenant_id=work.project.tenant_id,
        project_id=work.project_id,
        before={"gate": gate.name, "state": GateState.WAITING.value},
        after={"gate": gate.name, "state": gate.state, "note": gate.note},
    )
    trail.record(entry, actor=actor, at=at)


def end(gate: Gate, why: str, *, actor: str, actor_name: str, at: datetime) -> None:
    """Cancel what waits behind it, for that reason. In the caller's transaction."""
    steps = [
        Step(
            id,
            gate.project_id,
            State.PENDING,
            State.CANCELLED,
            f"cancelled: its gate {gate.name} was {why}",
        )
        for id in _waiting(gate).order_by("id").values_list("id", flat=True)
    ]
    transition(steps, actor=actor, actor_name=actor_name, at=at)
