"""What no plan may do to caps, and to work that may not start at all: a part of `invariants`."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from scheduler.core.laws.budgets import part
from scheduler.core.plan import Place, Plan
from scheduler.core.reasons import Cap
from scheduler.core.snapshot import CapsView, HeldView, Snapshot
from scheduler.core.units import NOBODY, FlavorId, ProjectId, UserId


def caps(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Nothing of a held queue starts, and what starts brings nothing beyond a cap."""
    yield from _arrays(snapshot, plan)
    pending = {p.id: p for p in snapshot.pending}
    parts = {flavor.id: part(flavor) for flavor in snapshot.flavors}
    before: dict[tuple[Cap, ProjectId, UserId], Fraction] = defaultdict(Fraction)
    more: dict[tuple[Cap, ProjectId, UserId], Fraction] = defaultdict(Fraction)
    started = [(pending[a.workload], a.places) for a in plan.admits if a.workload in pending]
    for counts, holders in (
        (before, [(h, h.placements) for h in snapshot.holding]),
        (more, started),
    ):
        for of, places in holders:
            counts[Cap.RUNNING, of.project, NOBODY] += 1
            counts[Cap.USER_RUNNING, of.project, of.user] += 1
            counts[Cap.USER_GPUS, of.project, of.user] += _milli(parts, places)
    holding = {h.id: h for h in snapshot.holding}
    for grow in plan.grows:
        grown = holding[grow.workload]
        more[Cap.USER_GPUS, grown.project, grown.user] += _milli(parts, grow.places)
    queues = {queue.project: queue for queue in snapshot.queues}
    for (cap, project, user), added in more.items():
        queue = queues.get(project)
        if queue is None or not added:
            continue
        if queue.held:
            yield f"project {project} is held and starts work"
        caps = queue.caps or CapsView()
        most = {
            Cap.RUNNING: caps.running,
            Cap.USER_RUNNING: caps.user_running,
            Cap.USER_GPUS: caps.user_gpus_milli,
        }[cap]
        total = before[cap, project, user] + added
        if most is not None and total > most:
            yield f"project {project} passes {cap}: {total} of {most} for {user or 'all'}"


def _milli(parts: Mapping[FlavorId, Fraction], held: Iterable[Place | HeldView]) -> Fraction:
    """In thousandths of devices."""
    nothing = Fraction(0)
    return sum((each.amount_milli * parts.get(each.flavor, nothing) for each in held), nothing)


def _arrays(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Of no array more hold than may, and nothing starts that waits for others, for a gate, for
    its own pods or for the end of such as nobody knows."""
    pending = {p.id: p for p in snapshot.pending}
    started = [pending[a.workload] for a in plan.admits if a.workload in pending]
    held = Counter(h.array.id for h in snapshot.holding if h.array is not None)
    for array, added in Counter(p.array for p in started if p.array is not None).items():
        total = held[array.id] + added
        if total > array.most_at_once:
            yield f"array {array.id} has {total} that hold, of {array.most_at_once} at once"
    for waiting in started:
        if waiting.waits_for is not None:
            yield f"{waiting.id} starts before {waiting.waits_for.first} has ended"
        if waiting.gate is not None:
            yield f"{waiting.id} starts before its gate {waiting.gate.name} is open"
        if waiting.gathering is not None:
            yield f"{waiting.id} starts before its {waiting.gathering.wanted} pods are there"
        if waiting.strays is not None:
            yield f"{waiting.id} starts beside {waiting.strays.count} pods of it that run"
