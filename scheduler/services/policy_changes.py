"""What of the work that came would come otherwise, or not at all, if somebody said another policy:
what a replay plays of it. Nothing is stored."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from scheduler.core.simulating.replay import Arrival
from scheduler.core.snapshot import FlavorView
from scheduler.core.units import WorkloadId
from scheduler.selectors import fleet
from scheduler.services import submissions
from scheduler.services.policies import refusals, with_defaults
from scheduler.services.specs import PRIORITY_CLASSES, WorkloadSpec
from tenants import policy
from tenants.access import Actor, Place
from tenants.policy import Rules, Said
from tenants.selectors import policies as policy_of


class Coming(NamedTuple):
    """What comes as policies are today, and what comes `otherwise` then, None being not at all;
    `refused_by` which rules, which may be several."""

    arrivals: Sequence[Arrival]
    otherwise: Mapping[WorkloadId, Arrival | None] = {}
    refused_by: Mapping[WorkloadId, frozenset[str]] = {}


def coming(
    *, came: Sequence[Arrival], actor: Actor, of: Place, rules: Rules, since: datetime
) -> Coming:
    """Of what was submitted to the place or below it from then on; all else comes as it came.

    What today's policies refuse, which it came before, comes in neither; what only this one would
    permit nobody submitted.
    """
    today = policy_of.everywhere()
    then = today.otherwise(of, rules)
    flavors = {flavor.name: flavor for flavor in fleet.flavors()}
    arrivals = {each.pending.id: each for each in came}
    rows = submissions.below(actor=actor, of=of, since=since).filter(id__in=list(arrivals))
    otherwise: dict[WorkloadId, Arrival | None] = {}
    refused_by: dict[WorkloadId, frozenset[str]] = {}
    for work, said in submissions.said(rows, today=today):
        id = WorkloadId(str(work.id))
        now = _under(today.chain(work.project), arrivals[id], said, flavors)
        if isinstance(now, frozenset):
            del arrivals[id]
            continue
        arrivals[id] = now
        changed = _under(then.chain(work.project), now, said, flavors)
        if isinstance(changed, frozenset):
            otherwise[id], refused_by[id] = None, changed
        elif changed != now:
            otherwise[id] = changed
    return Coming(list(arrivals.values()), otherwise, refused_by)


def _under(
    chain: tuple[Said, ...],
    arrival: Arrival,
    said: WorkloadSpec,
    flavors: Mapping[str, FlavorView],
) -> Arrival | frozenset[str]:
    """As it would come, or by which rules it would be refused."""
    spec = with_defaults(policy.defaults(chain), said)
    refused = refusals(chain, said, spec, flavors)
    if refused:
        return frozenset(each.rule for each in refused)
    limit_s = spec.run_time_limit_s
    pending = replace(
        arrival.pending,
        priority=PRIORITY_CLASSES[spec.priority_class],
        run_time_limit_s=limit_s,
    )
    return Arrival(pending, min(arrival.run_s, limit_s or arrival.run_s))
