"""Asking for quota, and somebody else's answer. Deciding is for people: never for a token."""

from datetime import datetime

from django.db import transaction

from clusters.models import Flavor
from controlplane.audit.services import Entry
from controlplane.kernel import text
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Decision, Project, QuotaRequest
from tenants.services import quotas, trail

MAX_TEXT = 2000
MAX_OPEN = 50
"""Undecided requests a project may have."""


class SelfApproval(NotAllowed):
    default_code = "self-approval"


def open(  # a verb read through its module: requests.open
    *,
    actor: Actor,
    project: Project,
    flavor: Flavor,
    nominal_milli: int,
    reason: str,
    at: datetime,
) -> QuotaRequest:
    """Ask that the project's nominal quota of `flavor` become `nominal_milli`.

    Raises NotFound or NotAllowed for the project, Invalid for an amount out of range, for a reason
    that is empty, too long or holds control characters, and when too many requests are open.
    """
    access.authorize(actor, Action.REQUEST_QUOTA, project=project)
    _check_amount(nominal_milli, pointer="/nominal_milli")
    reason = _checked(reason, pointer="/reason", required=True)
    with transaction.atomic():
        waiting = QuotaRequest.objects.filter(project=project, decision="").count()
        if waiting >= MAX_OPEN:
            raise Invalid(f"{project.name} has {waiting} undecided requests already.")
        request = QuotaRequest.objects.create(
            project=project,
            flavor=flavor,
            nominal_milli=nominal_milli,
            reason=reason,
            requested_by=actor.user,
            requested_at=at,
        )
        _record(actor, request, "request.open", at)
    return request


def grant(
    *,
    actor: Actor,
    request: QuotaRequest,
    at: datetime,
    note: str = "",
    granted_milli: int | None = None,
) -> QuotaRequest:
    """Make the project's nominal quota what was asked, or `granted_milli` instead.

    Quota, decision, audit rows and the hint are one transaction. Raises as `_decide`, and Invalid
    for an amount out of range.
    """
    amount = request.nominal_milli if granted_milli is None else granted_milli
    _check_amount(amount, pointer="/granted_milli")
    with transaction.atomic():
        _decide(actor, request, Decision.GRANTED, note=note, granted_milli=amount, at=at)
        quotas.raise_nominal(
            actor=actor,
            project=request.project,
            flavor=request.flavor,
            nominal_milli=amount,
            at=at,
        )
    request.refresh_from_db()
    return request


def deny(*, actor: Actor, request: QuotaRequest, note: str, at: datetime) -> QuotaRequest:
    """Say no, with a note that says why. Raises as `_decide`, and Invalid without a note."""
    note = _checked(note, pointer="/note", required=True)
    with transaction.atomic():
        _decide(actor, request, Decision.DENIED, note=note, granted_milli=None, at=at)
    request.refresh_from_db()
    return request


def _decide(
    actor: Actor,
    request: QuotaRequest,
    decision: Decision,
    *,
    note: str,
    granted_milli: int | None,
    at: datetime,
) -> None:
    """Decide once, by compare-and-set.

    Raises NotFound or NotAllowed, SelfApproval to the requester (a CHECK holds that too), Conflict
    when it has been decided.
    """
    access.authorize(actor, Action.DECIDE_REQUEST, project=request.project)
    if request.requested_by_id == actor.user.id:
        raise SelfApproval("Somebody else has to decide your own request.")
    note = _checked(note, pointer="/note", required=False)
    decided = QuotaRequest.objects.filter(id=request.id, decision="").update(
        decision=decision,
        decided_by=actor.user,
        decided_at=at,
        note=note,
        granted_milli=granted_milli,
    )
    if not decided:
        raise Conflict("This request has been decided already.")
    request.refresh_from_db()
    _record(actor, request, f"request.{decision.value}", at)


def _check_amount(milli: int, *, pointer: str) -> None:
    if not 0 <= milli <= quotas.MAX_MILLI:
        raise Invalid(
            f"{milli} is not between 0 and {quotas.MAX_MILLI}.",
            pointer=pointer,
            code="out-of-range",
        )


def _checked(value: str, *, pointer: str, required: bool) -> str:
    value = value.strip()
    fault = text.fault(value, lines=True)
    if fault:
        raise Invalid(f"{fault}: not accepted here.", pointer=pointer, code="bad-character")
    if len(value) > MAX_TEXT:
        raise Invalid(f"At most {MAX_TEXT} characters.", pointer=pointer, code="too-long")
    if required and not value:
        raise Invalid("This can't be empty.", pointer=pointer, code="required")
    return value


def _record(actor: Actor, request: QuotaRequest, action: str, at: datetime) -> None:
    trail.record(
        Entry(
            action=action,
            target_type="quota-request",
            target_id=request.id,
            tenant_id=request.project.tenant_id,
            project_id=request.project_id,
            after={
                "flavor": str(request.flavor_id),
                "nominal_milli": request.nominal_milli,
                "granted_milli": request.granted_milli,
                "decision": request.decision,
                "note": request.note,
            },
        ),
        actor=actor,
        at=at,
    )
