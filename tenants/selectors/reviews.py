"""Until when the quotas of projects have to be confirmed."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from tenants import access
from tenants.access import Action, Actor
from tenants.models import Project, Quota

AHEAD = timedelta(days=30)
"""So long before its end a review is told of."""
_MOST = 100
"""Projects that wait for one reader, those that did for longest."""


def period() -> timedelta | None:
    """How long a confirmation counts, None for ever."""
    return timedelta(days=settings.BERTH_REVIEW_DAYS) if settings.BERTH_REVIEW_DAYS else None


def due_at(project: Project) -> datetime | None:
    """Until when it has to be confirmed, None where never."""
    lasts = period()
    return project.quota_confirmed_at + lasts if lasts else None


def may_confirm(actor: Actor, project: Project) -> bool:
    """Whether they own or operate a tenant above it: its own owners would confirm themselves."""
    return access.allowed_for_tenant(actor, Action.MANAGE_QUEUE, tenant=project.tenant)


def due(*, at: datetime) -> QuerySet[Project]:
    """Projects with a quota whose review ends in `AHEAD` or has ended, and those that are frozen,
    also where the quota is gone since."""
    lasts = period()
    quotas = Quota.objects.filter(project=OuterRef("pk"))
    which = Q(quota_frozen_at__isnull=False)
    if lasts:
        which |= Q(Exists(quotas), quota_confirmed_at__lte=at + AHEAD - lasts)
    return Project.objects.filter(which).select_related("tenant")


def to_confirm(*, actor: Actor, at: datetime) -> tuple[Project, ...]:
    """Of those, the ones that the actor may confirm, the oldest first. One query, none where
    nothing is reviewed or they confirm nothing."""
    if period() is None or Action.MANAGE_QUEUE not in actor.ceiling:
        return ()
    rows = due(at=at)
    if not actor.permits_everywhere(Action.MANAGE_QUEUE):
        mine = actor.visible_tenants(Action.MANAGE_QUEUE)
        if not mine:
            return ()
        rows = rows.filter(tenant__in=mine)
    return tuple(rows.order_by("quota_confirmed_at", "id")[:_MOST])
