"""Reservations of whole devices: what starts leaves them free, or gives them back in time."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from scheduler.core.plan import Place, Plan
from scheduler.core.snapshot import DeviceMode, HeldView
from tests.core.reference.tried import Case
from tests.core.reference.world import World, ends_at

FLAVOR = "h100"


class _Run(NamedTuple):
    """`ends_at` None is never."""

    project: str
    ends_at: int | None
    places: Iterable[HeldView | Place]


def check(world: World, made: Plan) -> None:
    """At no moment does what starts, or grows, make a reservation lack more: one that binds,
    whatever that is; one that does not yet, what ends by its limit."""
    runs, begun = list(_running(world)), list(_begun(world, made))
    by_limit = [run for run in begun if run.ends_at is not None]
    for window in world.reservations:
        if window.ends_at <= world.at:
            continue
        moment = max(world.at, window.starts_at)
        binds = any(
            each.binds_at <= world.at and max(world.at, each.starts_at) == moment
            for each in world.reservations
        )
        before = _lacking(world, moment, runs)
        after = _lacking(world, moment, [*runs, *(begun if binds else by_limit)])
        world.tried[Case.RESERVED] += before <= 0 and any(run.places for run in begun)
        assert after <= max(0, before), "what starts takes from a reservation"


def _lacking(world: World, moment: int, runs: list[_Run]) -> int:
    """Of what is reserved then, less what it is reserved for that runs then, what is neither free
    now nor given back by then."""
    wanted: Counter[str] = Counter()
    for window in world.reservations:
        if window.starts_at <= moment < window.ends_at:
            wanted[window.project] += window.amount_milli
    given_back = 0
    takes_new = _devices(world)
    for run in runs:
        for place in run.places:
            if run.ends_at is None or run.ends_at > moment:
                if place.flavor == FLAVOR and run.project in wanted:
                    wanted[run.project] -= place.amount_milli
            elif place.flavor == FLAVOR and {device for device, _ in place.spans} <= takes_new:
                given_back += place.amount_milli
    held = {device for run in runs for place in run.places for device, _ in place.spans}
    free = 1000 * len(takes_new - held)
    return sum(max(0, amount) for amount in wanted.values()) - free - given_back


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
