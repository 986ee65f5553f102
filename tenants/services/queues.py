"""The queue of a project or a tenant, held, drained and opened again, and a project's caps on what
of it runs and waits."""

from dataclasses import asdict, dataclass
from datetime import datetime

from django.db import transaction

from controlplane.kernel import hints
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed
from controlplane.kernel.queues import QueueState, checked_note
from tenants import access
from tenants.access import Action, Actor
from tenants.models import CAPS, MAX_CAP, Project, Tenant
from tenants.services import columns, trail


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """As the columns of Project: workloads, and thousandths of devices or slices; None is none."""

    max_running: int | None = None
    max_pending: int | None = None
    user_max_running: int | None = None
    user_max_pending: int | None = None
    user_max_gpus_milli: int | None = None
    max_submits_a_minute: int | None = None
    user_max_submits_a_minute: int | None = None


def move[Row: (Project, Tenant)](
    *, actor: Actor, of: Row, state: QueueState, note: str, at: datetime
) -> Row:
    """Hold, drain or open the queue of a project, or of a tenant with all below it; what has been
    submitted keeps its place.

    From the next cycle on nothing starts while it is held or draining; of one that is draining
    the next cycles take back what runs and may be stopped, and it waits again. A project is open
    while it is and all above it are. `note` says why, and is wanted unless the queue is opened.
    What somebody who operates the whole fleet closed, nobody else moves.
    Raises NotFound or NotAllowed for it, Invalid for a note that is none, Conflict when the queue
    is in that state already.
    """
    if isinstance(of, Project):
        access.authorize(actor, Action.MANAGE_QUEUE, project=of)
    else:
        access.authorize_tenant(actor, Action.MANAGE_QUEUE, tenant=of)
    note = checked_note(note, state=state)
    with transaction.atomic():
        row = type(of).objects.select_for_update(no_key=True).get(id=of.id)
        before = row.queue_state
        if before == state:
            raise Conflict(f"The queue of {row.name} is {state} already.")
        _check_closed_by(row, actor)
        row.queue_state, row.queue_note = state, note
        row.queue_changed_at, row.queue_changed_by = at, actor.user
        row.save(
            update_fields=["queue_state", "queue_note", "queue_changed_at", "queue_changed_by"]
        )
        after = {"state": state.value, "note": note}
        entry = columns.entry(row, action="queue.move", before={"state": before}, after=after)
        trail.record(entry, actor=actor, at=at)
        hints.hint(hints.CYCLE)
    return row


def _check_closed_by(row: Project | Tenant, actor: Actor) -> None:
    closed_by = row.queue_changed_by if row.queue_state != QueueState.OPEN else None
    if closed_by is None or access.allowed_at(actor, Action.MANAGE_QUEUE, place=None):
        return
    if access.actor_for(user=closed_by).permits_everywhere(Action.MANAGE_QUEUE):
        raise NotAllowed(
            f"{closed_by.get_username()}, who operates the whole fleet, closed the queue of"
            f" {row.name}: only such a person moves it."
        )


def set_caps(*, actor: Actor, project: Project, caps: Caps, at: datetime) -> Project:
    """Make these the project's caps, all of them. What runs or waits beyond one stays.

    One that somebody with a role above the project changed only such change again, until they take
    it away. Raises NotFound or NotAllowed for the project or for such a cap, Invalid for a cap out
    of range.
    """
    access.authorize(actor, Action.MANAGE_QUEUE, project=project)
    wanted = asdict(caps)
    for name, value in wanted.items():
        if value is not None and not 1 <= value <= MAX_CAP:
            raise Invalid(
                f"{value} is not between 1 and {MAX_CAP}.",
                pointer=f"/{name}",
                code="out-of-range",
            )
    is_above = access.allowed_at(actor, Action.MANAGE_QUEUE, place=project.tenant)
    with transaction.atomic():
        row = Project.objects.select_for_update(no_key=True).get(id=project.id)
        changed = [name for name, value in wanted.items() if getattr(row, name) != value]
        theirs = [name for name in changed if name in row.caps_from_above]
        if theirs and not is_above:
            raise NotAllowed(
                f"{', '.join(theirs)} of {row.name}: set by who is above it, and only such change"
                " it: ask them."
            )
        from_above = {*row.caps_from_above, *(changed if is_above else ())}
        kept = [name for name in CAPS if name in from_above and wanted[name] is not None]
        values = {**wanted, "caps_from_above": kept}
        return columns.say(project, action="project.caps", values=values, actor=actor, at=at)
