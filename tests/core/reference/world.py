"""A fleet on which plans are carried out: what there is, how it changes, and what holds of it at
any time. What holds of a plan is said by the other modules here, each of one kind of decision.

Written apart from the planner, plain, slow and obvious: dicts, sets, and sums over everything each
time. Of the core only the types that go in and come out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction

from scheduler.core.plan import Landing, Place, Plan
from scheduler.core.policy import Policy
from scheduler.core.reasons import PreemptRule
from scheduler.core.simulating.carried import resized
from scheduler.core.snapshot import (
    BudgetView,
    DeviceView,
    HeldView,
    HoldingView,
    Isolation,
    NodeView,
    PendingView,
    ReservationView,
)
from scheduler.core.units import WorkloadId
from tests.core.build import H100, T4, Quota, holds
from tests.core.reference.tried import Case

FLEET = "fleet"
PARENTS = {"lab": FLEET, "vision": "lab", "a": "vision", "b": "vision", "c": "lab", "d": FLEET}
"""Cohorts and projects, each with what it hangs below."""
COHORTS, PROJECTS = ("lab", "vision"), ("a", "b", "c", "d")
CLUSTERS = ("c1", "c2")
POOLS = tuple(f"{cluster} {model}" for cluster in CLUSTERS for model in (H100, T4))
QUEUES = (*PROJECTS, *COHORTS, *CLUSTERS, *POOLS)
"""All that people hold, or drain."""
OF_A_DEVICE = {"1g": Fraction(1, 7), "3g": Fraction(1, 2), "cpu": Fraction(0)}
"""What a unit of a flavor takes of a device, as far as that is not all of it."""

MOVES = {PreemptRule.CONSOLIDATE, PreemptRule.BETTER}
"""By which work ends, and starts again at once."""


@dataclass(frozen=True)
class Queue:
    """What a project has said of its work."""

    weight: int = 1
    min_run_time_s: int = 0
    idle_timeout_s: int | None = None
    idle_warning_s: int = 0
    least_isolation: Isolation = Isolation.NONE


class World:
    """What there is: `asks` of all that was ever submitted, and where each of it is now."""

    def __init__(self) -> None:
        self.tried = Counter[Case]()  # what its plans have put to the test
        self.at = 1_000_000
        self.policy = Policy()
        self.levels: tuple[str, ...] = ()  # of the topology
        self.nodes: dict[str, tuple[str, NodeView]] = {}  # with the name of its cluster
        self.quotas: dict[tuple[str, str], Quota] = {}  # by member and flavor
        self.enforced: dict[tuple[str, str], int] = {}  # from when on they are
        self.queues = dict.fromkeys(PROJECTS, Queue())
        self.held: set[str] = set()  # of QUEUES
        self.draining: set[str] = set()  # of those that are held
        self.reservations: list[ReservationView] = []
        self.budgets: dict[str, BudgetView] = {}  # by member
        self.used: dict[str, Fraction] = {}  # of them, in the unit of their limits
        self.asks: dict[WorkloadId, PendingView] = {}
        self.shut: set[WorkloadId] = set()  # whose gates are
        self.waiting: set[WorkloadId] = set()
        self.holding: dict[WorkloadId, HoldingView] = {}
        self.freed: set[WorkloadId] = set()  # and not seen gone yet
        self.ended: set[WorkloadId] = set()
        self.saved: dict[WorkloadId, int] = {}
        self.moved: dict[WorkloadId, int] = {}
        self.asking: set[WorkloadId] = set()  # to be moved to flavors that they prefer
        self.landings: tuple[Landing, ...] = ()
        self.promised: dict[WorkloadId, int | None] = {}  # by when there is room, if that is known
        self.is_as_planned = True  # what the last plan was made of, but for what ends by itself

    def submit(self, pending: PendingView) -> None:
        self.asks[pending.id] = replace(pending, submitted_at=self.at)
        self.waiting.add(pending.id)

    def carry_out(self, made: Plan) -> None:
        for admit in made.admits:
            held = holds(admit, self.asks[admit.workload])
            self.holding[admit.workload] = replace(
                held,
                admitted_at=self.at,
                started_at=self.at,
                checkpointed_at=self.saved.get(admit.workload),
                moved_at=self.moved.get(admit.workload),
                move_to_better=admit.workload in self.asking,
            )
            self.waiting.remove(admit.workload)
        for grow in made.grows:
            self.holding[grow.workload] = resized(self.holding[grow.workload], made)
        self.told_to_go(made)
        self.freed |= set(made.frees)
        self.moved |= {p.victim: self.at for p in made.preempts if p.rule in MOVES}
        self.landings = made.landings
        self.promised = {keep.workload: keep.starts_at for keep in made.keeps}
        self.is_as_planned = True

    def told_to_go(self, made: Plan) -> None:
        """Whoever gives way by the plan is on its way back, or pods of it are."""
        for id in made.frees:
            self.holding[id] = replace(self.holding[id], releasing=True, pod_sets=())
        for preempt in made.preempts:
            self.holding[preempt.victim] = replace(self.holding[preempt.victim], releasing=True)
        for shrink in made.shrinks:
            held = self.holding[shrink.victim]
            placements = (
                replace(p, leaving=p.leaving or p.id in shrink.placements) for p in held.placements
            )
            self.holding[shrink.victim] = replace(held, placements=tuple(placements))

    def after(self, made: Plan) -> "World":
        """Another one, in which those have been told to go."""
        then = copy(self)
        then.holding = dict(self.holding)
        then.told_to_go(made)
        return then

    def pass_time(self, seconds: int) -> None:
        """What runs uses budgets meanwhile, and ends by its limit; who is idle is told in time."""
        until = self.at + seconds
        for held in self.holding.values():
            rate = devices_milli(held.placements)
            for member, budget in self.budgets.items():
                lasts_s = min(until, budget.ends_at, ends_at(held) or until) - self.at
                if member in path(held.project) and lasts_s > 0:
                    self.used[member] += rate * lasts_s
        for id in [
            id for id, held in self.holding.items() if (ends_at(held) or until + 1) <= until
        ]:
            self.end(id)
        self.at = until
        for id, held in self.holding.items():
            of = self.queues[held.project]
            if held.idle_since is None or of.idle_timeout_s is None or held.idle_warned_at:
                continue
            if self.at >= held.idle_since + of.idle_timeout_s - of.idle_warning_s:
                self.holding[id] = replace(held, idle_warned_at=self.at)

    def drain(self) -> None:
        """As the loop does before each cycle: what may be stopped goes."""
        models = {
            device.id: device.model for _, node in self.nodes.values() for device in node.devices
        }
        for id, held in self.holding.items():
            pools = {
                f"{held.cluster} {models.get(device)}"
                for placement in held.placements
                for device, _ in placement.spans
            }
            drained = self.draining & {*path(held.project), held.cluster, *pools}
            if drained and held.preemptible and not held.releasing:
                self.holding[id] = replace(held, releasing=True)

    def cancel(self, id: WorkloadId) -> None:
        """Who waits."""
        self.waiting.remove(id)
        self.ended.add(id)

    def end(self, id: WorkloadId) -> None:
        del self.holding[id]
        self.ended.add(id)

    def seen_gone(self, id: WorkloadId) -> None:
        """Told to go, and its pods are gone: it queues again, unless it was freed."""
        del self.holding[id]
        (self.ended if id in self.freed else self.waiting).add(id)

    def pods_seen_gone(self, id: WorkloadId) -> None:
        """Those that were told to go; the others run on."""
        held = self.holding[id]
        left = tuple(p for p in held.placements if not p.leaving)
        self.holding[id] = replace(held, placements=left)

    def stays(self) -> list[tuple[HoldingView, list[HeldView]]]:
        """What is not on its way back."""
        return [
            (held, [placement for placement in held.placements if not placement.leaving])
            for held in self.holding.values()
            if not held.releasing
        ]

    def held_above(self, project: str) -> list[str]:
        """Who is held, of it and those above it."""
        return [name for name in path(project) if name in self.held]

    def takes_new(self) -> tuple[dict[str, NodeView], dict[str, DeviceView]]:
        """The nodes on which something may start, and the devices on them."""
        nodes, devices = dict[str, NodeView](), dict[str, DeviceView]()
        for name, (cluster, node) in self.nodes.items():
            if node.usable and cluster not in self.held:
                nodes[name] = node
                others = {device for device, _ in node.foreign}  # here they hold all of it
                for device in node.devices:
                    if device.id in others:
                        continue
                    if device.usable and f"{cluster} {device.model}" not in self.held:
                        devices[device.id] = device
        return nodes, devices

    def to_land(self) -> tuple[Landing, ...]:
        """Of those that have not ended meanwhile."""
        return tuple(each for each in self.landings if each.workload not in self.ended)

    def any_leaves(self) -> bool:
        """Whether anything is on its way back, and not seen gone."""
        return any(
            held.releasing or any(pod.leaving for pod in held.placements)
            for held in self.holding.values()
        )

    def check_everything_is_somewhere(self) -> None:
        places = [*self.waiting, *self.holding, *self.ended]
        assert sorted(places) == sorted(self.asks), "lost, or in two places"

    def check_nothing_is_held_twice(self) -> None:
        found = self.overbooked(p for held in self.holding.values() for p in held.placements)
        assert not found, found

    def overbooked(self, holders: Iterable[HeldView | Place]) -> str:
        """What there is too little of for all of them together; "" for nothing."""
        parts: set[tuple[str, int]] = {
            (device, part)
            for _, node in self.nodes.values()
            for device, span in node.foreign
            for part in range(span.start, span.end)
        }
        cores: Counter[str] = Counter()
        memory: Counter[str] = Counter()
        for holder in holders:
            cores[holder.node] += holder.cpu_milli
            memory[holder.node] += holder.memory_mib
            found = parts_of([holder])
            if parts & found:
                return f"held twice: {sorted(parts & found)[0]}"
            parts |= found
        for name, (_, node) in self.nodes.items():
            if cores[name] > node.cpu_milli or memory[name] > node.memory_mib:
                return f"more cores or memory are held than {name} has"
        return ""


def begun(made: Plan) -> Iterator[tuple[WorkloadId, tuple[Place, ...]]]:
    """Who starts or grows, and on what."""
    for admit in made.admits:
        yield admit.workload, admit.places
    for grow in made.grows:
        yield grow.workload, grow.places


def children(member: str) -> list[str]:
    return [child for child, parent in PARENTS.items() if parent == member]


def path(member: str) -> list[str]:
    """It, and who is above it, without the fleet."""
    return [] if member == FLEET else [member, *path(PARENTS[member])]


def ends_at(held: HoldingView) -> int | None:
    """By its run-time limit."""
    if held.run_time_limit_s is None:
        return None
    return (held.started_at or held.admitted_at) + held.run_time_limit_s


def devices_milli(places: Iterable[HeldView | Place]) -> Fraction:
    """What they take of devices, in thousandths of one."""
    taken = (place.amount_milli * OF_A_DEVICE.get(place.flavor, Fraction(1)) for place in places)
    return sum(taken, Fraction(0))


def parts_of(places: Iterable[HeldView | Place]) -> set[tuple[str, int]]:
    """Of devices, in the units of their axes."""
    return {
        (device, part)
        for place in places
        for device, span in place.spans
        for part in range(span.start, span.end)
    }


def isolates(isolation: Isolation) -> int:
    """How well."""
    return [Isolation.NONE, Isolation.MEMORY, Isolation.HARDWARE].index(isolation)
