"""The steps of requests for quota: which each takes, what was said, and whose turn it is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from clusters.models import Flavor
from scheduler.core import equivalents
from scheduler.core.snapshot import FlavorKind
from tenants import approval
from tenants.access import Actor
from tenants.approval import Level, Rule, Step
from tenants.models import ApprovalRule, QuotaRequest, RequestStep


@dataclass(frozen=True, slots=True)
class Chain:
    """`steps` are all that the request takes as it is, `taken` what was said to this version."""

    steps: tuple[Step, ...]
    taken: tuple[RequestStep, ...]

    @property
    def position(self) -> int:
        """Of who is next, from 1."""
        return len(self.taken) + 1

    @property
    def due(self) -> Step:
        return approval.due(self.steps, self._done)

    @property
    def later(self) -> tuple[Step, ...]:
        """What follows the one that is due."""
        return approval.left(self.steps, self._done)[1:]

    @property
    def is_last(self) -> bool:
        """Whether who agrees next grants."""
        return not self.later

    @property
    def is_done(self) -> bool:
        return not approval.left(self.steps, self._done)

    def most_milli(self, asked_milli: int) -> int:
        """To how much all agreed so far; what was asked where nobody has."""
        return min((each.granted_milli or 0 for each in self.taken), default=asked_milli)

    def until(self, asked: datetime | None) -> datetime | None:
        """Until when all agreed so far, None for good; as it was asked where nobody has."""
        ends = [each.until_at for each in self.taken if each.until_at is not None]
        return min(ends, default=None if self.taken else asked)

    @property
    def deciders(self) -> frozenset[UUID]:
        """Who has said something to it already, themself or by a delegate, or as one."""
        said = {each.decided_by_id for each in self.taken}
        return frozenset(
            said | {each.on_behalf_of_id for each in self.taken if each.on_behalf_of_id}
        )

    @property
    def _done(self) -> list[Step]:
        return [Step(Level(each.level), each.tenant_id) for each in self.taken]


def size_milli(*, flavor: Flavor, nominal_milli: int) -> int:
    """So much of a flavor, in thousandths of a device, rounded up; cores count nothing."""
    each = equivalents.counts_milli(
        kind=FlavorKind(flavor.kind), model=flavor.model, profile=flavor.profile
    )
    return -(-nominal_milli * each // equivalents.DEVICE_MILLI)


def chain(*, actor: Actor, request: QuotaRequest, nominal_milli: int | None = None) -> Chain:
    """That of one, as it is or were `nominal_milli` asked. Two queries."""
    return chains(actor=actor, requests=[request], nominal_milli=nominal_milli)[request.id]


def chains(
    *, actor: Actor, requests: Sequence[QuotaRequest], nominal_milli: int | None = None
) -> Mapping[UUID, Chain]:
    """By request, of those whose project and flavor are read. Two queries, and the actor's own of
    the tree."""
    if not requests:
        return {}
    rules = [
        Rule(row.tenant_id, Level(row.level), row.from_milli) for row in ApprovalRule.objects.all()
    ]
    said: dict[UUID, list[RequestStep]] = {request.id: [] for request in requests}
    rows = RequestStep.objects.filter(request__in=said).select_related(
        "decided_by", "on_behalf_of", "tenant"
    )
    versions = {request.id: request.version for request in requests}
    for row in rows.order_by("position"):
        if row.version == versions[row.request_id]:
            said[row.request_id].append(row)
    return {
        request.id: Chain(
            approval.steps(
                size_milli=size_milli(
                    flavor=request.flavor,
                    nominal_milli=_most(request, said[request.id], nominal_milli),
                ),
                tenants=list(actor.tenants_above(request.project.tenant_id)),
                rules=rules,
            ),
            tuple(said[request.id]),
        )
        for request in requests
    }


def _most(request: QuotaRequest, taken: Iterable[RequestStep], nominal_milli: int | None) -> int:
    """What was asked, or more where somebody agreed to more, or would."""
    agreed = (each.granted_milli or 0 for each in taken)
    return max(request.nominal_milli, nominal_milli or 0, *agreed)
