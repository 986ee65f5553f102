"""Who may decide a request for quota: nobody who asks, nobody by who asks (ADR 0109), and each
step by another person whose role is of its level (ADR 0110)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from tenants import access
from tenants.access import ROLE_ACTIONS, Action, Actor, Lent
from tenants.approval import Level, Step
from tenants.models import Delegation, Member, QuotaRequest, Role, User
from tenants.selectors.chains import Chain

_SPOKEN = "You have agreed to it already: somebody else has to take the next step."
DECIDING = [role for role in Role if Action.DECIDE_REQUEST in ROLE_ACTIONS[role]]


@dataclass(frozen=True, slots=True)
class Standing:
    """In whose place somebody may take the step that is due: None is their own. Where they may
    not, `refused` says why; `is_own` whether for a lack of independence."""

    on_behalf_of: User | None = None
    refused: str = ""
    is_own: bool = False


def standing(*, actor: Actor, request: QuotaRequest, chain: Chain, lent: Lent) -> Standing:
    """Of somebody who sees the request. Their own role goes before those that they are `lent`."""
    if Action.DECIDE_REQUEST not in actor.ceiling:
        whom = "A token" if actor.token else "The break-glass account"
        return Standing(refused=f"{whom} decides nothing.")
    asker = request.requested_by
    if asker == actor.user:
        return Standing(refused=refusal(actor=actor, request=request), is_own=True)
    if actor.user.id in chain.deciders:
        return Standing(refused=_SPOKEN)
    if access.allowed(actor, Action.DECIDE_REQUEST, project=request.project):
        refused = refusal(actor=actor, request=request)
        own = Standing(
            refused=refused or turn_refusal(actor=actor, request=request, chain=chain),
            is_own=refused != "",
        )
    else:
        own = Standing(refused="Your role does not permit to decide it.")
    if not own.refused:
        return own
    for approver, roles in lent.items():
        if approver.id in chain.deciders:
            whom = approver.get_username()
            own = Standing(refused=f"{whom}, for whom you stand in, has agreed to it already.")
        elif approver != asker and may_step(roles, request, chain):
            return Standing(on_behalf_of=approver)
    if asker in lent:
        return Standing(refused=f"You stand in for {asker.get_username()}, who asks.", is_own=True)
    return own


def may_step(roles: Iterable[Member], request: QuotaRequest, chain: Chain) -> bool:
    """Whether who has those roles may take the step that is due."""
    return _covers(roles, request, chain.due, chain)


def is_coming(*, actor: Actor, request: QuotaRequest, chain: Chain) -> bool:
    """Whether it is not the actor's to decide now, but a later step would be."""
    if actor.user.id in {request.requested_by_id, *chain.deciders}:
        return False
    if Action.DECIDE_REQUEST not in actor.ceiling or may_step(actor.memberships, request, chain):
        return False
    return any(_covers(actor.memberships, request, step, chain) for step in chain.later)


def refusal(*, actor: Actor, request: QuotaRequest) -> str:
    """Why somebody whose role permits to decide is not independent of who asked; "" where they
    are."""
    if request.requested_by_id == actor.user.id:
        return "Somebody else has to decide your own request."
    if access.allowed(
        actor,
        Action.DECIDE_REQUEST,
        project=request.project,
        apart_from=request.requested_by_id,
    ):
        return ""
    asker = request.requested_by.get_username()
    return (
        f"You may decide here only through a role that {asker}, who asks, gave to you or to who"
        f" gave it to you: somebody has to decide whose role does not come from {asker}."
    )


def turn_refusal(*, actor: Actor, request: QuotaRequest, chain: Chain) -> str:
    """Why somebody independent can't take the step that is due; "" where they can."""
    if actor.user.id in chain.deciders:
        return _SPOKEN
    if not may_step(actor.memberships, request, chain):
        turn = of_level(chain.due.level)
        return f"It is the turn of {turn}, and your role is not of that level."
    return ""


def of_level(level: Level) -> str:
    """Who that is, in words."""
    match level:
        case Level.PROJECT:
            return "an approver of the project or above"
        case Level.TENANT:
            return "an approver of a tenant above the project"
        case Level.FLEET:
            return "an approver of the whole fleet"


def _covers(roles: Iterable[Member], request: QuotaRequest, step: Step, chain: Chain) -> bool:
    return any(_counts(role, request, step, chain) for role in roles)


def able(
    *,
    members: Iterable[Member],
    delegations: Iterable[Delegation],
    request: QuotaRequest,
    step: Step,
    chain: Chain,
) -> tuple[dict[UUID, User], list[Delegation]]:
    """Those of `members`, of whom all roles that decide are read, who may take that step, by id,
    and by which of `delegations` others stand in for them."""
    out = {request.requested_by_id, *chain.deciders}
    own = {
        member.user_id: member.user
        for member in members
        if member.user_id not in out and _counts(member, request, step, chain)
    }
    others = [
        each
        for each in delegations
        if each.approver_id in own and each.delegate_id not in out | own.keys()
    ]
    return own, others


def names(own: dict[UUID, User], others: Iterable[Delegation]) -> list[str]:
    """What `able` found, as it is told."""
    stand_in = {
        f"{each.delegate.get_username()} for {each.approver.get_username()}" for each in others
    }
    return sorted({user.get_username() for user in own.values()} | stand_in)


def members() -> Sequence[Member]:
    """Who holds a role that decides anywhere, and can sign in. One query."""
    rows = Member.objects.filter(
        role__in=DECIDING, user__is_active=True, user__is_break_glass=False
    )
    return list(rows.select_related("user"))


def _counts(member: Member, request: QuotaRequest, step: Step, chain: Chain) -> bool:
    """Whether it is a role to decide by, of that step's level, that did not come through who
    asked."""
    if Role(member.role) not in DECIDING or member.came_through(request.requested_by_id):
        return False
    if member.tenant_id is None and member.project_id is None:
        return True
    match step.level:
        case Level.PROJECT:
            return member.project_id == request.project_id or member.tenant_id in chain.tenants
        case Level.TENANT:
            return member.tenant_id in chain.tenants_above(step.tenant)
        case Level.FLEET:
            return False
