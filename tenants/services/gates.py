"""Putting gates before all work of a project, and taking them away, as whoever sets its quotas.
What was submitted before keeps the gates it got."""

from datetime import datetime

from django.db import transaction

from controlplane.audit.services import Entry
from controlplane.kernel.errors import Conflict, Invalid, NotFound
from tenants import access
from tenants.access import Action, Actor
from tenants.gating import MAX_GATES, GateSpec
from tenants.models import Project, StandingGate
from tenants.selectors import gates as selectors
from tenants.services import trail


def add(*, actor: Actor, project: Project, gate: GateSpec, at: datetime) -> StandingGate:
    """All that is submitted from now on gets it; its name and seconds are in range.

    Raises NotFound or NotAllowed for the project, Invalid for an owner without a role in it or one
    gate too many, Conflict where it has one of that name.
    """
    access.authorize(actor, Action.EDIT_QUOTA, project=project)
    owner = selectors.owner(username=gate.owner, project=project)
    if owner is None:
        message = selectors.no_owner(gate.owner, project)
        raise Invalid(message, pointer="/owner", code="unknown-owner")
    with transaction.atomic():
        row = Project.objects.select_for_update(no_key=True).get(id=project.id)
        names = set(selectors.of_project(row).values_list("name", flat=True))
        if gate.name in names:
            raise Conflict(f"{row.name} has a gate {gate.name} already: take that away first.")
        if len(names) >= MAX_GATES:
            raise Invalid(f"{row.name} has {MAX_GATES} gates already, which is the most.")
        made = StandingGate.objects.create(
            project=row,
            name=gate.name,
            kind=gate.kind,
            owner=owner,
            within_s=gate.within_s,
            created_at=at,
        )
        trail.record(_entry("add", made, after=_told(made)), actor=actor, at=at)
    return made


def remove(*, actor: Actor, project: Project, name: str, at: datetime) -> None:
    """What is submitted from now on does not get it. Raises NotFound or NotAllowed for the
    project, NotFound where it has no gate of that name."""
    access.authorize(actor, Action.EDIT_QUOTA, project=project)
    with transaction.atomic():
        row = selectors.of_project(project).filter(name=name).select_for_update(of=("self",))
        gate = row.first()
        if gate is None:
            raise NotFound(f"{project.name} has no gate {name}.")
        entry = _entry("remove", gate, before=_told(gate))
        gate.delete()
        trail.record(entry, actor=actor, at=at)


type _Told = dict[str, object]


def _entry(
    act: str, gate: StandingGate, *, before: _Told | None = None, after: _Told | None = None
) -> Entry:
    return Entry(
        action=f"project.gate-{act}",
        target_type="project",
        target_id=gate.project_id,
        tenant_id=gate.project.tenant_id,
        project_id=gate.project_id,
        before=before or {},
        after=after or {},
    )


def _told(gate: StandingGate) -> _Told:
    return {
        "name": gate.name,
        "kind": gate.kind,
        "owner": gate.owner.get_username(),
        "within_s": gate.within_s,
    }
