"""One step after the other of a request for quota, each by another person (ADR 0110)."""

from datetime import datetime
from decimal import Decimal

from django.db import transaction

from controlplane.audit.services import Entry
from controlplane.kernel.errors import Invalid, NotAllowed
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Delegation, Outcome, QuotaRequest, RequestStep, User
from tenants.selectors import chains, deciders, delegations
from tenants.selectors.chains import Chain
from tenants.services import apart, notices, trail
from tenants.services.quotas import VersionMismatch


class SelfApproval(NotAllowed):
    default_code = "self-approval"


def turn(
    *, actor: Actor, request: QuotaRequest, seen: int | None, at: datetime
) -> tuple[Chain, User | None]:
    """The chain of a request that is locked, for whoever takes the step that they have seen, None
    is any, and in whose place they do, None for their own. Raises VersionMismatch where that was
    taken meanwhile, and as `authorize`."""
    chain = chains.chain(actor=actor, request=request)
    if seen is not None and seen != chain.position:
        raise VersionMismatch(
            f"The request is at step {chain.position} by now, not {seen}: look at it again."
        )
    return chain, authorize(actor=actor, request=request, chain=chain, at=at)


def authorize(*, actor: Actor, request: QuotaRequest, chain: Chain, at: datetime) -> User | None:
    """In whose place the actor may take the step that is due, None for their own. Raises NotFound
    to who does not see the request, SelfApproval to who is not independent of who asked, and
    NotAllowed where it is not theirs, which tells of a delegation that is over."""
    project = request.project
    access.authorize(actor, Action.VIEW, project=project)
    lent = access.lent_to(actor, at=at)  # not what it was before the lock
    found = deciders.standing(actor=actor, request=request, chain=chain, lent=lent)
    if not found.refused:
        return found.on_behalf_of
    if request.requested_by_id != actor.user.id and not access.allowed(
        actor, Action.DECIDE_REQUEST, project=project
    ):
        for each in delegations.over(delegate=actor.user):
            roles = each.approver.memberships.all()
            if each.approver not in lent and deciders.may_step(roles, request, chain):
                raise NotAllowed(_what_is_over(each, at))
    if not lent or request.requested_by_id == actor.user.id:
        access.authorize(actor, Action.DECIDE_REQUEST, project=project)
    if found.is_own:
        raise SelfApproval(found.refused)
    raise NotAllowed(found.refused)


def _what_is_over(delegation: Delegation, at: datetime) -> str:
    whom = delegation.approver.get_username()
    match delegation.state(at=at):
        case "withdrawn":
            return f"You stand in for {whom} no more: they withdrew it."
        case "later":
            return f"You stand in for {whom} only from {delegation.from_at:%F %R} UTC on."
        case "ended":
            return f"You stood in for {whom} until {delegation.until_at:%F %R} UTC."
    return f"{whom}, for whom you stand in, can't sign in any more."


def check_no_more(chain: Chain, *, nominal_milli: int, until_at: datetime | None) -> None:
    """Raises Invalid for more, or for longer, than those agreed to who were asked before."""
    most_milli = chain.most_milli(nominal_milli)
    if nominal_milli > most_milli:
        units = Decimal(most_milli).scaleb(-3).normalize()
        raise Invalid(
            f"It is more than the {units:f} that were agreed to before you.",
            pointer="/granted_milli",
            code="out-of-range",
        )
    end = chain.until(None)
    if end is not None and (until_at is None or until_at > end):
        raise Invalid(
            f"It is longer than until {end:%F %R} UTC, as was agreed before you.",
            pointer="/until_at",
            code="out-of-range",
        )


def take(
    *,
    actor: Actor,
    request: QuotaRequest,
    chain: Chain,
    outcome: Outcome,
    at: datetime,
    on_behalf_of: User | None = None,
    note: str = "",
    nominal_milli: int | None = None,
    until_at: datetime | None = None,
    preview: str = "",
) -> bool:
    """Write down what was said at the step that is due, of a request that is locked. Whether it
    was the last; who agrees to more than was asked may bring more steps about."""
    due = chain.due
    RequestStep.objects.create(
        request=request,
        version=request.version,
        position=chain.position,
        level=due.level,
        tenant_id=due.tenant,
        outcome=outcome,
        decided_by=actor.user,
        on_behalf_of=on_behalf_of,
        decided_at=at,
        note=note,
        granted_milli=nominal_milli,
        until_at=until_at,
        preview=preview,
    )
    return chains.chain(actor=actor, request=request, nominal_milli=nominal_milli).is_done


def escalate_due(*, at: datetime) -> int:
    """Have what nobody answered in time go up, each in a transaction of its own and whatever comes
    of the others; how many. What a rule of those above has no time-out for stays, and what is at
    the top."""
    open_ones = QuotaRequest.objects.filter(decision="").order_by("id")
    found = list(open_ones.select_related("project", "flavor"))
    of = chains.chains(actor=None, requests=found)
    late = {row.id: row for row in found if of[row.id].goes_up(row, at=at)}
    return apart.each(late, lambda id: _escalate(late[id], at=at), what="time-out of request")


@transaction.atomic
def _escalate(request: QuotaRequest, *, at: datetime) -> bool:
    """False where somebody answered or changed it meanwhile."""
    request.refresh_from_db(from_queryset=QuotaRequest.objects.select_for_update())
    chain = chains.chain(actor=None, request=request)
    if request.decision or chain.goes_up(request, at=at) is None:
        return False
    due, position = chain.due, chain.position
    RequestStep.objects.create(
        request=request,
        version=request.version,
        position=position,
        level=due.level,
        tenant_id=due.tenant,
        outcome=Outcome.LAPSED,
        decided_at=at,
    )
    trail.record(
        Entry(
            action="request.lapsed",
            target_type="quota-request",
            target_id=request.id,
            tenant_id=request.project.tenant_id,
            project_id=request.project_id,
            after={"version": request.version, "level": due.level, "position": position},
        ),
        actor=None,
        at=at,
    )
    notices.request_waits(request, chains.chain(actor=None, request=request), at=at)
    return True
