"""Random fleets in which much is free and little of it together, for the properties of moves."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

from scheduler.core.held.elastic import asks
from scheduler.core.node import mig
from scheduler.core.plan import Landing, Plan
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import (
    HoldingView,
    NodeView,
    PendingView,
    PodSetView,
    QueueView,
    ReservationView,
    Snapshot,
)
from scheduler.core.units import FlavorId, ProjectId, WorkloadId
from tests.core.build import (
    AT,
    BY_NAME,
    H100,
    Quota,
    holds,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)

SLICES = ("1g", "1g", "2g", "3g")


def fragments(seed: int) -> Snapshot:
    """Three projects on a few nodes of whole or of cut devices; some lend and borrow, and some of
    it may be reserved."""
    pick = Random(seed)
    cut = pick.random() < 0.4
    gpus = pick.choice([1, 2]) if cut else pick.choice([2, 3, 4])
    racks = ["r1/", "r2/"] if pick.random() < 0.3 else [""]
    nodes = [
        node(
            f"n{i}", gpus, dynamic=cut, cores=pick.choice([6, 64]), at=f"{pick.choice(racks)}n{i}"
        )
        for i in range(pick.randint(2, 5))
    ]
    holding = [held for on in nodes for held in (_slices if cut else _whole)(pick, on)]
    pending = [_asked(pick, f"w{i}", gpus, cut=cut) for i in range(pick.randint(1, 4))]
    made = snapshot(
        nodes=nodes,
        queues=[_queue(pick, project) for project in "abc"],
        holding=[replace(held, moved_at=_moved(pick)) for held in holding],
        pending=pending,
        levels="rack host",
    )
    return _reserved(pick, made, ["1g", "3g", "7g"] if cut else ["h100"])


def taken_from_others(of: Snapshot, landings: Iterable[Landing]) -> list[WorkloadId]:
    """Those that land on a flavor and may still run when it is reserved for another project."""
    work: tuple[HoldingView | PendingView, ...] = (*of.holding, *of.pending)
    who = {each.id: each for each in work}
    return [
        landing.workload
        for landing in landings
        for asks in (who[landing.workload],)
        for window in of.reservations
        if window.project != asks.project
        and window.flavor in {place.flavor for place in landing.places}
        and (
            window.binds_at <= of.at
            if asks.run_time_limit_s is None
            else window.starts_at < of.at + asks.run_time_limit_s
        )
    ]


def after(
    of: Snapshot, made: Plan, *, gone: float, moved: dict[WorkloadId, int], seed: int = 0
) -> Snapshot:
    """The next snapshot: of those that leave, that part is seen gone, and waits again. `moved` has
    the time of each who was, and is kept up."""
    pick = Random(seed)
    asked = {pending.id: pending for pending in of.pending}
    victims = {preempt.victim for preempt in made.preempts}
    moved |= {
        preempt.victim: of.at
        for preempt in made.preempts
        if preempt.rule in (PreemptRule.CONSOLIDATE, PreemptRule.BETTER)
    }
    holding: list[HoldingView] = []
    again: list[PendingView] = []
    for held in of.holding:
        leaves = held.releasing or held.id in victims
        if leaves and pick.random() < gone:
            again.append(asks(held))
        else:
            holding.append(replace(held, releasing=leaves))
    for admit in made.admits:
        held = holds(admit, asked[admit.workload])
        holding.append(replace(held, started_at=of.at, admitted_at=of.at))
    started = {admit.workload for admit in made.admits}
    waiting = [pending for pending in of.pending if pending.id not in started]
    return replace(
        of,
        at=of.at + 10,
        holding=tuple(replace(held, moved_at=moved.get(held.id)) for held in holding),
        pending=(*waiting, *again),
        landings=made.landings,
    )


def _queue(pick: Random, project: str) -> QueueView:
    nominal = pick.choice([2, 100, 100])
    quota = Quota(nominal, pick.choice([0, 2, None]))
    return queue(project, h100=quota, _1g=quota, _2g=quota, _3g=quota, _7g=quota)


def _reserved(pick: Random, of: Snapshot, flavors: Sequence[str]) -> Snapshot:
    """Sometimes, and then some of the work ends. Nothing comes to bind within the next minutes, so
    that what may land when it is moved may when it starts."""
    if pick.random() < 0.5:
        return of
    opens = pick.choice([-60, 3600, 9000])
    window = ReservationView(
        ProjectId(pick.choice("abc")),
        FlavorId(pick.choice(flavors)),
        pick.choice([1000, 4000]),
        AT + opens,
        AT + opens + 9000,
        AT - 60 if opens < 0 else AT + opens - pick.choice([10, 10**5]),
    )
    limits = [None, 600, 7200]
    return replace(
        of,
        reservations=(window,),
        holding=tuple(replace(h, run_time_limit_s=pick.choice(limits)) for h in of.holding),
        pending=tuple(replace(p, run_time_limit_s=pick.choice(limits)) for p in of.pending),
    )


def _moved(pick: Random) -> int | None:
    return AT - 60 if pick.random() < 0.1 else None


def _whole(pick: Random, on: NodeView) -> list[HoldingView]:
    free = [device.id for device in on.devices]
    found: list[HoldingView] = []
    while free and pick.random() < 0.7:
        count = min(len(free), pick.choice([1, 1, 2]))
        found.append(_held(pick, f"r{on.id}{len(found)}", free[:count], pods(gpus=count)))
        free = free[count:]
    return found


def _slices(pick: Random, on: NodeView) -> list[HoldingView]:
    found: list[HoldingView] = []
    for device in on.devices:
        taken = 0
        for _ in range(pick.randint(0, 5)):
            flavor = pick.choice(SLICES)
            span = pick.choice(mig.legal_spans(model=H100, profile=BY_NAME[flavor].profile))  # type: ignore[index]  # a name is an id
            if not taken & mig.mask(span):
                taken |= mig.mask(span)
                held = _held(
                    pick,
                    f"r{device.id.replace('/', '')}{span.start}",
                    [device.id],
                    pods(flavors=flavor),
                )
                placed = replace(held.placements[0], spans=((device.id, span),))
                found.append(replace(held, placements=(placed,)))
    return found


def _held(pick: Random, name: str, devices: Sequence[str], pod: PodSetView) -> HoldingView:
    """One pod on those devices."""
    ask = job(name, pick.choice("abc"), pod)
    held = runs(
        name,
        ask.project,
        *devices,
        flavor=pod.flavors[0],
        preemptible=pick.random() < 0.85,
        since_s=pick.randrange(5000),
    )
    parts = held.placements
    placed = replace(
        parts[0],
        pod_set=ask.pod_sets[0].id,
        amount_milli=1000 * len(parts),
        spans=tuple(span for part in parts for span in part.spans),
    )
    return replace(held, placements=(placed,), pod_sets=ask.pod_sets)


def _asked(pick: Random, name: str, gpus: int, *, cut: bool) -> PendingView:
    pod = pods(flavors=pick.choice(["3g", "7g", "2g"]))
    if not cut:
        pod = pods(pick.choice([1, 1, 2]), gpus=gpus)
    made = job(
        name,
        pick.choice("abc"),
        pod,
        priority=pick.randrange(2),
        submitted_at=pick.randrange(9),
        within="rack" if pick.random() < 0.15 else "",
    )
    return replace(made, preemptible=pick.random() < 0.8)
