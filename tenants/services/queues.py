"""A project's queue, held, drained and opened again, and the caps on what of it runs and waits."""

from dataclasses import asdict, dataclass
from datetime import datetime

from django.db import transaction

from controlplane.audit.services import Entry
from controlplane.kernel import hints, text
from controlplane.kernel.errors import Conflict, Invalid
from tenants import access
from tenants.access import Action, Actor
from tenants.models import MAX_CAP, Project, QueueState
from tenants.services import columns, trail

MAX_NOTE = 500


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


def move(*, actor: Actor, project: Project, state: QueueState, note: str, at: datetime) -> Project:
    """Hold, drain or open the project's queue; what has been submitted keeps its place.

    From the next cycle on nothing starts while it is held or draining; of one that is draining
    the next cycles take back what runs and may be stopped, and it waits again. `note` says why,
    and is wanted unless the queue is opened.
    Raises NotFound or NotAllowed for the project, Invalid for a note that is none, Conflict when
    the queue is in that state already.
    """
    access.authorize(actor, Action.MANAGE_QUEUE, project=project)
    note = note.strip()
    _check_note(note, wanted=state != QueueState.OPEN)
    with transaction.atomic():
        row = Project.objects.select_for_update(no_key=True).get(id=project.id)
        before = row.queue_state
        if before == state:
            raise Conflict(f"The queue of {row.name} is {state} already.")
        row.queue_state, row.queue_note = state, note
        row.queue_changed_at, row.queue_changed_by = at, actor.user
        row.save(
            update_fields=["queue_state", "queue_note", "queue_changed_at", "queue_changed_by"]
        )
        trail.record(
            Entry(
                action="queue.move",
                target_type="project",
                target_id=row.id,
                tenant_id=row.tenant_id,
                project_id=row.id,
                before={"state": before},
                after={"state": state.value, "note": note},
            ),
            actor=actor,
            at=at,
        )
        hints.hint(hints.CYCLE)
    return row


def set_caps(*, actor: Actor, project: Project, caps: Caps, at: datetime) -> Project:
    """Make these the project's caps, all of them. What runs or waits beyond one stays.

    Raises NotFound or NotAllowed for the project, Invalid for a cap out of range.
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
    return columns.say(project, action="project.caps", values=wanted, actor=actor, at=at)


def _check_note(note: str, *, wanted: bool) -> None:
    fault = text.fault(note)
    if fault:
        raise Invalid(fault, pointer="/note", code="bad-character")
    if len(note) > MAX_NOTE or (wanted and not note):
        raise Invalid(f"Say why, in 1 to {MAX_NOTE} characters.", pointer="/note")
