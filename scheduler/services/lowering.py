"""Who would have to go if a quota were lowered: worked out by the core on what there is now, and
stored nowhere."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from clusters.models import Flavor
from scheduler.core.faults import faults
from scheduler.core.held.victims import Victim
from scheduler.core.quota.quota import Book
from scheduler.core.snapshot import QuotaView
from scheduler.core.sound import sound
from scheduler.core.stopping.enforce import Owner, lowered, would_go
from scheduler.core.units import CohortId, FlavorId, ProjectId, WorkloadId
from scheduler.models import Workload
from scheduler.selectors import guarantees
from scheduler.selectors.load import load
from scheduler.services import asking
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Project, Tenant
from tenants.services import quotas


@dataclass(frozen=True, slots=True)
class Loss:
    """A workload that would be stopped, or `pods_count` pods of it where it is not `whole`, and
    the work lost by that, in thousandths of devices x seconds. `preemptible`: for others, too."""

    workload: WorkloadId
    name: str
    project: str
    whole: bool
    pods_count: int
    lost_milli_s: int
    preemptible: bool


@dataclass(frozen=True, slots=True)
class Preview:
    """`losses` in the order in which they would go. `over_milli` is how much more is held than
    the quota would allow, and `stays_milli` what of that may not be preempted. `warnings` are of
    what such quotas would promise in vain."""

    losses: tuple[Loss, ...]
    over_milli: int
    stays_milli: int
    warnings: tuple[str, ...]

    @property
    def lost_milli_s(self) -> int:
        return sum(loss.lost_milli_s for loss in self.losses)


def preview(
    *,
    actor: Actor,
    owner: Project | Tenant,
    flavor: Flavor,
    amounts: quotas.Amounts,
    at: datetime,
    version: int | None = None,
) -> Preview:
    """If the project's, or tenant's, quota of the flavor were `amounts`, enforced now.

    Raises NotFound or NotAllowed for who may not set it, Invalid for amounts that could not be
    set, VersionMismatch where it is no longer at the `version` that the caller saw, and TooOften.
    """
    id: Owner
    if isinstance(owner, Project):
        access.authorize(actor, Action.EDIT_QUOTA, project=owner)
        id = ProjectId(str(owner.id))
    else:
        access.authorize_fleet(actor, Action.EDIT_QUOTA)
        id = CohortId(str(owner.id))
    there = quotas.of(owner=owner, flavor=flavor)
    quotas.check(amounts, flavor, there=there)
    quotas.check_seen(there, version)
    quota = QuotaView(
        FlavorId(str(flavor.id)),
        amounts.nominal_milli,
        amounts.borrowing_limit_milli,
        amounts.lending_limit_milli,
    )
    with asking.turn(actor=actor, at=at):
        snapshot = load(at=at).snapshot
        found = would_go(sound(snapshot, faults(snapshot)), id, quota)
        after = lowered(snapshot, id, quota)
        book = Book(cohorts=after.cohorts, queues=after.queues)
        warned = guarantees.told(book, flavor, owner)
    return Preview(losses(found.victims), found.over_milli, found.stays_milli, warned)


def losses(victims: Iterable[Victim]) -> tuple[Loss, ...]:
    """Of each workload, in the order of its first victim."""
    of: dict[WorkloadId, list[Victim]] = {}
    for victim in victims:
        of.setdefault(victim.held.holding.id, []).append(victim)
    rows = Workload.objects.filter(id__in=of).values_list("id", "name", "project__name")
    names = {str(id): (name, project) for id, name, project in rows}
    return tuple(
        Loss(
            workload,
            *names.get(workload, ("", "")),
            whole=each[0].held.is_whole,
            pods_count=sum(len(victim.held.placements) for victim in each),
            lost_milli_s=sum(victim.cost[2] for victim in each),
            preemptible=each[0].held.holding.preemptible,
        )
        for workload, each in of.items()
    )
