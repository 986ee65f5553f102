"""Work that is moved so that other work fits, or that it has what it prefers: what that may cost,
and that all of them land."""

from math import ceil

from scheduler.core.plan import Landing, Plan
from scheduler.core.snapshot import HoldingView
from scheduler.core.units import WorkloadId
from tests.core.reference import portions
from tests.core.reference.tried import Case
from tests.core.reference.world import MOVES, World, begun, devices_milli, path

RESTS_S = 24 * 3600
KEPT_S = 8100


def check(world: World, made: Plan) -> None:
    moves = [p for p in made.preempts if p.rule in MOVES]
    movers = [world.holding[move.victim] for move in moves]
    lost = sum(lost_milli_s(held, world.at) for held in movers)
    assert lost <= world.policy.consolidation_budget_milli_s, "more work is lost than may be"
    landing = {each.workload: each for each in made.landings}
    assert len(landing) == len(made.landings), "lands twice"
    for move in moves:
        assert {move.victim, move.preemptor} <= landing.keys(), "is moved, and lands nowhere"
    for held in movers:
        check_mover(world, held, landing[held.id])
    known = {each.workload for each in world.landings}
    for id in landing.keys() - known:
        assert any(id in (move.victim, move.preemptor) for move in moves), "lands, and why?"
    then = world.after(made)
    places = [place for _, of in begun(made) for place in of]
    places += [place for each in made.landings for place in each.places]
    staying = [pod for _, pods in then.stays() for pod in pods]
    found = then.overbooked([*places, *staying])
    assert not found, f"once all have landed: {found}"
    _check_kept(world, made)


def check_mover(world: World, held: HoldingView, landing: Landing) -> None:
    assert has_rested(world, held), "moved again on the same day"
    assert len(landing.places) == len(held.placements), "lands smaller than it was"
    for place in landing.places:
        portions.check(world, world.asks[held.id], place)


def has_rested(world: World, held: HoldingView) -> bool:
    return held.moved_at is None or world.at - held.moved_at >= RESTS_S


def _check_kept(world: World, made: Plan) -> None:
    """Who has a landing starts there, at once when it can, or goes on having it; as long as
    nobody changed what that was decided by."""
    starts = {admit.workload: admit.places for admit in made.admits}
    landing = {each.workload: each.places for each in made.landings}
    holders = [pod for held in world.holding.values() for pod in held.placements]
    for each in world.landings:
        id = each.workload
        if not (world.is_as_planned and world.policy.preemption) or id in world.ended:
            continue
        if world.at >= each.since + KEPT_S or _is_bounded(world, id):
            continue
        assert each.places in (starts.get(id), landing.get(id)), f"{id} has lost its landing"
        ready = not world.any_leaves() and not world.overbooked([*holders, *each.places])
        assert id in starts or not ready, f"{id} could land, and does not"
        world.tried[Case.LANDS if id in starts else Case.LANDS_LATER] += 1


def _is_bounded(world: World, id: WorkloadId) -> bool:
    """Whether a reservation or a budget may keep it from starting by now."""
    above = path(world.asks[id].project)
    return bool(world.reservations) or any(member in world.budgets for member in above)


def lost_milli_s(held: HoldingView, at: int) -> int:
    """Since it was saved, if that was in this run; of cores where it has no devices."""
    since = max(held.started_at or at, held.checkpointed_at or 0)
    of_devices = devices_milli(pod for pod in held.placements if pod.spans)
    of_cores = sum(pod.amount_milli for pod in held.placements)
    return ceil((of_devices or of_cores) * (at - since))
