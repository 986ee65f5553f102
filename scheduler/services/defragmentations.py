"""Planned defragmentation: what it would move now, and planning it for a window."""

from datetime import datetime, timedelta

from django.db import IntegrityError, transaction

from clusters.models import Cluster, Node
from controlplane.audit import services as audit
from controlplane.kernel.errors import Conflict, Invalid
from scheduler.core.moving.defragment import Proposal, defragment
from scheduler.core.units import ONE_MILLI, ClusterId
from scheduler.models import Defragmentation, Workload
from scheduler.selectors.load import load

LONGEST = timedelta(days=7)
"""Of a window."""
BUDGET_S = 3600
"""Where nobody says how much may be lost: seconds of a GPU."""


def preview(*, cluster: Cluster, budget_s: int, at: datetime) -> Proposal:
    """What it would move if it were carried out now. Stores nothing."""
    return defragment(
        snapshot=load(at=at).snapshot,
        cluster=ClusterId(str(cluster.id)),
        budget_milli_s=budget_s * ONE_MILLI,
    )


def names(made: Proposal) -> dict[str, str]:
    """What the workloads that move and the nodes that they leave and land on are called, by id."""
    moved = [step.landing.workload for step in made.steps]
    nodes = {place.node for step in made.steps for place in step.landing.places}
    nodes |= {step.frees for step in made.steps}
    rows = (
        *Workload.objects.filter(id__in=moved).values_list("id", "name"),
        *Node.objects.filter(id__in=nodes).values_list("id", "name"),
    )
    return {str(id): name for id, name in rows}


def planned(*, cluster: Cluster) -> Defragmentation | None:
    """What is planned for the cluster and has not ended."""
    return Defragmentation.objects.filter(cluster=cluster, ended_at__isnull=True).first()


def plan(
    *,
    cluster: Cluster,
    budget_s: int,
    starts_at: datetime,
    ends_at: datetime,
    actor: str,
    actor_name: str,
    at: datetime,
) -> Defragmentation:
    """Have it carried out in [starts_at, ends_at). Raises Invalid for a window that is over,
    backwards or longer than LONGEST, and Conflict while another is planned for the cluster."""
    if budget_s <= 0:
        raise Invalid(f"The budget is {budget_s} s; it has to be more than 0.")
    if not max(at, starts_at) < ends_at <= starts_at + LONGEST:
        raise Invalid(
            "The window has to end after it starts, in the future, and within"
            f" {LONGEST.days} days: it is from {starts_at:%F %R} to {ends_at:%F %R}.",
            pointer="/ends_at",
        )
    try:
        with transaction.atomic():
            row = Defragmentation.objects.create(
                cluster=cluster,
                budget_s=budget_s,
                starts_at=starts_at,
                ends_at=ends_at,
                planned_by=actor_name,
                planned_at=at,
            )
            _record("planned", row, actor, actor_name, at)
    except IntegrityError as error:
        raise Conflict(f"A defragmentation of {cluster.name} is planned already.") from error
    return row


def call_off(*, cluster: Cluster, actor: str, actor_name: str, at: datetime) -> None:
    """The one that is planned for the cluster. Raises Conflict when there is none."""
    with transaction.atomic():
        planned = Defragmentation.objects.select_for_update().filter(
            cluster=cluster, ended_at__isnull=True
        )
        row = planned.first()
        if row is None:
            raise Conflict(f"No defragmentation of {cluster.name} is planned.")
        row.ended_at, row.outcome = at, {}
        row.save(update_fields=["ended_at", "outcome"])
        _record("called-off", row, actor, actor_name, at)


def _record(what: str, row: Defragmentation, actor: str, actor_name: str, at: datetime) -> None:
    audit.record(
        actor=actor,
        actor_name=actor_name,
        at=at,
        entries=[
            audit.Entry(
                action=f"defragmentation.{what}",
                target_type="cluster",
                target_id=row.cluster_id,
                after={
                    "budget_s": row.budget_s,
                    "starts_at": row.starts_at.isoformat(),
                    "ends_at": row.ends_at.isoformat(),
                },
            )
        ],
    )
