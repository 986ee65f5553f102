"""Requests for quota and what came of them, as far as an actor may see."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from uuid import UUID

from django.db.models import (
    BooleanField,
    ExpressionWrapper,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
)
from django.db.models.functions import Coalesce

from controlplane.kernel.errors import NotFound
from tenants import access, pricing
from tenants.access import Action, Actor, Lent
from tenants.models import Grant, Project, Quota, QuotaRequest
from tenants.selectors import chains, deciders, prices, tree
from tenants.selectors.beside import Beside, beside
from tenants.selectors.chains import Chain
from tenants.selectors.open_chains import open_chains
from tenants.selectors.quotas import narrowed
from tenants.selectors.step_lines import StepLine, step_lines
from tenants.selectors.tree import QuotaLine

MOST_OPEN = 100
"""Open requests that are looked at, the oldest."""
MONTH = timedelta(days=30)
"""For which the cost of what is asked for good is told."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What it costs at most to use all that a request adds, at the prices of now: where it is
    cheapest, and where it is dearest. `days` is for how long."""

    low: Decimal
    high: Decimal
    currency: str
    days: int


@dataclass(frozen=True, slots=True)
class GrantLine:
    """What came of a request that was granted. `quota_version` as in `Grant`."""

    id: UUID
    from_at: datetime
    until_at: datetime | None
    state: str
    flavor_id: UUID
    quota_version: int | None
    may_end: bool


@dataclass(frozen=True, slots=True)
class QuotaRequestLine:
    """A request for quota and, while it is open, the quota as it is now and what more of it would
    cost, None where the flavor has no price."""

    id: UUID
    project: str
    project_id: UUID
    tenant: str
    flavor: str
    nominal_milli: int
    from_at: datetime | None
    until_at: datetime | None
    version: int
    reason: str
    requested_by: str
    requested_at: datetime
    own: bool
    decision: str
    decided_by: str
    decided_at: datetime | None
    note: str
    granted_milli: int | None
    quota: QuotaLine | None
    cost: Cost | None
    grant: GrantLine | None
    may_decide: bool
    for_whom: str
    is_coming: bool
    steps: tuple[StepLine, ...]
    beside: tuple[Beside, ...]

    @property
    def step(self) -> int:
        """Which one is due, from 1."""
        return 1 + sum(step.decided_at is not None for step in self.steps)

    @property
    def is_last_step(self) -> bool:
        """Whether who agrees now grants."""
        return self.step >= len(self.steps)

    @property
    def most_milli(self) -> int:
        """To how much all agreed so far, or what was asked."""
        agreed = [step.granted_milli for step in self.steps if step.granted_milli is not None]
        return min(agreed, default=self.nominal_milli)

    @property
    def most_until_at(self) -> datetime | None:
        """The same of until when; None is for good."""
        agreed = [step for step in self.steps if step.granted_milli is not None]
        ends = [step.until_at for step in agreed if step.until_at is not None]
        return min(ends, default=None if agreed else self.until_at)

    @property
    def state(self) -> str:
        return self.decision or "open"

    @property
    def quota_version(self) -> int:
        return self.quota.version if self.quota else 0

    @property
    def seen(self) -> str:
        """Which versions and step the reader is shown, for an answer to several."""
        return f"{self.id} {self.version} {self.quota_version} {self.step}"


def requests(
    *,
    actor: Actor,
    project_id: UUID | None = None,
    flavor: str | None = None,
    decisions: tuple[str, ...] | None = None,
) -> QuerySet[QuotaRequest]:
    """Requests with what a list shows; order them by -id. `decisions` may hold "" for undecided.

    Each has `quota_version` and `nominal_now_milli`, of the quota as it is now, 0 for none. Raises
    NotFound for the project.
    """
    quota = Quota.objects.filter(project=OuterRef("project"), flavor=OuterRef("flavor"))
    none = Value(0, output_field=IntegerField())
    rows = QuotaRequest.objects.select_related(
        "project__tenant", "flavor", "requested_by", "decided_by", "grant"
    ).annotate(
        quota_version=Coalesce(Subquery(quota.values("version")), none),
        nominal_now_milli=Coalesce(Subquery(quota.values("nominal_milli")), none),
    )
    found: QuerySet[QuotaRequest] = narrowed(
        rows, actor=actor, project_id=project_id, flavor=flavor
    )
    return found if decisions is None else found.filter(decision__in=decisions)


def request(*, actor: Actor, id: UUID) -> QuotaRequest:
    """One request, with what `requests` has. Raises NotFound."""
    return access.get_or_404(requests(actor=actor), actor=actor, id=id)


def grant(*, actor: Actor, request_id: UUID) -> Grant:
    """What was granted of a request. Raises NotFound, also where nothing was."""
    rows = Grant.objects.select_related("request__project", "request__flavor")
    found = access.for_actor(rows, actor=actor).filter(request=request_id).first()
    if found is None:
        raise NotFound("There is no such grant.")
    return found


def cost(*, request: QuotaRequest, nominal_milli: int, at: datetime) -> Cost | None:
    """Of granting so much for the time for which it asks, None where the flavor has no price.
    Three queries."""
    found = _costs([request], _current([request]), at=at, nominal_milli=nominal_milli)
    return found.get(request.id)


def open_lines(
    *, actor: Actor, at: datetime, detailed: bool = False, limit: int = MOST_OPEN
) -> tuple[QuotaRequestLine, ...]:
    """What waits for an answer, oldest first: before others the actor's own, and where they may
    decide by a role of theirs; `detailed` with its steps, what it would cost and what was asked
    for with it. Four queries, or nine, one where nothing waits, and the actor's own of the tree
    and of what they are lent; one more where several were asked for at once."""
    rows = access.for_actor(QuotaRequest.objects.filter(decision=""), actor=actor)
    decided = Project.objects.filter(access.visible_projects(actor, Action.DECIDE_REQUEST))
    theirs = Q(requested_by=actor.user) | Q(project__in=decided.values("id"))
    of_others = ExpressionWrapper(~theirs, output_field=BooleanField())
    found = _related(rows.order_by(of_others, "id")[:limit])
    quotas = _current(found)
    costs = _costs(found, quotas, at=at) if detailed else {}
    of = chains.chains(actor=actor, requests=found)
    shown = found if detailed else []
    steps = step_lines(requests=shown, chains=of, at=at)
    others = beside(requests=shown)
    return tuple(
        _line(
            row,
            actor=actor,
            quota=quotas.get(_key(row)),
            cost=costs.get(row.id),
            chain=of[row.id],
            steps=steps.get(row.id, ()),
            lent=actor.lent(at=at),
            others=others.get(row.id, ()),
        )
        for row in found
    )


def decided_lines(
    *, actor: Actor, before: UUID | None = None, limit: int = 20
) -> tuple[tuple[QuotaRequestLine, ...], UUID | None]:
    """The answered ones, those answered last first, and the id to go on from, None at the end. One
    query, one more where several were asked for at once, and one more to go on. Raises NotFound
    for what to go on from."""
    rows = access.for_actor(QuotaRequest.objects.exclude(decision=""), actor=actor)
    if before is not None:
        last_at = rows.filter(id=before).values_list("decided_at", flat=True).first()
        if last_at is None:
            raise NotFound("There is no such answered request.")
        rows = rows.filter(Q(decided_at__lt=last_at) | Q(decided_at=last_at, id__lt=before))
    found = _related(rows.order_by("-decided_at", "-id")[: limit + 1])
    others = beside(requests=found)
    lines = tuple(_line(row, actor=actor, others=others.get(row.id, ())) for row in found[:limit])
    return lines, found[limit - 1].id if len(found) > limit else None


def to_decide_count(*, actor: Actor, at: datetime) -> int:
    """Of the oldest hundred open requests, those that the actor may decide then. Two queries,
    none where they decide nothing, and the actor's own of what they are lent."""
    lent = actor.lent(at=at)
    if not lent and not any(role.role in deciders.DECIDING for role in actor.memberships):
        return 0
    action = Action.VIEW if lent else Action.DECIDE_REQUEST
    waiting = open_chains(actor=actor, action=action, most=MOST_OPEN)
    return sum(
        not deciders.standing(actor=actor, request=row, chain=chain, lent=lent).refused
        for row, chain in waiting
    )


def _related(rows: QuerySet[QuotaRequest]) -> list[QuotaRequest]:
    related = ("project__tenant", "flavor", "requested_by", "decided_by", "grant")
    return list(rows.select_related(*related))


def _key(row: QuotaRequest) -> tuple[UUID, UUID]:
    """That of its quota."""
    return row.project_id, row.flavor_id


def _line(
    row: QuotaRequest,
    *,
    actor: Actor,
    quota: QuotaLine | None = None,
    cost: Cost | None = None,
    chain: Chain | None = None,
    steps: tuple[StepLine, ...] = (),
    lent: Lent = MappingProxyType({}),
    others: tuple[Beside, ...] = (),
) -> QuotaRequestLine:
    """`chain`, `steps` and what the actor is `lent` are of one that is open."""
    standing = None
    if chain is not None:
        standing = deciders.standing(actor=actor, request=row, chain=chain, lent=lent)
    for_whom = standing.on_behalf_of if standing else None
    return QuotaRequestLine(
        id=row.id,
        project=row.project.name,
        project_id=row.project_id,
        tenant=row.project.tenant.name,
        flavor=row.flavor.name,
        nominal_milli=row.nominal_milli,
        from_at=row.from_at,
        until_at=row.until_at,
        version=row.version,
        reason=row.reason,
        requested_by=row.requested_by.get_username(),
        requested_at=row.requested_at,
        own=row.requested_by_id == actor.user.id,
        decision=row.decision,
        decided_by=row.decided_by.get_username() if row.decided_by else "",
        decided_at=row.decided_at,
        note=row.note,
        granted_milli=row.granted_milli,
        quota=quota,
        cost=cost,
        grant=_grant_line(row, actor=actor),
        may_decide=standing is not None and not standing.refused,
        for_whom=for_whom.get_username() if for_whom else "",
        is_coming=chain is not None and deciders.is_coming(actor=actor, request=row, chain=chain),
        steps=steps,
        beside=others,
    )


def _grant_line(row: QuotaRequest, *, actor: Actor) -> GrantLine | None:
    """None of what is not granted, or was before grants were kept."""
    if not hasattr(row, "grant"):
        return None
    of = row.grant
    may_end = not of.is_over and (of.begun_at is None or of.until_at is not None)
    return GrantLine(
        id=of.id,
        from_at=of.from_at,
        until_at=of.until_at,
        state=of.state,
        flavor_id=row.flavor_id,
        quota_version=of.quota_version,
        may_end=may_end and access.allowed(actor, Action.DECIDE_REQUEST, project=row.project),
    )


def _current(requests: Sequence[QuotaRequest]) -> dict[tuple[UUID, UUID], QuotaLine]:
    """(project, flavor) → the quota now."""
    if not requests:
        return {}
    projects = {row.project_id for row in requests}
    rows = Quota.objects.filter(project_id__in=projects).select_related("flavor")
    return {(quota.project_id, quota.flavor_id): tree.quota_line(quota) for quota in rows}


def _costs(
    requests: Sequence[QuotaRequest],
    quotas: Mapping[tuple[UUID, UUID], QuotaLine],
    *,
    at: datetime,
    nominal_milli: int | None = None,
) -> dict[UUID, Cost]:
    """By request: of what it asks, or of `nominal_milli` instead. Two queries."""
    if not requests:
        return {}
    priced = prices.at_moment(at=at)
    projects = {row.project_id for row in requests}
    for_a_time = list(
        Grant.objects.filter(Grant.for_a_time(), request__project__in=projects).select_related(
            "request"
        )
    )
    found = {}
    for row in requests:
        span = priced.anywhere(flavor_id=row.flavor_id)
        if span is None:
            continue
        quota = quotas.get(_key(row))
        there = [grant for grant in for_a_time if _key(grant.request) == _key(row)]
        lasting_milli = Grant.lasting_milli(
            there, nominal_milli=quota.nominal_milli if quota else 0, until_at=row.until_at
        )
        wanted_milli = row.nominal_milli if nominal_milli is None else nominal_milli
        lasts = MONTH
        if row.until_at is not None:
            lasts = max(row.until_at - max(row.from_at or at, at), timedelta(0))
        low, high = (
            pricing.charge(
                amount_milli=max(0, wanted_milli - lasting_milli),
                held=lasts,
                price_per_hour=price.per_hour,
            )
            for price in span
        )
        days = -(-lasts // timedelta(days=1))  # a started one counts
        found[row.id] = Cost(low, high, span[0].currency, days)
    return found
