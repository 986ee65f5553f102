"""The steps of requests for quota: which each takes, what was said, and whose turn it is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from clusters.models import Flavor
from scheduler.core.quota import equivalents
from scheduler.core.snapshot import FlavorKind
from tenants import ancestry, approval
from tenants.access import Actor
from tenants.approval import Level, Rule, Step
from tenants.models import ApprovalRule, Outcome, QuotaRequest, RequestStep


@dataclass(frozen=True, slots=True)
class Chain:
    """`steps` are all that the request takes as it is, `taken` what was said to this version.
    `tenants`, the project's and those above it from below, and `rules` are by what."""

    steps: tuple[Step, ...]
    taken: tuple[RequestStep, ...]
    tenants: tuple[UUID, ...]
    rules: tuple[Rule, ...]

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
        agreed = (each.granted_milli for each in self._agreed)
        return min((milli or 0 for milli in agreed), default=asked_milli)

    def until(self, asked: datetime | None) -> datetime | None:
        """Until when all agreed so far, None for good; as it was asked where nobody has."""
        ends = [each.until_at for each in self._agreed if each.until_at is not None]
        return min(ends, default=None if self._agreed else asked)

    @property
    def deciders(self) -> frozenset[UUID]:
        """Who has said something to it already, themself or by a delegate, or as one."""
        said = {each.decided_by_id for each in self.taken if each.decided_by_id}
        return frozenset(
            said | {each.on_behalf_of_id for each in self.taken if each.on_behalf_of_id}
        )

    def tenants_above(self, tenant: UUID | None) -> tuple[UUID, ...]:
        """That one and those above it; none where the project is not below it."""
        at = self.tenants.index(tenant) if tenant in self.tenants else len(self.tenants)
        return self.tenants[at:]

    def goes_up(self, request: QuotaRequest, *, at: datetime) -> Step | None:
        """Where the step that is due goes then, for nobody has answered; None is nowhere."""
        days = self._waited(request, at) // timedelta(days=1)
        return approval.goes_up(self.due, tenants=self.tenants, rules=self.rules, waited_days=days)

    def is_overdue(self, request: QuotaRequest, *, at: datetime) -> bool:
        """Whether it has gone up as far as it can, and waits as long again as a rule lets any."""
        limits = [rule.after_days for rule in self.rules if rule.after_days is not None]
        if approval.goes_up(self.due, tenants=self.tenants, rules=self.rules) or not limits:
            return False
        return self._waited(request, at) >= timedelta(days=max(limits))

    def _waited(self, request: QuotaRequest, at: datetime) -> timedelta:
        since = self.taken[-1].decided_at if self.taken else request.requested_at
        return at - since

    @property
    def _agreed(self) -> list[RequestStep]:
        return [each for each in self.taken if each.outcome == Outcome.AGREED]

    @property
    def _done(self) -> list[Step]:
        return [Step(Level(each.level), each.tenant_id) for each in self.taken]


def size_milli(*, flavor: Flavor, nominal_milli: int) -> int:
    """So much of a flavor, in thousandths of a device, rounded up; cores count nothing."""
    each = equivalents.counts_milli(
        kind=FlavorKind(flavor.kind), model=flavor.model, profile=flavor.profile
    )
    return -(-nominal_milli * each // equivalents.DEVICE_MILLI)


def chain(
    *, actor: Actor | None, request: QuotaRequest, nominal_milli: int | None = None
) -> Chain:
    """That of one, as it is or were `nominal_milli` asked. Two queries."""
    return chains(actor=actor, requests=[request], nominal_milli=nominal_milli)[request.id]


def chains(
    *, actor: Actor | None, requests: Sequence[QuotaRequest], nominal_milli: int | None = None
) -> Mapping[UUID, Chain]:
    """By request, of those whose project and flavor are read. Two queries, and the actor's own of
    the tree; None is nobody, who reads it too."""
    if not requests:
        return {}
    parents = actor.tenant_parents if actor else ancestry.parents()
    rows = RequestStep.objects.filter(request__in=requests).order_by("position")
    said: dict[tuple[UUID, int], list[RequestStep]] = {}
    for row in rows.select_related("decided_by", "on_behalf_of", "tenant"):
        said.setdefault((row.request_id, row.version), []).append(row)
    kept = [
        Rule(row.tenant_id, Level(row.level), row.from_milli, row.after_days)
        for row in ApprovalRule.objects.all()
    ]
    return {
        request.id: of(
            request,
            said.get((request.id, request.version), []),
            tenants=tuple(ancestry.ancestors(request.project.tenant_id, parents=parents)),
            rules=kept,
            nominal_milli=nominal_milli,
        )
        for request in requests
    }


def of(
    request: QuotaRequest,
    taken: list[RequestStep],
    *,
    tenants: tuple[UUID, ...],
    rules: Sequence[Rule],
    nominal_milli: int | None = None,
) -> Chain:
    """That of what was asked, or of more where somebody agreed to more, or would. `taken` were to
    its version, in order; `tenants` as Chain has them, `rules` are all."""
    agreed = (each.granted_milli or 0 for each in taken)
    most_milli = max(request.nominal_milli, nominal_milli or 0, *agreed)
    here = tuple(rule for rule in rules if rule.tenant is None or rule.tenant in tenants)
    steps = approval.steps(
        size_milli=size_milli(flavor=request.flavor, nominal_milli=most_milli),
        tenants=tenants,
        rules=here,
        lapsed=[
            Step(Level(each.level), each.tenant_id)
            for each in taken
            if each.outcome == Outcome.LAPSED
        ],
    )
    return Chain(steps, tuple(taken), tenants, here)
