"""Who may decide a request for quota: nobody who asks, and nobody by who asks (ADR 0109)."""

from tenants import access
from tenants.access import Action, Actor
from tenants.models import QuotaRequest


def may_decide(*, actor: Actor, request: QuotaRequest) -> bool:
    """Whether the actor's answer to an open request would count."""
    permitted = access.allowed(actor, Action.DECIDE_REQUEST, project=request.project)
    return permitted and not refusal(actor=actor, request=request)


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
