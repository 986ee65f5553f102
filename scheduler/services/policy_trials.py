"""What a policy would have refused lately: tried on what was submitted. Nothing is stored."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Prefetch, Q, QuerySet

from scheduler.core.snapshot import FlavorView, Isolation, SetTopologyView, TopologyView
from scheduler.models import PodSet, PodSetFlavor, Workload
from scheduler.selectors import fleet
from scheduler.services import asking
from scheduler.services.policies import refusals, with_defaults
from scheduler.services.specs import PodSetSpec, WishSpec, WorkloadSpec
from tenants import access, policy
from tenants.access import Action, Actor, Place
from tenants.models import Project
from tenants.policy import Rules, Said
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
    rules alone, as those above held already.

    What it waited for and its gates are not looked at. Raises NotFound or NotAllowed for who may
    not set them, Invalid for rules that can't be, and TooOften.
    """
    access.authorize_at(actor, Action.EDIT_POLICY, place=of)
    policies.check(of=of, rules=rules)
    with asking.turn(actor=actor, at=at):
        since = at - BACK
        found = list(_submitted(actor, of, since)[: MOST + 1])
        flavors = {flavor.name: flavor for flavor in fleet.flavors()}
        chain = (Said(of.name if of else policy_of.FLEET, rules),)
        by_rule, refused = _count(chain, found[:MOST], flavors)
    return Trial(
        since=since,
        looked_at=min(len(found), MOST),
        all_looked_at=len(found) <= MOST,
        refused=refused,
        rules=by_rule,
    )


def _submitted(actor: Actor, of: Place, since: datetime) -> QuerySet[Workload]:
    """The latest first. Of an array, its first element."""
    rows = Workload.objects.filter(submitted_at__gte=since)
    rows = rows.filter(Q(array__isnull=True) | Q(array_index=0))
    if isinstance(of, Project):
        rows = rows.filter(project=of)
    elif of is not None:
        rows = rows.filter(project__tenant__in=actor.tenants_below(of.id))
    pod_sets = PodSet.objects.order_by("position").prefetch_related(
        Prefetch("accepted", PodSetFlavor.objects.select_related("flavor").order_by("position"))
    )
    rows = rows.order_by("-id").select_related("origin")
    return rows.prefetch_related(Prefetch("pod_sets", pod_sets), "clusters")


def _count(
    chain: Sequence[Said], works: Iterable[Workload], flavors: Mapping[str, FlavorView]
) -> tuple[list[TriedRule], int]:
    """By rule, that of which most is refused first; and how many are refused at all."""
    found: dict[str, TriedRule] = {}
    projects: dict[str, set[UUID]] = defaultdict(set)
    refused, told = 0, policy.defaults(chain)
    for work in works:
        said = _spec(work)
        spec = with_defaults(told, said)
        by_rule = {each.rule: each for each in refusals(chain, said, spec, flavors)}
        refused += bool(by_rule)
        for rule, refusal in by_rule.items():
            tried = found.setdefault(rule, TriedRule(rule, refusal.message))
            tried.count += 1
            projects[rule].add(work.project_id)
            tried.projects = len(projects[rule])
    return sorted(found.values(), key=lambda each: (-each.count, each.rule)), refused


def _spec(work: Workload) -> WorkloadSpec:
    """As it was submitted, with the defaults that it got; a normal priority counts as not said."""
    return WorkloadSpec(
        name=work.name,
        pod_sets=tuple(_pod_set(each) for each in work.pod_sets.all()),
        # Nobody knows any more whether it was said.
        priority_class="" if work.priority_class == "normal" else work.priority_class,
        preemptible=work.preemptible,
        move_to_better=work.move_to_better,
        run_time_limit_s=work.run_time_limit_s,
        clusters=tuple(cluster.name for cluster in work.clusters.all()),
        labels=work.labels,
        topology=TopologyView(work.topology_level, work.topology_required)
        if work.topology_level
        else None,
        retries=work.retries,
        grace_s=work.grace_s,
        notice_s=work.notice_s,
        cluster_loss_requeue_s=work.cluster_loss_requeue_s,
        is_caught=hasattr(work, "origin"),
    )


def _pod_set(row: PodSet) -> PodSetSpec:
    accepted = [(each.flavor.name, each.wished) for each in row.accepted.all()]
    return PodSetSpec(
        name=row.name,
        count=row.count,
        min_count=row.min_count,
        cpu_milli=row.cpu_milli,
        memory_mib=row.memory_mib,
        gpu_count=row.gpu_count,
        gpu_milli=row.gpu_milli,
        flavors=tuple(name for name, wished in accepted if not wished),
        image=row.image,
        command=tuple(row.command),
        args=tuple(row.args),
        env=row.env,
        wish=None if row.least_memory_mib is None else WishSpec(row.least_memory_mib),
        wished=tuple(name for name, wished in accepted if wished),
        topology=(
            SetTopologyView(row.topology_level, row.topology_required, row.name)
            if row.topology_level
            else None
        ),
        gpu_memory_mib=row.gpu_memory_mib,
        least_isolation=Isolation(row.least_isolation),
        any_order=row.any_order,
    )
