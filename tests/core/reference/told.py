"""What a plan is told of a world."""

from dataclasses import replace
from math import ceil

from scheduler.core.snapshot import (
    ClusterView,
    CohortView,
    NodeView,
    PendingView,
    QueueView,
    QuotaView,
    Snapshot,
)
from scheduler.core.units import WorkloadId
from scheduler.core.waits import GateView
from tests.core.build import Quota, cluster, cohort_of, queue_of, snapshot
from tests.core.reference.world import CLUSTERS, COHORTS, FLEET, PARENTS, Queue, World


def told(world: World) -> Snapshot:
    made = snapshot(
        clusters=[_cluster(world, name) for name in CLUSTERS],
        cohorts=[_cohort(world, name) for name in COHORTS],
        queues=[_queue(world, name, of) for name, of in world.queues.items()],
        pending=[_pending(world, id) for id in sorted(world.waiting)],
        holding=world.holding.values(),
    )
    budgets = (
        replace(budget, used_milli_s=ceil(world.used[member]))
        for member, budget in world.budgets.items()
    )
    return replace(
        made,
        at=world.at,
        levels=world.levels,
        reservations=tuple(world.reservations),
        budgets=tuple(budgets),
        landings=world.landings,
    )


def _cluster(world: World, name: str) -> ClusterView:
    nodes = [_node(world, name, node) for of, node in world.nodes.values() if of == name]
    held = name in world.held
    pools = (pool.removeprefix(f"{name} ") for pool in world.held if pool.startswith(f"{name} "))
    made = cluster(name, nodes, usable=not held)
    return replace(made, held=held, held_models=tuple(sorted(pools)))


def _node(world: World, cluster: str, node: NodeView) -> NodeView:
    devices = (
        replace(each, usable=each.usable and f"{cluster} {each.model}" not in world.held)
        for each in node.devices
    )
    return replace(node, devices=tuple(devices))


def _cohort(world: World, name: str) -> CohortView:
    made = cohort_of(name, _rows(world, name), parent=PARENTS[name].removeprefix(FLEET))
    return replace(made, quotas=_enforced(world, name, made))


def _queue(world: World, name: str, of: Queue) -> QueueView:
    made = queue_of(name, _rows(world, name), tenant=PARENTS[name].removeprefix(FLEET))
    return replace(
        made,
        quotas=_enforced(world, name, made),
        held_by=tuple(world.held_above(name)),
        weight=of.weight,
        min_run_time_s=of.min_run_time_s,
        idle_timeout_s=of.idle_timeout_s,
        idle_warning_s=of.idle_warning_s,
        least_isolation=of.least_isolation,
    )


def _rows(world: World, member: str) -> dict[str, float | Quota]:
    return {flavor: quota for (of, flavor), quota in world.quotas.items() if of == member}


def _enforced(world: World, member: str, of: QueueView | CohortView) -> tuple[QuotaView, ...]:
    return tuple(
        replace(quota, enforce_at=world.enforced.get((member, quota.flavor)))
        for quota in of.quotas
    )


def _pending(world: World, id: WorkloadId) -> PendingView:
    gate = GateView("data", "ada", world.at) if id in world.shut else None
    return replace(world.asks[id], gate=gate)
