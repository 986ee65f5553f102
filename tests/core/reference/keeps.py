"""Room that is kept for who has waited too long: nobody else is on it when its time comes."""

from collections import Counter
from collections.abc import Iterable, Iterator

from scheduler.core.plan import Place, Plan
from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import HeldView
from scheduler.core.units import WorkloadId
from tests.core.reference import portions
from tests.core.reference.quotas import stopping
from tests.core.reference.tried import Case
from tests.core.reference.world import World, begun, ends_at, parts_of

FOR_WANT_OF_ROOM = {
    ReasonCode.NO_FREE_CAPACITY,
    ReasonCode.NO_FIT,
    ReasonCode.ROOM_KEPT,
    ReasonCode.KEPT_FOR_OTHERS,
}


def check(world: World, made: Plan) -> None:
    reasons, guard_s = made.reasons(), world.policy.guard_s
    assert guard_s is not None or not made.keeps, "kept without a guard"
    assert len(made.keeps) <= world.policy.most_kept, "kept for more than may be"
    for nth, keep in enumerate(made.keeps):
        waited_s = world.at - world.asks[keep.workload].submitted_at
        assert waited_s >= (guard_s or 0), "kept for who has not waited long"
        assert reasons[keep.workload].code is ReasonCode.ROOM_KEPT, "kept, and not told so"
        _check_is_free(world, made, nth)
    _check_promises(world, made)
    _check_dates(world, made)


def _check_is_free(world: World, made: Plan, nth: int) -> None:
    """When its time has come, of all that will run then, and of what was kept before it. Where
    nobody knows that time, of what is decided after all that waits: of growth and landings."""
    keep = made.keeps[nth]
    others: list[HeldView | Place] = []
    for each in made.keeps[:nth]:
        others += each.places
    for landing in made.landings:
        others += landing.places
    if keep.starts_at is None:
        others += [place for grow in made.grows for place in grow.places]
    else:
        others += _running(world, made, keep.starts_at)
        world.tried[Case.KEPT_FROM] += any(True for _ in begun(made))
    assert not parts_of(keep.places) & parts_of(others), "somebody else is on room that is kept"
    cores: Counter[str] = Counter()
    for place in (*others, *keep.places):
        cores[place.node] += place.cpu_milli
    for place in keep.places:
        portions.check(world, world.asks[keep.workload], place)
        assert cores[place.node] <= world.nodes[place.node][1].cpu_milli, "too few cores"


def _running(world: World, made: Plan, at: int) -> Iterator[HeldView | Place]:
    """What will run then, if whatever has a limit runs until that."""
    then = world.after(made)
    ends = {held.id: ends_at(held) for held, _ in then.stays()}
    for admit in made.admits:
        limit_s = world.asks[admit.workload].run_time_limit_s
        ends[admit.workload] = None if limit_s is None else world.at + limit_s
    holds: list[tuple[WorkloadId, Iterable[HeldView | Place]]] = [
        *((held.id, pods) for held, pods in then.stays()),
        *begun(made),
    ]
    for id, places in holds:
        end = ends[id]
        if end is None or end > at:
            yield from places


def _check_promises(world: World, made: Plan) -> None:
    """Whose time has come starts, as long as nothing else has happened since and nobody else is
    first; or lacks something else by now."""
    if not world.is_as_planned or world.any_leaves() or stopping(made):
        return
    first = made.keeps[0].workload if made.keeps else None
    reasons, started = made.reasons(), {admit.workload for admit in made.admits}
    for id, by in world.promised.items():
        if by is None or by > world.at:
            continue
        told = id in reasons and first in (None, id) and not started
        if told:
            wants_room = reasons[id].code in FOR_WANT_OF_ROOM
            assert not wants_room, f"{id} was promised room by now"
        world.tried[Case.PROMISE_DUE] += told or id in started


def _check_dates(world: World, made: Plan) -> None:
    """Where all are of one project and one priority, and so nobody is ever first who was not,
    nothing that starts puts a promise off: it starts by then. One with surplus may put off
    those for whom room is kept beside it."""
    ranks = {(asked.project, asked.priority) for asked in world.asks.values()}
    if len(ranks) > 1 or not world.is_as_planned or world.any_leaves():
        return
    started = {admit.workload for admit in made.admits}
    dates = {keep.workload: keep.starts_at for keep in made.keeps}
    if dates.keys() - world.promised.keys():
        return  # room is kept by now for one that lacked quota before, and may come first
    reasons = made.reasons()
    for id, by in world.promised.items():
        if by is not None and id in world.waiting - started:
            if reasons[id].code not in FOR_WANT_OF_ROOM:
                continue  # only room is kept for it, not quota
            date = dates.get(id)
            world.tried[Case.PROMISE_STANDS] += 1
            assert date is not None, f"{id} was promised room, and has lost it"
            assert world.at < date <= by, f"{id} has to wait for longer than it was promised"
        if any(each.min_count < each.count for each in world.asks[id].pod_sets):
            return  # it may have started with more than was kept for it
