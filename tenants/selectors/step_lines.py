"""The steps of requests for quota as pages and API show them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tenants.approval import Level, Step
from tenants.models import Delegation, Member, QuotaRequest, Tenant
from tenants.selectors import deciders, delegations
from tenants.selectors.chains import Chain

_PLACES = {Level.PROJECT: "the project", Level.FLEET: "the whole fleet"}


@dataclass(frozen=True, slots=True)
class StepLine:
    """Whom a request needs the agreement of, and what was said: `who` may say it, where nobody
    has. `state` is agreed, denied, lapsed, overdue, due or later."""

    level: Level
    place: str
    state: str
    who: tuple[str, ...] = ()
    decided_by: str = ""
    on_behalf_of: str = ""
    decided_at: datetime | None = None
    granted_milli: int | None = None
    until_at: datetime | None = None
    note: str = ""


def step_lines(
    *,
    requests: Sequence[QuotaRequest],
    chains: Mapping[UUID, Chain],
    at: datetime,
) -> dict[UUID, tuple[StepLine, ...]]:
    """The steps of requests, by their chains, and who may take them then. Three queries,
    none without requests."""
    if not requests:
        return {}
    able, for_others = deciders.members(), delegations.live(at=at)
    names = {tenant.id: tenant.name for tenant in Tenant.objects.all()}
    return {
        row.id: tuple(
            _step_lines(
                row,
                chains[row.id],
                able=able,
                for_others=for_others,
                names=names,
                at=at,
            )
        )
        for row in requests
    }


def _step_lines(
    row: QuotaRequest,
    chain: Chain,
    *,
    able: Sequence[Member],
    for_others: Sequence[Delegation],
    names: Mapping[UUID, str],
    at: datetime,
) -> Iterator[StepLine]:
    def place(step: Step) -> str:
        return names[step.tenant] if step.tenant else _PLACES[step.level]

    for said in chain.taken:
        yield StepLine(
            level=Level(said.level),
            place=place(Step(Level(said.level), said.tenant_id)),
            state=said.outcome,
            decided_by=said.decided_by.get_username() if said.decided_by else "",
            on_behalf_of=said.on_behalf_of.get_username() if said.on_behalf_of else "",
            decided_at=said.decided_at,
            granted_milli=said.granted_milli,
            until_at=said.until_at,
            note=said.note,
        )
    turn = "overdue" if chain.is_overdue(row, at=at) else "due"
    for step in () if row.decision else (chain.due, *chain.later):
        yield StepLine(
            level=step.level,
            place=place(step),
            state=turn if step == chain.due else "later",
            who=tuple(
                deciders.names(
                    *deciders.able(
                        members=able,
                        delegations=for_others,
                        request=row,
                        step=step,
                        chain=chain,
                    )
                )
            ),
        )
