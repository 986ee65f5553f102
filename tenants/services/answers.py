"""One answer to several requests for quota, each for itself: what can't be said to one of them
stops none of the others (ADR 0108)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from controlplane.kernel.errors import AppError, Conflict, Invalid, NotAllowed, NotFound
from tenants.access import Actor
from tenants.models import Decision, QuotaRequest
from tenants.selectors import requests as selectors
from tenants.services import requests
from tenants.services.requests import Seen

MOST = 50
"""Requests that are answered at once: each is a transaction of its own, one after the other."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A request, and what of it was seen."""

    id: UUID
    seen: Seen


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one that was chosen: `request` as it is then, None for one that the actor does
    not see; `refusal` why nothing was said to it, None where something was."""

    id: UUID
    request: QuotaRequest | None
    refusal: AppError | None = None

    @property
    def outcome(self) -> str:
        """granted or denied, agreed where somebody else takes the next step, or refused."""
        if self.refusal is not None or self.request is None:
            return "refused"
        return self.request.decision or "agreed"


def granted(found: Iterable[Answer]) -> list[QuotaRequest]:
    """Those of them whose quota is larger now."""
    return [
        answer.request
        for answer in found
        if answer.request is not None and answer.outcome == Decision.GRANTED
    ]


def grant(
    *, actor: Actor, chosen: Sequence[Chosen], at: datetime, note: str = ""
) -> tuple[Answer, ...]:
    """Agree to each as it was asked, or as those agreed who were asked before.

    Raises Invalid for none, too many or the same twice, and for a note that can't be; what
    `requests.grant` raises of one is its answer.
    """

    def say(request: QuotaRequest, seen: Seen) -> None:
        requests.grant(actor=actor, request=request, note=note, seen=seen, at=at)

    requests.check_note(note)
    return _each(actor, chosen, say)


def deny(*, actor: Actor, chosen: Sequence[Chosen], note: str, at: datetime) -> tuple[Answer, ...]:
    """Say no to each, with the note. Raises as `grant`, and Invalid without a note."""

    def say(request: QuotaRequest, seen: Seen) -> None:
        requests.deny(
            actor=actor, request=request, note=note, version=seen.request, step=seen.step, at=at
        )

    requests.check_note(note, required=True)
    return _each(actor, chosen, say)


def _each(
    actor: Actor, chosen: Sequence[Chosen], say: Callable[[QuotaRequest, Seen], None]
) -> tuple[Answer, ...]:
    ids = [each.id for each in chosen]
    if not 1 <= len(ids) <= MOST:
        raise Invalid(
            f"Choose 1 to {MOST} requests; these are {len(ids)}.",
            pointer="/requests",
            code="out-of-range",
        )
    if len(set(ids)) < len(ids):
        raise Invalid("A request is chosen twice.", pointer="/requests", code="repeated")
    found = {row.id: row for row in selectors.requests(actor=actor).filter(id__in=ids)}
    return tuple(_one(each, found.get(each.id), say) for each in chosen)


def _one(
    chosen: Chosen, request: QuotaRequest | None, say: Callable[[QuotaRequest, Seen], None]
) -> Answer:
    if request is None:
        return Answer(chosen.id, None, NotFound("There is no such quota request."))
    try:
        say(request, chosen.seen)
    except (NotFound, NotAllowed, Conflict, Invalid) as error:
        return Answer(chosen.id, request, error)
    return Answer(chosen.id, request)
