"""One step after the other of a request for quota, each by another person (ADR 0110)."""

from datetime import datetime
from decimal import Decimal

from controlplane.kernel.errors import Invalid, NotAllowed
from tenants.access import Actor
from tenants.models import Outcome, QuotaRequest, RequestStep
from tenants.selectors import chains, deciders
from tenants.selectors.chains import Chain
from tenants.services.quotas import VersionMismatch


def turn(*, actor: Actor, request: QuotaRequest, seen: int | None) -> Chain:
    """The chain of a request that is locked, for whoever takes the step that they have seen; None
    is any. Raises VersionMismatch where that was taken meanwhile, and NotAllowed where it is not
    theirs."""
    chain = chains.chain(actor=actor, request=request)
    if seen is not None and seen != chain.position:
        raise VersionMismatch(
            f"The request is at step {chain.position} by now, not {seen}: look at it again."
        )
    refused = deciders.turn_refusal(actor=actor, request=request, chain=chain)
    if refused:
        raise NotAllowed(refused)
    return chain


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
        decided_at=at,
        note=note,
        granted_milli=nominal_milli,
        until_at=until_at,
        preview=preview,
    )
    return chains.chain(actor=actor, request=request, nominal_milli=nominal_milli).is_done
