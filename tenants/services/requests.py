"""Asking for quota, and somebody else's answer. Deciding is for people: never for a token."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F

from clusters.models import Flavor
from controlplane.audit.services import Entry
from controlplane.kernel import text
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Decision, Outcome, Project, Quota, QuotaRequest, User
from tenants.selectors import chains
from tenants.selectors.chains import Chain
from tenants.services import asking_bounds, grants, notices, quotas, steps, trail
from tenants.services.grants import Allotment
from tenants.services.previews import Previewed
from tenants.services.quotas import VersionMismatch

MAX_TEXT = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Which versions of a request, and of its quota, 0 for none, the answer is to, and which of
    its steps, from 1."""

    request: int
    quota: int
    step: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What is granted in place of what was asked. It begins when it was asked for."""

    nominal_milli: int
    until_at: datetime | None
    take_back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Of what is asked for at once, whose bounds were checked: what all of it has in common
    (`QuotaRequest.together`), None where it is the only one, and where in the input it stands."""

    together: UUID | None
    pointer: str


def open(  # a verb read through its module: requests.open
    *,
    actor: Actor,
    project: Project,
    flavor: Flavor,
    allotment: Allotment,
    reason: str,
    at: datetime,
    part: Part | None = None,
) -> QuotaRequest:
    """Ask that the project's nominal quota of `flavor` be as `allotment` says; several flavors at
    once are for `asking`.

    Raises NotFound or NotAllowed for the project, Invalid for one that can't be, or asks for no
    more than is there for as long, for a reason that is empty, too long or holds control
    characters, and when too many requests are open, TooOften to who has asked too often.
    """
    access.authorize(actor, Action.REQUEST_QUOTA, project=project)
    reason = _checked(reason, pointer="/reason", required=True)
    pointer = f"{part.pointer if part else ''}/nominal_milli"
    _check_allotment(allotment, project=project, flavor=flavor, at=at, pointer=pointer)
    with transaction.atomic():
        if part is None:
            asking_bounds.check(actor=actor, project=project, at=at)
        request = QuotaRequest.objects.create(
            project=project,
            flavor=flavor,
            reason=reason,
            requested_by=actor.user,
            requested_at=at,
            nominal_milli=allotment.nominal_milli,
            from_at=allotment.from_at,
            until_at=allotment.until_at,
            together=part.together if part else None,
        )
        _record(actor, request, "request.open", at)
        notices.request_waits(request, chains.chain(actor=actor, request=request), at=at)
    return request


def amend(
    *,
    actor: Actor,
    request: QuotaRequest,
    allotment: Allotment,
    reason: str,
    version: int,
    at: datetime,
) -> QuotaRequest:
    """Ask for something else, as the requester: who has seen what was asked before can't grant it
    any more.

    Raises NotFound or NotAllowed, Invalid as `open`, Conflict when it has been decided, and
    VersionMismatch when `version` is not the newest.
    """
    authorize_own(actor, request)
    reason = _checked(reason, pointer="/reason", required=True)
    _check_allotment(allotment, project=request.project, flavor=request.flavor, at=at)
    with transaction.atomic():
        _lock(request, version=version)
        was_agreed_to = bool(chains.chain(actor=actor, request=request).taken)
        QuotaRequest.objects.filter(id=request.id).update(
            version=F("version") + 1,
            reason=reason,
            nominal_milli=allotment.nominal_milli,
            from_at=allotment.from_at,
            until_at=allotment.until_at,
        )
        request.refresh_from_db()
        _record(actor, request, "request.amend", at)
        if was_agreed_to:  # all begins anew; who has not answered yet sees it where it waits
            notices.request_waits(request, chains.chain(actor=actor, request=request), at=at)
    return request


def withdraw(*, actor: Actor, request: QuotaRequest, at: datetime) -> QuotaRequest:
    """Ask no longer, as the requester. Raises NotFound or NotAllowed, Conflict when it has been
    decided."""
    authorize_own(actor, request)
    with transaction.atomic():
        _lock(request)
        _answer(actor, request, Decision.WITHDRAWN, at=at)
    return request


def grant(
    *,
    actor: Actor,
    request: QuotaRequest,
    at: datetime,
    note: str = "",
    given: Given | None = None,
    seen: Seen | None = None,
    previewed: Previewed | None = None,
) -> QuotaRequest:
    """Agree that the project's nominal quota become what was asked, or what is `given` instead,
    from the moment on for which it was asked. Whose step is the last makes it so; until then it
    waits for the next (ADR 0110). None `given` is what was agreed so far. What was `seen` has to
    be what is there; None is anything. The audit tells the effect that was `previewed`, or that
    none was.

    Quota, decision, audit rows and the hint are one transaction. Raises NotFound or NotAllowed,
    also when it is the turn of somebody else, SelfApproval to the requester and to whom they made
    an approver, Conflict when it has been decided, VersionMismatch when request, step or quota are
    not as `seen`, StalePreview when the preview is old, of something else or was shown to somebody
    else, and Invalid for an allotment that can't be, that adds nothing, that is more than was
    agreed before, or that is less without a note.
    """
    access.authorize(actor, Action.VIEW, project=request.project)
    note = check_note(note)
    with transaction.atomic():
        _lock(request, version=seen.request if seen else None)
        chain, for_whom = steps.turn(
            actor=actor, request=request, seen=seen.step if seen else None, at=at
        )
        agreed = Given(
            nominal_milli=chain.most_milli(request.nominal_milli),
            until_at=chain.until(request.until_at),
        )
        given = given or agreed
        allotment = _allotment(request, given, at=at)
        allotment.check(flavor=request.flavor, at=at, pointer="/granted_milli")
        steps.check_no_more(chain, nominal_milli=given.nominal_milli, until_at=given.until_at)
        if _is_less(given, agreed) and not note:
            raise Invalid("Say why it is less than asked.", pointer="/note", code="required")
        if previewed is not None:
            quota = Quota.objects.filter(project=request.project, flavor=request.flavor)
            previewed.check(
                by=actor.user.id,
                request=request.id,
                version=request.version,
                quota_version=quota.values_list("version", flat=True).first() or 0,
                nominal_milli=given.nominal_milli,
                at=at,
            )
        is_last = steps.take(
            actor=actor,
            request=request,
            chain=chain,
            on_behalf_of=for_whom,
            outcome=Outcome.AGREED,
            note=note,
            nominal_milli=given.nominal_milli,
            until_at=given.until_at,
            preview=previewed.digest if previewed else "",
            at=at,
        )
        if not is_last:
            if seen is not None:
                quotas.check_version(
                    owner=request.project, flavor=request.flavor, version=seen.quota
                )
            _record(actor, request, "request.agreed", at, given=given, previewed=previewed,
                    note=note, chain=chain, for_whom=for_whom)  # fmt: skip
            turn = chains.chain(actor=actor, request=request)
            notices.request_waits(request, turn, at=at)
            return request
        _answer(
            actor, request, Decision.GRANTED, note=note, given=given, previewed=previewed,
            for_whom=for_whom, at=at,
        )  # fmt: skip
        grants.give(
            actor=actor,
            request=request,
            allotment=allotment,
            take_back=given.take_back,
            version=seen.quota if seen else None,
            at=at,
        )
    return request


def _allotment(request: QuotaRequest, given: Given, *, at: datetime) -> Allotment:
    """Of what was asked for from a moment on that has come meanwhile, from now on."""
    later = request.from_at if request.from_at is not None and request.from_at > at else None
    return Allotment(nominal_milli=given.nominal_milli, from_at=later, until_at=given.until_at)


def _is_less(given: Given, agreed: Given) -> bool:
    shorter = given.until_at is not None and (
        agreed.until_at is None or given.until_at < agreed.until_at
    )
    return shorter or given.nominal_milli < agreed.nominal_milli


def deny(
    *,
    actor: Actor,
    request: QuotaRequest,
    note: str,
    at: datetime,
    version: int | None = None,
    step: int | None = None,
) -> QuotaRequest:
    """Say no to that version at that step, None for any, with a note that says why; no other step
    follows. Raises as `grant`, and Invalid without a note."""
    access.authorize(actor, Action.VIEW, project=request.project)
    note = check_note(note, required=True)
    with transaction.atomic():
        _lock(request, version=version)
        chain, for_whom = steps.turn(actor=actor, request=request, seen=step, at=at)
        steps.take(
            actor=actor, request=request, chain=chain, on_behalf_of=for_whom,
            outcome=Outcome.DENIED, note=note, at=at,
        )  # fmt: skip
        _answer(actor, request, Decision.DENIED, note=note, for_whom=for_whom, at=at)
    return request


def _lock(request: QuotaRequest, *, version: int | None = None) -> None:
    """Read it anew; it is the caller's until their transaction ends. Raises Conflict when it has
    been decided, VersionMismatch when it is not at that version; None is any."""
    request.refresh_from_db(from_queryset=QuotaRequest.objects.select_for_update())
    if request.decision:
        raise Conflict(f"This request has been decided already: it is {request.decision}.")
    if version is not None and request.version != version:
        raise VersionMismatch(
            f"The request is at version {request.version} by now, not {version}."
        )


def _answer(
    actor: Actor,
    request: QuotaRequest,
    decision: Decision,
    *,
    at: datetime,
    note: str = "",
    given: Given | None = None,
    previewed: Previewed | None = None,
    for_whom: User | None = None,
) -> None:
    """Of one that is locked."""
    request.decision, request.decided_by, request.decided_at = decision, actor.user, at
    request.note, request.granted_milli = note, given.nominal_milli if given else None
    request.save(update_fields=["decision", "decided_by", "decided_at", "note", "granted_milli"])
    _record(actor, request, f"request.{decision.value}", at, given=given, previewed=previewed,
            for_whom=for_whom)  # fmt: skip
    notices.request_answered(request, at=at)


def authorize_own(actor: Actor, request: QuotaRequest) -> None:
    """Raises NotFound or NotAllowed to all but who asked."""
    access.authorize(actor, Action.REQUEST_QUOTA, project=request.project)
    if request.requested_by_id != actor.user.id:
        raise NotAllowed("Only who asked may change what is asked.")


def _check_allotment(
    allotment: Allotment,
    *,
    project: Project,
    flavor: Flavor,
    at: datetime,
    pointer: str = "/nominal_milli",
) -> None:
    allotment.check(flavor=flavor, at=at, pointer=pointer)
    if allotment.from_at is None:
        grants.check_adds(
            Quota.objects.filter(project=project, flavor=flavor).first(),
            allotment,
            project=project,
            flavor=flavor,
            pointer=pointer,
            instead="Ask for what it should become in all.",
        )


def check_note(note: str, *, required: bool = False) -> str:
    """It, without blanks around. Raises Invalid for one that is too long, holds control
    characters, or is empty where one is required."""
    return _checked(note, pointer="/note", required=required)


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


def _record(
    actor: Actor,
    request: QuotaRequest,
    action: str,
    at: datetime,
    *,
    given: Given | None = None,
    previewed: Previewed | None = None,
    note: str = "",
    chain: Chain | None = None,
    for_whom: User | None = None,
) -> None:
    """`chain` is as it was before somebody agreed with that note, who is not the last."""
    granted: dict[str, object] = {}
    if given is not None:
        granted = {
            "granted_until_at": given.until_at.isoformat() if given.until_at else None,
            "take_back": given.take_back,
            "preview": previewed.digest if previewed else None,
            "previewed_at": previewed.as_of.isoformat() if previewed else None,
        }
    if for_whom is not None:
        granted["on_behalf_of"] = str(for_whom.id)
    if given is not None and chain is not None:
        granted |= {
            "granted_milli": given.nominal_milli,
            "note": note,
            "level": chain.due.level,
            "position": chain.position,
        }
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
                "from_at": request.from_at.isoformat() if request.from_at else None,
                "until_at": request.until_at.isoformat() if request.until_at else None,
                "version": request.version,
                "granted_milli": request.granted_milli,
                "decision": request.decision,
                "note": request.note,
                **granted,
            },
        ),
        actor=actor,
        at=at,
    )
