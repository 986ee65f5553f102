"""The review of projects' quotas: what nobody says is still wanted is frozen in time, and starts
nothing until somebody does. What runs goes on (ADR 0123)."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from controlplane.kernel import hints
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Event, Notice, Project
from tenants.selectors import reviews as selectors
from tenants.services import apart, columns, notices, trail

LAST = timedelta(days=7)
"""So long before a quota is frozen it is told of at the latest, however late that is."""


def confirm(*, actor: Actor, project: Project, at: datetime) -> Project:
    """Say that its quota is still wanted: its time begins anew, and what waits starts again where
    it was frozen. A queue that somebody holds stays held.

    Raises NotFound for who sees no such project, NotAllowed for who neither owns nor operates a
    tenant above it.
    """
    access.authorize(actor, Action.VIEW, project=project)
    access.authorize_tenant(actor, Action.MANAGE_QUEUE, tenant=project.tenant)
    with transaction.atomic():
        row = _locked(project.id)
        before = _told(row)
        row.quota_confirmed_at, row.quota_frozen_at = at, None
        _save(row, "review.confirm", before, actor=actor, at=at)
    return row


def review_due(*, at: datetime) -> int:
    """Tell of reviews that end soon, freeze what nobody confirmed in time, and thaw what the
    setting reviews no longer; for how many projects. Each in a transaction of its own; done again
    it finds nothing."""
    rows = list(selectors.due(at=at).filter(quota_frozen_at=None).order_by("id"))
    causes = {_cause(row, days): row for row in rows for days in (LAST, selectors.AHEAD)}
    said = Notice.objects.filter(cause__in=causes).values_list("cause", "at")
    told = dict(said)
    by_id = {row.id: row for row in rows}
    count = apart.each(by_id, lambda id: _go_on(by_id[id], told, at=at), what="the review of")
    lasts = selectors.period()
    early = Q(quota_confirmed_at__gt=at - lasts) if lasts else Q()
    frozen = Project.objects.filter(early, quota_frozen_at__isnull=False).order_by("id")
    return count + apart.each(
        frozen.values_list("id", flat=True), lambda id: _thaw(id, at=at), what="the end of review"
    )


def _go_on(project: Project, told: Mapping[str, datetime], *, at: datetime) -> bool:
    """The next step of one that is not frozen; False where there is none yet."""
    due_at = selectors.due_at(project)
    if due_at is None:
        return False
    last, first = _cause(project, LAST), _cause(project, selectors.AHEAD)
    if due_at - at > LAST:
        starts_at = due_at - selectors.AHEAD
        return (
            first not in told
            and starts_at >= project.quota_confirmed_at
            and _tell(project, first, freezes_at=due_at, at=at)
        )
    if last not in told:
        return _tell(project, last, freezes_at=max(due_at, at + LAST), at=at)
    return max(due_at, told[last] + LAST) <= at and _freeze(project.id, at=at)


def _cause(project: Project, ahead: timedelta) -> str:
    """Which of them, of which review: the moment, and how long it counts, tell one from the next.
    No `ahead` is that it is frozen."""
    since, lasts = project.quota_confirmed_at, settings.BERTH_REVIEW_DAYS
    return f"review:{project.id}:{since:%Y%m%dT%H%M%S}:{lasts}:{ahead.days}"


@transaction.atomic
def _tell(project: Project, cause: str, *, freezes_at: datetime, at: datetime) -> bool:
    """False where it was confirmed meanwhile, or somebody else told."""
    if _locked(project.id).quota_confirmed_at != project.quota_confirmed_at:
        return False
    return notices.of_review(Event.REVIEW_DUE, cause, project, freezes_at=freezes_at, at=at)


@transaction.atomic
def _freeze(id: UUID, *, at: datetime) -> bool:
    """False where it was confirmed meanwhile, or somebody else froze it."""
    row = _locked(id)
    due_at = selectors.due_at(row)
    if row.quota_frozen_at is not None or due_at is None or due_at > at:
        return False
    before = _told(row)
    row.quota_frozen_at = at
    _save(row, "review.freeze", before, actor=None, at=at)
    cause = _cause(row, timedelta())
    notices.of_review(Event.REVIEW_FROZE, cause, row, freezes_at=None, at=at)
    return True


@transaction.atomic
def _thaw(id: UUID, *, at: datetime) -> bool:
    """False where it was confirmed meanwhile."""
    row = _locked(id)
    if row.quota_frozen_at is None:
        return False
    before = _told(row)
    row.quota_frozen_at = None
    _save(row, "review.thaw", before, actor=None, at=at)
    return True


def _locked(id: UUID) -> Project:
    """Until the caller's transaction ends; no cycle applies a start of it meanwhile."""
    rows = Project.objects.select_related("tenant")
    return rows.select_for_update(no_key=True, of=("self",)).get(id=id)


def _save(
    row: Project, action: str, before: Mapping[str, object], *, actor: Actor | None, at: datetime
) -> None:
    row.save(update_fields=["quota_confirmed_at", "quota_frozen_at"])
    entry = columns.entry(row, action=action, before=before, after=_told(row))
    trail.record(entry, actor=actor, at=at)
    hints.hint(hints.CYCLE)


def _told(row: Project) -> dict[str, object]:
    """As the audit has it."""
    frozen_at = row.quota_frozen_at
    return {
        "confirmed_at": row.quota_confirmed_at.isoformat(),
        "frozen_at": frozen_at.isoformat() if frozen_at else None,
    }
