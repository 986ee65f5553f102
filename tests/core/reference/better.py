"""Work that moves up, to an earlier of its flavors: who may, that it costs nobody else anything,
and that nobody stays where he need not. What holds of every move is in `moves`."""

from collections.abc import Iterable
from dataclasses import replace

from scheduler.core.plan import Place, Plan
from scheduler.core.reasons import PreemptRule, ReasonCode
from scheduler.core.snapshot import HeldView, HoldingView
from tests.core.build import BY_NAME
from tests.core.reference.moves import has_rested, lost_milli_s
from tests.core.reference.quotas import may_hold, waits
from tests.core.reference.reasons import has_room, holders
from tests.core.reference.starts import has_run, may_start
from tests.core.reference.tried import Case
from tests.core.reference.world import World

WHATEVER_IS_FREE = {
    ReasonCode.NEVER_ADMISSIBLE,
    ReasonCode.NO_MATCHING_FLAVOR,
    ReasonCode.EXCEEDS_CAPACITY,
    ReasonCode.ISOLATION,
    ReasonCode.QUEUE_HELD,
    ReasonCode.GATE,
    ReasonCode.BUDGET_USED,
    ReasonCode.RUN_TIME_UNKNOWN,
}
"""For these work waits, though devices be free."""


def check(world: World, made: Plan) -> None:
    up = [p for p in made.preempts if p.rule is PreemptRule.BETTER]
    landing = {each.workload: each for each in made.landings}
    known = {each.workload for each in world.landings}
    wanted = _wanted(world, made)
    taken: list[HeldView | Place] = list(holders(world, made))
    for move in up:
        held = world.holding[move.victim]
        assert move.preemptor == held.id in world.asking, "moves up, and did not ask for it"
        assert held.id not in known, "moves up, and has a landing"
        assert may_start(world, held.id), "moves up, and may not start again"
        new = landing[held.id].places
        assert _rank(held, new) < _rank(held, held.placements), "moves, and not up"
        models = {BY_NAME[place.flavor].model for place in new}
        assert not models & wanted, "moves up to what somebody waits for"
        taken += new
    found = world.overbooked(taken) if up else ""
    assert not found, f"moves up to what is not free: {found}"
    if not up:
        _check_nobody_could(world, made, wanted)


def _wanted(world: World, made: Plan) -> set[str]:
    """The models of which somebody accepts something who waits, or will soon; "" is of cores."""
    waiting = {id for id, why in made.reasons().items() if why.code not in WHATEVER_IS_FREE}
    waiting |= {held.id for held in world.holding.values() if held.releasing}
    waiting |= {p.victim for p in made.preempts if p.rule is not PreemptRule.BETTER}
    return {
        BY_NAME[flavor].model
        for id in waiting - world.freed
        for pod_set in world.asks[id].pod_sets
        for flavor in pod_set.flavors
    }


def _check_nobody_could(world: World, made: Plan, wanted: set[str]) -> None:
    """Where nobody moves; said of whole devices, where nothing is kept for others or may keep it
    from starting again."""
    bounded = world.reservations or world.budgets or made.keeps or made.landings or waits(made)
    if bounded or made.grows or not world.policy.preemption:
        return
    for held in world.holding.values():
        if held.id not in world.asking or not _rank(held, held.placements):
            continue
        world.tried[Case.RESTS] += not has_rested(world, held)
        if _may_move(world, held):
            assert not _could(world, made, held, wanted), f"{held.id} could move up"
            world.tried[Case.STAYS] += 1
            world.tried[Case.STAYS_FOR_OTHERS] += _could(world, made, held, set())


def _may_move(world: World, held: HoldingView) -> bool:
    gives_way = held.releasing or any(pod.leaving for pod in held.placements)
    return (
        held.preemptible
        and not gives_way
        and has_run(world, held)
        and has_rested(world, held)
        and may_start(world, held.id)
        and lost_milli_s(held, world.at) <= world.policy.consolidation_budget_milli_s
    )


def _could(world: World, made: Plan, held: HoldingView, wanted: set[str]) -> bool:
    """Onto an earlier flavor, with as many pods as it has."""
    asked = world.asks[held.id]
    (pod_set,) = asked.pod_sets
    count, amount = len(held.placements), sum(pod.amount_milli for pod in held.placements)
    for flavor in pod_set.flavors[: _rank(held, held.placements)]:
        alone = replace(pod_set, flavors=(flavor,), count=count, min_count=count)
        of = replace(asked, pod_sets=(alone,))
        if (
            BY_NAME[flavor].model not in wanted
            and may_hold(world, made, held.project, flavor, amount)
            and has_room(world, world.takes_new(), of, holders(world, made))
        ):
            return True
    return False


def _rank(held: HoldingView, places: Iterable[HeldView | Place]) -> int:
    """The place of the flavor in the order of those that it accepts; 0 where it has none."""
    (pod_set,) = held.pod_sets
    if pod_set.any_order:
        return 0
    return max(pod_set.flavors.index(place.flavor) for place in places)
