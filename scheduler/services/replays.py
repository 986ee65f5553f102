"""Who would have waited longer in the last days under another weight, quota or policy, who would
have borrowed, and what it would have cost: their work played again by the core. Nothing is stored.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from time import perf_counter

from django.conf import settings

from clusters.models import Flavor
from scheduler.core.explaining.whatif import requoted, weighted
from scheduler.core.simulating.replay import Arrival, Memory, Played, Replay, Waits, replay
from scheduler.core.snapshot import PastView, QuotaView, Snapshot
from scheduler.core.units import CohortId, FlavorId, ProjectId
from scheduler.selectors import arrivals, policy
from scheduler.selectors.load import load
from scheduler.services import asking, policy_changes
from scheduler.services.policy_changes import Coming
from scheduler.services.replay_uses import Borrowed, Used, Uses
from tenants import access
from tenants.access import Action, Actor, Place
from tenants.models import Project, Tenant
from tenants.policy import Rules
from tenants.selectors import past
from tenants.services import policies, quotas, weights
from tenants.services.quotas import Amounts

BACK = timedelta(days=7)
BUDGET_S = 10.0
"""Real seconds after which a replay tells how far it came: somebody waits for it."""


@dataclass(frozen=True, slots=True)
class RefusedBy:
    """How many a rule of a policy would refuse; others may refuse the same ones."""

    rule: str
    count: int


@dataclass(frozen=True, slots=True)
class Told:
    """A project by name, or, with "" for one, all `projects_count` of those that the reader has no
    say in: the longest waits of any, and counts of all together.

    What is refused, what is cut short and what is held is as `Played` has it. `used` is () where
    the reader may not see what the project spends.
    """

    project: str
    tenant: str
    projects_count: int
    arrivals_count: int
    before: Waits
    after: Waits
    refused_count: int
    cut_count: int
    refused_by: tuple[RefusedBy, ...]
    used: tuple[Used, ...]
    borrowed: tuple[Borrowed, ...]

    @property
    def longer_s(self) -> int:
        """By how much work waits longer on average; negative for who gains."""
        return self.after.mean_s - self.before.mean_s


@dataclass(frozen=True, slots=True)
class Replayed:
    """Of what came from `since` on, or ran then, until `until`. `complete` is whether that is all
    of BACK: not where so much came that only its end was played, or where it took too long. What
    came after `until`, `left_count`, is not played."""

    since: datetime
    until: datetime
    complete: bool
    left_count: int
    step_s: int
    currency: str
    projects: tuple[Told, ...]


def of_weight(*, actor: Actor, of: Project | Tenant, weight: int, at: datetime) -> Replayed:
    """With another weight of a project or a tenant.

    Raises NotFound or NotAllowed for who may not set it, Invalid for one out of range, TooOften.
    """
    if isinstance(of, Project):
        access.authorize(actor, Action.EDIT_QUOTA, project=of)
    else:
        access.authorize_fleet(actor, Action.EDIT_QUOTA)
    weights.check(weight)
    id = ProjectId(str(of.id)) if isinstance(of, Project) else CohortId(str(of.id))
    return _replayed(actor, _Change(fleet=lambda fleet: weighted(fleet, id, weight)), at)


def of_quota(
    *, actor: Actor, project: Project, flavor: Flavor, amounts: Amounts, at: datetime
) -> Replayed:
    """With another quota of a project. Raises as `of_weight`."""
    access.authorize(actor, Action.EDIT_QUOTA, project=project)
    quotas.check(amounts, flavor, there=quotas.of(owner=project, flavor=flavor))
    id = ProjectId(str(project.id))
    quota = QuotaView(
        FlavorId(str(flavor.id)),
        amounts.nominal_milli,
        amounts.borrowing_limit_milli,
        amounts.lending_limit_milli,
    )
    return _replayed(actor, _Change(fleet=lambda fleet: requoted(fleet, id, quota)), at)


def of_policy(*, actor: Actor, of: Place, rules: Rules, at: datetime) -> Replayed:
    """With another policy of a place, of what came since BACK: what was there is not touched.

    Raises NotFound or NotAllowed for who may not say it, Invalid as `policies.check`, TooOften.
    """
    access.authorize_at(actor, Action.EDIT_POLICY, place=of)
    policies.check(of=of, rules=rules)

    def coming(came: Sequence[Arrival], since: datetime) -> Coming:
        return policy_changes.coming(came=came, actor=actor, of=of, rules=rules, since=since)

    return _replayed(actor, _Change(coming=coming, decided_by=Action.EDIT_POLICY), at)


@dataclass(frozen=True, slots=True)
class _Change:
    """What differs: the fleet, or what comes to it. Who may do `decided_by` to a project is told
    of it by name."""

    fleet: Callable[[Snapshot], Snapshot] = lambda fleet: fleet
    coming: Callable[[Sequence[Arrival], datetime], Coming] = lambda came, _: Coming(came)
    decided_by: Action = Action.EDIT_QUOTA


def _replayed(actor: Actor, change: _Change, at: datetime) -> Replayed:
    with asking.turn(actor=actor, at=at):
        begun = perf_counter()
        since = at - BACK
        came, all_there = arrivals.arrivals(since=since, at=at)
        if not all_there:
            first = min(each.pending.submitted_at for each in came)
            since = max(since, datetime.fromtimestamp(first, UTC))
        comes = change.coming(came, since)
        fleet = _idle(load(at=at).snapshot, since)
        found = replay(
            before=fleet,
            after=change.fleet(fleet),
            arrivals=comes.arrivals,
            otherwise=comes.otherwise,
            policy=policy.current(),
            memory=Memory(past.kept_each_day()),
            until=int(at.timestamp()),
            late=lambda: perf_counter() - begun > BUDGET_S,
        )
    return Replayed(
        since=since,
        until=datetime.fromtimestamp(found.until, UTC),
        complete=all_there and found.until >= int(at.timestamp()),
        left_count=sum(each.pending.submitted_at > found.until for each in comes.arrivals),
        step_s=found.step_s,
        currency=settings.BERTH_CURRENCY,
        projects=_told(actor, change.decided_by, found, comes, Uses(at=at)),
    )


def _idle(fleet: Snapshot, since: datetime) -> Snapshot:
    """As it is now, at that time, and with what fair share remembered then."""
    used: dict[str, list[PastView]] = {}
    for (project, flavor), milli_s in past.decayed(at=since).items():
        used.setdefault(project, []).append(PastView(FlavorId(flavor), milli_s))
    queues = tuple(
        replace(queue, past=tuple(used.get(queue.project, ()))) for queue in fleet.queues
    )
    return replace(fleet, at=int(since.timestamp()), queues=queues)


def _told(
    actor: Actor, decided_by: Action, found: Replay, comes: Coming, uses: Uses
) -> tuple[Told, ...]:
    """Of whom most is refused first, then who would wait longer; those whom the reader does not
    decide about as one."""
    rules: defaultdict[ProjectId, Counter[str]] = defaultdict(Counter)
    for each in comes.arrivals:
        if each.pending.submitted_at <= found.until:
            rules[each.pending.project].update(comes.refused_by.get(each.pending.id, ()))
    seen = access.for_actor(
        Project.objects.select_related("tenant"), actor=actor, action=decided_by
    )
    projects = {ProjectId(str(row.id)): row for row in seen}
    named, others = list[Told](), list[Played]()
    for played in found.projects:
        project = projects.get(played.project)
        if project is None:
            others.append(played)
            continue
        may_see = access.allowed(actor, Action.VIEW_SPEND, project=project)
        used = uses.used(played) if may_see else ()
        named.append(_one(played, project, rules[played.project], used, uses.borrowed([played])))
    named.sort(key=lambda told: (-told.refused_count, -told.longer_s, told.tenant, told.project))
    return tuple([*named, *([_others(others, rules, uses)] if others else [])])


def _one(
    of: Played,
    project: Project,
    rules: Counter[str],
    used: tuple[Used, ...],
    borrowed: tuple[Borrowed, ...],
) -> Told:
    return Told(
        project=project.name,
        tenant=project.tenant.name,
        projects_count=1,
        arrivals_count=of.arrivals_count,
        before=of.before,
        after=of.after,
        refused_count=of.refused_count,
        cut_count=of.cut_count,
        refused_by=_by_rule([rules]),
        used=used,
        borrowed=borrowed,
    )


def _others(played: Sequence[Played], rules: Mapping[ProjectId, Counter[str]], uses: Uses) -> Told:
    return Told(
        project="",
        tenant="",
        projects_count=len(played),
        arrivals_count=sum(each.arrivals_count for each in played),
        before=_all(each.before for each in played),
        after=_all(each.after for each in played),
        refused_count=sum(each.refused_count for each in played),
        cut_count=sum(each.cut_count for each in played),
        refused_by=_by_rule(rules[each.project] for each in played),
        used=(),
        borrowed=uses.borrowed(played),
    )


def _by_rule(counts: Iterable[Counter[str]]) -> tuple[RefusedBy, ...]:
    """That which refuses most first."""
    rules = sum(counts, Counter[str]())
    found = (RefusedBy(rule, count) for rule, count in rules.items())
    return tuple(sorted(found, key=lambda each: (-each.count, each.rule)))


def _all(waits: Iterable[Waits]) -> Waits:
    each = list(waits)
    return Waits(
        mean_s=max(one.mean_s for one in each),
        p90_s=max(one.p90_s for one in each),
        waiting_count=sum(one.waiting_count for one in each),
        evictions_count=sum(one.evictions_count for one in each),
    )
