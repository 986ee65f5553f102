"""Quota of who has waited long is not taken by later work of the same project."""

from collections import Counter
from collections.abc import Iterable, Mapping

from scheduler.core.held.runs import OVERDUE_S
from scheduler.core.plan import Plan
from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import FlavorKind, HoldingView, PendingView, PodSetView
from scheduler.core.units import WorkloadId
from tests.core.build import BY_NAME
from tests.core.reference.portions import least_milli
from tests.core.reference.quotas import capacity, may_use, stopping, usage
from tests.core.reference.tried import Case
from tests.core.reference.world import World, begun, ends_at

LACKING = {
    ReasonCode.QUOTA_USED,
    ReasonCode.COHORT_USED,
    ReasonCode.NO_FREE_CAPACITY,
    ReasonCode.NO_FIT,
    ReasonCode.ROOM_KEPT,
    ReasonCode.KEPT_FOR_OTHERS,
}
"""It lacks quota or room, and nothing else."""


def check(world: World, made: Plan) -> None:
    """Of plans in which nothing comes back and nobody else takes of the flavor, nor any who is
    before it: for those it may lack its quota later than when others were asked. Nor is anything
    reserved: what runs into that has nothing kept."""
    reasons, guard_s = made.reasons(), world.policy.guard_s
    if guard_s is None or world.any_leaves() or stopping(made) or made.landings:
        return
    if any(each.ends_at > world.at for each in world.reservations):
        return
    first: dict[tuple[str, str], PendingView] = {}
    for asked in sorted((world.asks[id] for id in reasons), key=_turn):
        if world.at - asked.submitted_at >= guard_s:
            for flavor in {flavor for p in asked.pod_sets for flavor in p.flavors}:
                first.setdefault((asked.project, flavor), asked)
    for (_, name), asked in first.items():
        plain = len(asked.pod_sets) == 1 and asked.pod_sets[0].flavors == (name,)
        plain = plain and BY_NAME[asked.pod_sets[0].flavors[0]].kind is FlavorKind.WHOLE
        if plain and asked.preemptible and reasons[asked.id].code in LACKING:
            _check_is_kept(world, made, asked, name)


def _check_is_kept(world: World, made: Plan, asked: PendingView, flavor: str) -> None:
    """When it first has its quota, without what starts behind it, it has it with that too."""
    needs, project = least_milli(asked.pod_sets[0], flavor), asked.project
    before, behind = usage(world), Counter[WorkloadId]()
    ends = {id: _end(world, held) for id, held in world.holding.items()}
    runs = Counter[WorkloadId]()
    for held in world.holding.values():
        if held.project == project:
            runs[held.id] += sum(p.amount_milli for p in held.placements if p.flavor == flavor)
    for id, places in begun(made):
        amount = sum(place.amount_milli for place in places if place.flavor == flavor)
        if amount:
            other = world.asks[id]
            if other.project != project or _turn(other) < _turn(asked):
                return
            behind[id] += amount
            limit_s = world.asks[id].run_time_limit_s
            ends.setdefault(id, None if limit_s is None else world.at + limit_s)
    others = Counter({key: used for key, used in before.items() if key != (project, flavor)})

    def may_have(of: Iterable[int]) -> bool:
        """Quota, beside so much."""
        use = others + Counter({(project, flavor): sum(of) + needs})
        return may_use(world, use, project, flavor)

    def is_enough(of: Iterable[int]) -> bool:
        """Quota, or what others borrow and give back."""
        used = list(of)
        own = sum(used) + needs <= capacity(world, project, flavor)
        return may_have(used) or (own and world.policy.preemption)

    dates = {keep.workload: keep.starts_at for keep in made.keeps}
    if may_have(runs.values()) and asked.id not in dates:
        return  # it lacks room, and somebody else's turn it is
    if needs > capacity(world, project, flavor) or not is_enough(()):
        return
    if not _is_there(world, asked.pod_sets[0]):
        return
    moments = sorted({world.at} | {end for id in runs if (end := ends[id]) is not None})
    at = next((at for at in moments if is_enough(_left(runs, ends, at))), None)
    if at == world.at:  # room is what it lacks
        at = dates.get(asked.id) or at
    if at is None:
        assert not any(behind.values()), "nobody knows when its quota is back, and it is taken"
    else:
        still = [*_left(runs, ends, at), *_left(behind, ends, at)]
        assert is_enough(still), "its quota is taken by what comes after it"
    told = ReasonCode.QUOTA_KEPT in {each.code for each in made.reasons().values()}
    world.tried[Case.QUOTA_KEPT] += told
    world.tried[Case.QUOTA_LEFT] += any(behind.values())


def _left(
    of: Mapping[WorkloadId, int], ends: Mapping[WorkloadId, int | None], at: int
) -> list[int]:
    """What is held then."""
    return [used for id, used in of.items() if (end := ends[id]) is None or end > at]


def _end(world: World, held: HoldingView) -> int | None:
    end = ends_at(held)
    return None if end is None or end + OVERDUE_S < world.at else max(world.at + 1, end)


def _is_there(world: World, pods: PodSetView) -> bool:
    """Whether its least start fits into what is up in one cluster, were nothing held."""
    fit = Counter[str]()
    nodes, devices = world.takes_new()
    for name, node in nodes.items():
        kind = BY_NAME[pods.flavors[0]]
        of = [d for d in node.devices if d.id in devices and d.model == kind.model]
        fit[world.nodes[name][0]] += min(
            len(of) // pods.gpu_count,
            node.cpu_milli // pods.cpu_milli,
            node.memory_mib // pods.memory_mib,
        )
    return any(pods.min_count <= count for count in fit.values())


def _turn(asked: PendingView) -> tuple[int, int, str]:
    return -asked.priority, asked.submitted_at, asked.id
