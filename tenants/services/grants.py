"""What requests add to quotas: at once or from a moment on, for good or until it is taken away.

At any time a nominal quota is what is there for good, or the most that was granted for that time.
So to grant the same until later extends it, and a short peak leaves what lasts longer. An operator
who sets another nominal quota ends what was granted for a time (`quotas.set_quota`).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from clusters.models import Flavor
from controlplane.kernel.errors import Conflict, Invalid
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Grant, Project, Quota, QuotaRequest, TenantQuota
from tenants.services import apart, quotas

LONGEST = timedelta(days=3 * 366)
"""How far away the beginning and the end of a grant may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """That the nominal quota be `nominal_milli` from `from_at` on, None for at once, until
    `until_at`, None for good."""

    nominal_milli: int
    from_at: datetime | None = None
    until_at: datetime | None = None

    def check(self, *, flavor: Flavor, at: datetime, pointer: str = "/nominal_milli") -> None:
        """Raises Invalid for an amount out of range or of part of what is whole, and for moments
        that are past, too far away or in the wrong order."""
        if not 0 <= self.nominal_milli <= quotas.MAX_MILLI:
            raise Invalid(
                f"{self.nominal_milli} is not between 0 and {quotas.MAX_MILLI}.",
                pointer=pointer,
                code="out-of-range",
            )
        quotas.check_pieces(self.nominal_milli, flavor, pointer=pointer)
        for name, moment in (("/from_at", self.from_at), ("/until_at", self.until_at)):
            if moment is not None and not at < moment <= at + LONGEST:
                raise Invalid(
                    f"It has to be later than now, and within {LONGEST.days} days.",
                    pointer=name,
                    code="out-of-range",
                )
        if self.from_at and self.until_at and self.until_at <= self.from_at:
            raise Invalid("It has to end after it begins.", pointer="/until_at")


def check_adds(
    quota: Quota | None,
    allotment: Allotment,
    *,
    project: Project,
    flavor: Flavor,
    pointer: str,
    instead: str,
) -> None:
    """Of one that begins at once, beside the project's quota as it is. Raises Invalid where as
    much is there for as long, which tells what to do `instead`."""
    there_milli = _lasting(quota, allotment.until_at) if quota else 0
    if allotment.nominal_milli <= there_milli:
        units = Decimal(there_milli).scaleb(-3).normalize()
        told = f"{project.name} has {units:f} of {flavor.name} already, for as long."
        raise Invalid(f"{told} {instead}", pointer=pointer, code="out-of-range")


def give(
    *,
    actor: Actor,
    request: QuotaRequest,
    allotment: Allotment,
    take_back: bool,
    version: int | None,
    at: datetime,
) -> None:
    """Carry out the answer to a request, now or once its time comes. `take_back` has what is held
    beyond the quota at its end preempted; else that ends by itself. `version` is of the quota that
    was seen, None for any. In the caller's transaction, who has authorised it.

    Raises VersionMismatch, and Invalid where as much is there already for as long, or where
    nothing could ever be taken back.
    """
    project, flavor = request.project, request.flavor
    grant = Grant(
        request=request,
        from_at=allotment.from_at or at,
        until_at=allotment.until_at,
        take_back=take_back,
    )
    if allotment.from_at is not None:
        there = quotas.of(owner=project, flavor=flavor)
        quotas.check_seen(there, version)
        _check_may_take_back(grant, there)
        grant.save(force_insert=True)
        return
    quota = quotas.locked(project=project, flavor=flavor, version=version)
    _check_may_take_back(grant, quota)
    check_adds(
        quota,
        allotment,
        project=project,
        flavor=flavor,
        pointer="/granted_milli",
        instead="A grant only adds: deny it, or set the quota itself.",
    )
    grant.save(force_insert=True)
    _begin(grant, quota, actor=actor, at=at)
    grant.refresh_from_db(fields=["begun_at", "extra_milli", "quota_version"])


def _check_may_take_back(grant: Grant, there: Quota | TenantQuota | None) -> None:
    """Nor may the quota be made such a one meanwhile (`set_quota`)."""
    if grant.take_back and there is not None and there.borrowing_limit_milli is None:
        raise Invalid(
            f"{grant.request.project.name} may borrow any amount of {grant.request.flavor.name},"
            " so nothing is ever held beyond its quota: let what runs end by itself, or give the"
            " quota a borrowing limit.",
            pointer="/take_back",
        )


def end(*, actor: Actor, grant: Grant, at: datetime) -> Grant:
    """Take it away before its time, as who decides requests there; one that has not begun never
    does. What runs beyond the quota then ends by itself, also where it was to be taken back at its
    end (whoever wants it now lowers the quota, which tells first whom that stops), unless the
    quota says from when on what is beyond it is taken back.

    Raises NotFound or NotAllowed, Conflict when it is over or was granted for good."""
    access.authorize(actor, Action.DECIDE_REQUEST, project=grant.request.project)
    if not _end(grant.id, actor=actor, at=at):
        raise Conflict("It is over already.")
    grant.refresh_from_db()
    return grant


def begin_and_end_due(*, at: datetime) -> int:
    """What is due by then, each in a transaction of its own, so that one that fails, and is told
    in the log, keeps no other; how many. What is over by then and has not begun never does."""
    due = _live(Q(begun_at=None, from_at__lte=at) & ~Q(until_at__lte=at))
    over = _live(Q(until_at__lte=at)).order_by("until_at", "id")
    begun = apart.each(
        due.order_by("from_at", "id").values_list("id", flat=True),
        lambda id: _begin_due(id, at),
        what="the beginning of grant",
    )
    ended = apart.each(
        over.values_list("id", flat=True),
        lambda id: _end(id, actor=None, at=at),
        what="the end of grant",
    )
    return begun + ended


def _live(which: Q) -> QuerySet[Grant]:
    return Grant.objects.filter(which, ended_at=None)


def _for_a_time(quota: Quota) -> list[Grant]:
    rows = Grant.objects.filter(
        Grant.for_a_time(), request__project=quota.project_id, request__flavor=quota.flavor_id
    )
    return list(rows.select_related("request").order_by("id"))


def _lasting(quota: Quota, until_at: datetime | None) -> int:
    return Grant.lasting_milli(
        _for_a_time(quota), nominal_milli=quota.nominal_milli, until_at=until_at
    )


@transaction.atomic
def _begin_due(id: UUID, at: datetime) -> bool:
    grant = _live(Q(id=id)).select_related("request__project", "request__flavor").first()
    if grant is None:
        return False
    quota = quotas.locked(project=grant.request.project, flavor=grant.request.flavor)
    return _begin(grant, quota, actor=None, at=at)


def _begin(grant: Grant, quota: Quota, *, actor: Actor | None, at: datetime) -> bool:
    """False where somebody else began or ended it meanwhile."""
    for_good_milli = _lasting(quota, None)
    if not _live(Q(id=grant.id, begun_at=None)).update(begun_at=at, extra_milli=0):
        return False
    if grant.until_at is None:
        for_good_milli = max(for_good_milli, grant.request.granted_milli or 0)
    _recompute(quota, for_good_milli, actor=actor, action="quota.grant", at=at)
    Grant.objects.filter(id=grant.id).update(quota_version=quota.version)
    quotas.record_of_grant(grant, "grant.begin", actor=actor, at=at)
    return True


@transaction.atomic
def _end(id: UUID, *, actor: Actor | None, at: datetime) -> bool:
    """False where it is over already. Raises Conflict of what was granted for good, once that has
    begun, and where it begins at this moment."""
    grant = Grant.objects.select_related("request__project", "request__flavor").get(id=id)
    request = grant.request
    held = Quota.objects.filter(project=request.project, flavor=request.flavor)
    quota = held.select_for_update().first()  # before the grant, as who begins it does
    grant.refresh_from_db(fields=["begun_at", "ended_at", "until_at", "extra_milli"])
    if grant.is_over:
        return False
    if quota is None or grant.begun_at is None:
        if not _live(Q(id=id, begun_at=None)).update(ended_at=at):
            raise Conflict("It begins at this moment: look again.")
    elif grant.until_at is None:
        raise Conflict("It was granted for good: lower the quota itself.")
    else:
        for_good_milli = _lasting(quota, None)
        Grant.objects.filter(id=id).update(ended_at=at)
        back_at = at if grant.take_back and actor is None else None
        action = "quota.grant-ended"
        _recompute(quota, for_good_milli, actor=actor, action=action, at=at, back_at=back_at)
        Grant.objects.filter(id=id).update(quota_version=quota.version)
    quotas.record_of_grant(grant, "grant.end", actor=actor, at=at)
    return True


def _recompute(
    quota: Quota,
    for_good_milli: int,
    *,
    actor: Actor | None,
    action: str,
    at: datetime,
    back_at: datetime | None = None,
) -> None:
    """Make a locked quota what is there for good, or the most that counts for a time. Where that
    lowers it, what is held beyond is taken back from `back_at` on."""
    grants = _for_a_time(quota)
    largest = max(grants, key=lambda each: each.request.granted_milli or 0, default=None)
    most_milli = (largest.request.granted_milli or 0) if largest else 0
    nominal_milli = max(for_good_milli, most_milli)
    others = [each.id for each in grants if each is not largest]
    Grant.objects.filter(id__in=others).update(extra_milli=0)
    if largest:
        extra_milli = nominal_milli - for_good_milli
        Grant.objects.filter(id=largest.id).update(extra_milli=extra_milli)
    if nominal_milli == quota.nominal_milli:
        return
    lowered = nominal_milli < quota.nominal_milli and quota.borrowing_limit_milli is not None
    quotas.set_nominal(
        quota,
        nominal_milli,
        actor=actor,
        action=action,
        at=at,
        enforce_at=back_at if lowered else None,
    )
