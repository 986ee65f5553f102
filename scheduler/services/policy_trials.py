"""What a policy would have refused lately: tried on what was submitted. Nothing is stored."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from uuid import UUID

from django.db.models import Q

from scheduler.selectors import fleet
from scheduler.services import asking, submissions
from scheduler.services.policies import refusals, with_defaults
from tenants import access, policy
from tenants.access import Action, Actor, Place
from tenants.policy import Refusal, Rules
from tenants.selectors import policies as policy_of
from tenants.services import policies

BACK = timedelta(days=7)
MOST = 10_000
"""Submissions that are looked at, the latest."""


@dataclass(slots=True)
class TriedRule:
    """How many submissions it would have refused, of how many projects, and why the latest."""

    rule: str
    example: str
    count: int = 0
    projects: int = 0


@dataclass(frozen=True, slots=True)
class Trial:
    """Of submissions since then: `refused` of those that were `looked_at`, by rule."""

    since: datetime
    looked_at: int
    all_looked_at: bool
    refused: int
    rules: list[TriedRule]


def tried(*, actor: Actor, of: Place, rules: Rules, at: datetime) -> Trial:
    """On what was submitted there in the last BACK, as it was stored, an array being one; by these
    rules alone, as those above held already. Defaults are as they would be with them.

    What it waited for and its gates are not looked at. Raises NotFound or NotAllowed for who may
    not set them, Invalid for rules that can't be, and TooOften.
    """
    access.authorize_at(actor, Action.EDIT_POLICY, place=of)
    policies.check(of=of, rules=rules)
    with asking.turn(actor=actor, at=at):
        since = at - BACK
        # Of an array, its first element.
        rows = submissions.below(actor=actor, of=of, since=since).order_by("-id")
        rows = rows.filter(Q(array__isnull=True) | Q(array_index=0))
        today = policy_of.everywhere()
        then, own = today.otherwise(of, rules), (policy_of.drafted(of, rules),)
        flavors = {flavor.name: flavor for flavor in fleet.flavors()}
        found, count = submissions.said(rows[: MOST + 1], today=today), _Count()
        for work, said in islice(found, MOST):
            spec = with_defaults(policy.defaults(then.chain(work.project)), said)
            count.add(work.project_id, refusals(own, said, spec, flavors))
        all_looked_at = next(found, None) is None
    return Trial(
        since=since,
        looked_at=count.looked_at,
        all_looked_at=all_looked_at,
        refused=count.refused,
        rules=sorted(count.rules.values(), key=lambda each: (-each.count, each.rule)),
    )


@dataclass(slots=True)
class _Count:
    looked_at: int = 0
    refused: int = 0
    rules: dict[str, TriedRule] = field(default_factory=dict)
    projects: dict[str, set[UUID]] = field(default_factory=lambda: defaultdict(set))

    def add(self, project: UUID, refused: list[Refusal]) -> None:
        """One more; a rule that refuses several things of it counts once."""
        self.looked_at += 1
        self.refused += bool(refused)
        for rule, each in {each.rule: each for each in refused}.items():
            tried = self.rules.setdefault(rule, TriedRule(rule, each.message))
            tried.count += 1
            self.projects[rule].add(project)
            tried.projects = len(self.projects[rule])
