"""What is told to whom, written down in the transaction of what it tells. Sending is for
`deliveries`: nothing here waits for anybody.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Value
from django.db.models.fields import CharField
from django.db.models.functions import Cast, Concat

from controlplane.kernel import bulk
from controlplane.kernel.ids import uuid7s
from tenants.models import (
    Budget,
    Delivery,
    Event,
    Grant,
    Notice,
    Project,
    QuotaRequest,
    Tenant,
    User,
)
from tenants.selectors import recipients
from tenants.selectors.chains import Chain

REMINDED_DAYS = (3, 14)
"""So long before its end is told of a grant, the shortest first."""


def request_waits(request: QuotaRequest, chain: Chain, *, at: datetime) -> None:
    """To those who may take the step that is due; to channels once, as it is asked for. In the
    caller's transaction."""
    is_new = request.version == 1 and not chain.taken
    cause = f"request:{request.id}:{request.version}:{chain.position}"
    _tell(Event.REQUEST_OPENED, cause, request, recipients.deciders(request, chain, at=at),
          to_channels=is_new, at=at)  # fmt: skip


def request_answered(request: QuotaRequest, *, at: datetime) -> None:
    """To who asked, granted or denied, if they see the project still; who withdrew it knows. In
    the caller's transaction."""
    events = {"granted": Event.REQUEST_GRANTED, "denied": Event.REQUEST_DENIED}
    if event := events.get(request.decision):
        cause = f"request:{request.id}:{request.decision}"
        _tell(event, cause, request, recipients.asker(request), at=at)


def grant_ended(grant: Grant, *, at: datetime) -> None:
    """To who asked and the project's owners, however it ended. In the caller's transaction."""
    cause = f"grant:{grant.id}:ended"
    _tell(Event.GRANT_ENDED, cause, grant.request, _concerned(grant), until_at=grant.until_at,
          at=at)  # fmt: skip


def remind(*, at: datetime) -> int:
    """Tell of grants that end so many days from now or sooner, each once for each of
    REMINDED_DAYS; how many.

    A grant that began later than so long before its end is not told of then: whoever asked has
    just been told until when it is. Where two are due, as after a standstill, the later is told.
    """
    count = 0
    for index, days in enumerate(REMINDED_DAYS):
        sooner = REMINDED_DAYS[:index]
        over_at = at + timedelta(days=max(sooner, default=0))
        cause = _cause_of_reminder(days)
        due = Grant.objects.filter(
            Grant.for_a_time(),
            ~Exists(Notice.objects.filter(cause=cause)),
            until_at__gt=over_at,
            until_at__lte=at + timedelta(days=days),
        ).select_related("request__project", "request__flavor", "request__requested_by")
        for grant in due.order_by("until_at", "id"):
            if grant.until_at and grant.from_at <= grant.until_at - timedelta(days=days):
                count += _remind(grant, days, at=at)
    return count


def _cause_of_reminder(days: int) -> Concat:
    return Concat(Value("grant:"), Cast(OuterRef("id"), CharField()), Value(f":{days}"))


@transaction.atomic
def _remind(grant: Grant, days: int, *, at: datetime) -> bool:
    """False where it ended meanwhile, or somebody else told."""
    fresh = Grant.objects.select_for_update(no_key=True).filter(id=grant.id, ended_at=None)
    if not fresh.exists():
        return False
    cause = f"grant:{grant.id}:{days}"
    return _tell(Event.GRANT_ENDING, cause, grant.request, _concerned(grant), days=days,
                 until_at=grant.until_at, at=at)  # fmt: skip


def _concerned(grant: Grant) -> Collection[User]:
    request = grant.request
    owners = recipients.owners(request.project)
    return {user.id: user for user in (*recipients.asker(request), *owners)}.values()


def _tell(
    event: Event,
    cause: str,
    request: QuotaRequest,
    people: Iterable[User],
    *,
    at: datetime,
    until_at: datetime | None = None,
    days: int | None = None,
    to_channels: bool = True,
) -> bool:
    """Write down what became of the request, as `_write`."""
    until_at = until_at or request.until_at
    body = {
        "request": str(request.id),
        "project": request.project.name,
        "flavor": request.flavor.name,
        "nominal_milli": request.nominal_milli,
        "granted_milli": request.granted_milli,
        "until_at": until_at.isoformat() if until_at else None,
        "requested_by": request.requested_by.get_username(),
        **({"days": days} if days else {}),
    }
    channels = recipients.channels(request.project, event) if to_channels else []
    return _write(event, cause, request.project, body, people=people, channels=channels, at=at)


def of_work(
    event: Event,
    cause: str,
    *,
    project: Project,
    submitter: User,
    channels: Sequence[UUID],
    body: Mapping[str, object],
    at: datetime,
) -> bool:
    """Tell what became of somebody's work there: them, if they want to be mailed of that and see
    the project still, and `channels`, those that are for it; False where nobody is, and nothing is
    written. In the caller's transaction."""
    wants = event in submitter.mailed_of and recipients.sees(submitter, project)
    people = [submitter] if wants else []
    if not people and not channels:
        return False
    whose = {"project": project.name, "submitted_by": submitter.get_username()}
    told = {**whose, **body}
    return _write(event, cause, project, told, people=people, channels=channels, at=at)


def of_budget(
    event: Event, cause: str, budget: Budget, *, body: Mapping[str, object], at: datetime
) -> bool:
    """Tell the owners of its place, and those above them, how much of it is used; False where it
    was told. In the caller's transaction."""
    place = budget.project or budget.tenant
    if place is None or Notice.objects.filter(cause=cause).exists():
        return False
    people, channels = recipients.owners(place), recipients.channels(place, event)
    return _write(event, cause, place, body, people=people, channels=channels, at=at)


def of_review(
    event: Event, cause: str, project: Project, *, freezes_at: datetime | None, at: datetime
) -> bool:
    """Tell who confirms its quota, and who goes without it, until when; None is that it is too
    late. False where that was told. In the caller's transaction."""
    body = {
        "project": project.name,
        "project_id": str(project.id),
        "freezes_at": freezes_at.isoformat() if freezes_at else None,
    }
    people, channels = recipients.reviewers(project), recipients.channels(project, event)
    return _write(event, cause, project, body, people=people, channels=channels, at=at)


def _write(
    event: Event,
    cause: str,
    place: Project | Tenant,
    body: Mapping[str, object],
    *,
    people: Iterable[User],
    channels: Sequence[UUID],
    at: datetime,
) -> bool:
    """For the channels and those of the people who can be reached; False where it was written
    before."""
    project = place if isinstance(place, Project) else None
    notice, made = Notice.objects.get_or_create(
        cause=cause, defaults={"event": event, "project": project, "body": body, "at": at}
    )
    if not made:
        return False
    reached: list[UUID | None] = []
    if settings.MAILERS:
        reached += [user.id for user in people if user.is_active and user.email]
    bulk.insert(
        Delivery,
        id=uuid7s(len(reached) + len(channels)),
        notice_id=notice.id,
        user_id=reached + [None] * len(channels),
        channel_id=[None] * len(reached) + list(channels),
        due_at=at,
    )
    return True
