"""Reservations of whole devices: what starts leaves them free, or gives them back in time, and so
does what others are stopped for."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from scheduler.core.plan import Landing, Place, Plan
from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import DeviceMode, HeldView, PendingView
from tests.core.reference.portions import least_milli
from tests.core.reference.quotas import evicting, stopping, waits
from tests.core.reference.tried import Case
from tests.core.reference.world import FLEET, World, ends_at, path

FLAVOR = "h100"


class _Run(NamedTuple):
    """`ends_at` None is never. Of who waits for places the plan tells no more than how much of the
    flavor they are: `awaited_milli`."""

    project: str
    ends_at: int | None
    places: Iterable[HeldView | Place]
    awaited_milli: int = 0


def check(world: World, made: Plan) -> None:
    """At no moment does what starts, or grows, make a reservation lack more: one that binds,
    whatever that is; one that does not yet, what ends by its limit. Nor does what is promised, one
    that binds, once all have left who are to leave."""
    runs, begun = list(_running(world)), list(_begun(world, made))
    by_limit = [run for run in begun if run.ends_at is not None]
    for moment in _moments(world):
        binds = moment in _binding(world)
        before = _lacking(world, moment, runs)
        after = _lacking(world, moment, [*runs, *(begun if binds else by_limit)])
        world.tried[Case.RESERVED] += before <= 0 and any(run.places for run in begun)
        strangers = [run._replace(project=FLEET) for run in begun]
        for_nobody = _lacking(world, moment, [*runs, *strangers])
        above = any(window.cohort for window in world.reservations)
        world.tried[Case.RESERVED_ABOVE] += above and after <= 0 < for_nobody
        assert after <= max(0, before), "what starts takes from a reservation"
    if world.policy.preemption:
        _check_promises(world, made, begun)
    if not (stopping(made) or waits(made) or made.keeps or made.landings or world.any_leaves()):
        _check_told(world, made, [*runs, *begun])


def _check_promises(world: World, made: Plan, begun: list[_Run]) -> None:
    landing = {each.workload: each for each in world.to_land()}
    stayed = [*_staying(world), *_landing(world, landing.values())]
    stays = [*_staying(world.after(made)), *begun, *_awaited(world, made)]
    waiting = {*waits(made), *(admit.workload for admit in made.admits)}
    stays += _landing(world, (each for each in made.landings if each.workload not in waiting))
    for moment in _binding(world):
        before = _lacking(world, moment, stayed)
        after = _lacking(world, moment, stays)
        assert after <= max(0, before), "what others are stopped for takes from a reservation"
        for_long = (world.asks[each.preemptor].run_time_limit_s is None for each in evicting(made))
        world.tried[Case.RESERVED_EVICTS] += before <= 0 and any(for_long)


def _check_told(world: World, made: Plan, runs: list[_Run]) -> None:
    """Who is told so would leave one lacking, if it started on what is free. Of who has waited for
    so long that room might be kept for it nothing is said."""
    for id, reason in made.reasons().items():
        asked, guard_s = world.asks[id], world.policy.guard_s
        waited_s = world.at - asked.submitted_at
        if reason.code is not ReasonCode.RESERVED or waited_s >= (guard_s or waited_s + 1):
            continue
        (pod_set,) = asked.pod_sets
        if {*pod_set.flavors} != {FLAVOR}:
            continue
        run = _asked(world, asked, least_milli(pod_set, FLAVOR))
        moments = _binding(world) if run.ends_at is None else _moments(world)
        lacks = max(_lacking(world, moment, [*runs, run]) for moment in moments)
        assert lacks > 0, f"{id} is told of a reservation that would lack nothing"
        world.tried[Case.RESERVED_RIGHTLY] += 1


def _moments(world: World) -> list[int]:
    """When those open that are not over, or now."""
    return [
        max(world.at, each.starts_at) for each in world.reservations if each.ends_at > world.at
    ]


def _binding(world: World) -> set[int]:
    """Those of them that bind what has no limit."""
    return {
        max(world.at, each.starts_at)
        for each in world.reservations
        if each.binds_at <= world.at < each.ends_at
    }


def _lacking(world: World, moment: int, runs: Sequence[_Run]) -> int:
    """Of what is reserved then, less what it is reserved for that runs then, what is neither free
    now nor given back by then. Each amount that runs is taken off once: of its project's, then of
    that of those above it."""
    wanted: Counter[str] = Counter()
    for window in world.reservations:
        if window.starts_at <= moment < window.ends_at:
            wanted[window.project or window.cohort or ""] += window.amount_milli
    given_back = 0
    takes_new = _devices(world)
    for run in runs:
        lasts = run.ends_at is None or run.ends_at > moment
        for place in run.places:
            if lasts:
                if place.flavor == FLAVOR:
                    _take_off(wanted, run.project, place.amount_milli)
            elif place.flavor == FLAVOR and {device for device, _ in place.spans} <= takes_new:
                given_back += place.amount_milli
        if lasts:
            _take_off(wanted, run.project, run.awaited_milli)
        given_back += 0 if lasts else run.awaited_milli
    held = {device for run in runs for place in run.places for device, _ in place.spans}
    free = 1000 * len(takes_new - held) - sum(run.awaited_milli for run in runs)
    return sum(wanted.values()) - free - given_back


def _take_off(wanted: Counter[str], project: str, amount_milli: int) -> None:
    for member in path(project):
        part = min(wanted[member], amount_milli)
        wanted[member] -= part
        amount_milli -= part


def _devices(world: World) -> set[str]:
    """Those that are given whole, and take new work."""
    _, devices = world.takes_new()
    return {
        id
        for id, device in devices.items()
        if device.mode is DeviceMode.WHOLE and device.shares is None
    }


def _running(world: World) -> Iterator[_Run]:
    for held in world.holding.values():
        yield _Run(held.project, ends_at(held), held.placements)


def _begun(world: World, made: Plan) -> Iterator[_Run]:
    for admit in made.admits:
        asked = world.asks[admit.workload]
        limit_s = asked.run_time_limit_s
        yield _Run(asked.project, None if limit_s is None else world.at + limit_s, admit.places)
    for grow in made.grows:
        held = world.holding[grow.workload]
        yield _Run(held.project, ends_at(held), grow.places)


def _staying(world: World) -> Iterator[_Run]:
    for held, pods in world.stays():
        yield _Run(held.project, ends_at(held), pods)


def _landing(world: World, landings: Iterable[Landing]) -> Iterator[_Run]:
    for landing in landings:
        asked = world.asks[landing.workload]
        yield _asked(world, asked, 0)._replace(places=landing.places)


def _awaited(world: World, made: Plan) -> Iterator[_Run]:
    """Those for whom something is on its way back."""
    for id, reason in made.reasons().items():
        if id in waits(made):
            numbers = dict(reason.numbers)
            amount = int(numbers["coming_milli"]) if numbers["flavor"] == FLAVOR else 0
            yield _asked(world, world.asks[id], amount)


def _asked(world: World, asked: PendingView, awaited_milli: int) -> _Run:
    limit_s = asked.run_time_limit_s
    return _Run(asked.project, None if limit_s is None else world.at + limit_s, (), awaited_milli)
