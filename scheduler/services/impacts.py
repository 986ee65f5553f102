"""What a grant would do to others, before it is decided: worked out by the core on what waits and
runs now."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from time import perf_counter
from uuid import UUID

from django.db.models import QuerySet

from clusters.models import Flavor
from controlplane.kernel.errors import Conflict, Invalid
from scheduler.core.explaining.whatif import granted
from scheduler.core.quota.quota import Book
from scheduler.core.simulating.impact import Effect, Impact, impact
from scheduler.core.units import FlavorId, ProjectId
from scheduler.selectors import capacity, history, policy
from scheduler.selectors.load import load
from scheduler.services import asking
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Project, Quota, QuotaRequest, User
from tenants.selectors import chains, requests
from tenants.selectors.requests import Cost
from tenants.services import quotas, steps
from tenants.services.previews import Previewed

PASSES = 100
BUDGET_S = 5.0
"""Real seconds after which no further pass is begun: an approver waits for them."""


@dataclass(frozen=True, slots=True)
class Borrowed:
    """What is held of a flavor beyond nominal after the next plan: as things are, and then."""

    flavor: str
    before_milli: int
    after_milli: int


@dataclass(frozen=True, slots=True)
class Told:
    """The effect on a project by name, or, with "" for one, on `projects_count` that the reader
    does not see, of which the longest waits are told."""

    project: str
    tenant: str
    own: bool
    projects_count: int
    waiting_count: int
    before_s: int
    after_s: int
    low_s: int
    high_s: int
    starts_count: int
    evicted_count: int
    returned_milli: Mapping[str, int]
    borrowed: tuple[Borrowed, ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """Of a request at `version`, if `nominal_milli` were granted at once over a quota of
    `quota_version`, as that user sees it. The project's own effect comes first, then who would
    wait longest. `unpromised_before_milli` and `unpromised_after_milli` are what the fleet has of
    the flavor beyond all nominal quotas, so what can be borrowed at any time; negative where more
    is promised than there is. `cost` is None where the flavor has no price."""

    shown_to: UUID
    request: UUID
    version: int
    quota_version: int
    nominal_milli: int
    as_of: datetime
    passes: int
    unpromised_before_milli: int
    unpromised_after_milli: int
    cost: Cost | None
    effects: tuple[Told, ...]

    @property
    def previewed(self) -> Previewed:
        """What a decision by it is bound to."""
        return Previewed.of(
            self,
            shown_to=self.shown_to,
            as_of=self.as_of,
            request=self.request,
            version=self.version,
            quota_version=self.quota_version,
            nominal_milli=self.nominal_milli,
        )


def preview(
    *, actor: Actor, request: QuotaRequest, nominal_milli: int | None, at: datetime
) -> Preview:
    """If the request were granted now, or `nominal_milli` instead of what it asks.

    Raises NotFound or NotAllowed but for who may take the step that is due, themself or for
    somebody, Conflict once it is decided, Invalid for an amount that adds nothing or is part of
    what is handed out whole, and TooOften.
    """
    access.authorize(actor, Action.VIEW, project=request.project)
    if request.decision:
        raise Conflict(f"This request has been decided already: it is {request.decision}.")
    chain = chains.chain(actor=actor, request=request)
    for_whom = steps.authorize(actor=actor, request=request, chain=chain, at=at)
    wanted = request.nominal_milli if nominal_milli is None else nominal_milli
    quotas.check_pieces(wanted, request.flavor, pointer="/nominal_milli")
    quota = Quota.objects.filter(project=request.project, flavor=request.flavor).first()
    more = wanted - (quota.nominal_milli if quota else 0)
    if more <= 0:
        message = "That adds nothing to the quota, so nothing would change."
        raise Invalid(message, pointer="/nominal_milli", code="adds-nothing")
    project, flavor = ProjectId(str(request.project_id)), FlavorId(str(request.flavor_id))
    with asking.turn(actor=actor, at=at):
        begun = perf_counter()
        snapshot = load(at=at).snapshot
        found = impact(
            before=snapshot,
            after=granted(snapshot, project, flavor, more),
            policy=policy.current(),
            run_times=history.run_times(),
            passes=PASSES,
            seed=snapshot.at,
            late=lambda: perf_counter() - begun > BUDGET_S,
        )
    book = Book(cohorts=snapshot.cohorts, queues=snapshot.queues)
    unpromised_milli = capacity.there_milli(flavor=request.flavor) - book.fleet_nominal(
        flavor=flavor
    )
    return Preview(
        shown_to=actor.user.id,
        request=request.id,
        version=request.version,
        quota_version=quota.version if quota else 0,
        nominal_milli=wanted,
        as_of=at,
        passes=found.passes,
        unpromised_before_milli=unpromised_milli,
        unpromised_after_milli=unpromised_milli - more,
        cost=requests.cost(request=request, nominal_milli=wanted, at=at),
        effects=_told(_seen(actor, for_whom), found, project),
    )


def _seen(actor: Actor, for_whom: User | None) -> QuerySet[Project]:
    """Those that are named to the actor: where they decide, or who they stand in for does. That
    shows them none that they don't see."""
    rows = Project.objects.select_related("tenant")
    if for_whom is None:
        return access.for_actor(rows, actor=actor, action=Action.DECIDE_REQUEST)
    approver = access.actor_for(user=for_whom)
    decided = access.for_actor(rows, actor=approver, action=Action.DECIDE_REQUEST)
    return access.for_actor(decided, actor=actor)


def _told(seen: Iterable[Project], found: Impact, own: ProjectId) -> tuple[Told, ...]:
    """With names for ids of those that are seen; all others as one."""
    projects = {ProjectId(str(row.id)): row for row in seen}
    flavors = {FlavorId(str(row.id)): row.name for row in Flavor.objects.all()}
    named = [
        _one(effect, projects[effect.project], flavors, own=effect.project == own)
        for effect in found.effects
        if effect.project in projects
    ]
    others = [effect for effect in found.effects if effect.project not in projects]
    named.sort(key=lambda told: (not told.own, -told.high_s, told.tenant, told.project))
    return tuple([*named, *([_others(others, flavors)] if others else [])])


def _one(effect: Effect, project: Project, flavors: Mapping[FlavorId, str], *, own: bool) -> Told:
    return Told(
        project=project.name,
        tenant=project.tenant.name,
        own=own,
        projects_count=1,
        waiting_count=effect.waiting_count,
        before_s=effect.before_s,
        after_s=effect.after_s,
        low_s=effect.low_s,
        high_s=effect.high_s,
        starts_count=effect.starts_count,
        evicted_count=effect.evicted_count,
        returned_milli=_returned([effect], flavors),
        borrowed=_borrowed([effect], flavors),
    )


def _others(effects: list[Effect], flavors: Mapping[FlavorId, str]) -> Told:
    return Told(
        project="",
        tenant="",
        own=False,
        projects_count=len(effects),
        waiting_count=sum(effect.waiting_count for effect in effects),
        before_s=max(effect.before_s for effect in effects),
        after_s=max(effect.after_s for effect in effects),
        low_s=min(effect.low_s for effect in effects),
        high_s=max(effect.high_s for effect in effects),
        starts_count=sum(effect.starts_count for effect in effects),
        evicted_count=sum(effect.evicted_count for effect in effects),
        returned_milli=_returned(effects, flavors),
        borrowed=_borrowed(effects, flavors),
    )


def _returned(effects: Iterable[Effect], flavors: Mapping[FlavorId, str]) -> dict[str, int]:
    """As `_borrowed`."""
    found = Counter[str]()
    for effect in effects:
        for id, milli in effect.returned_milli.items():
            found[flavors[id]] += milli
    return dict(found)


def _borrowed(effects: Iterable[Effect], flavors: Mapping[FlavorId, str]) -> tuple[Borrowed, ...]:
    """Of all of them together, by the name of the flavor."""
    before, after = Counter[str](), Counter[str]()
    for effect in effects:
        for id, (was, is_) in effect.borrowed_milli.items():
            before[flavors[id]] += was
            after[flavors[id]] += is_
    return tuple(Borrowed(name, before[name], after[name]) for name in sorted(before))
