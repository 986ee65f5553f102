"""A fleet on which plans are carried out, and what must hold of it: plain, slow and obvious.

Written apart from the planner: dicts, sets, and sums over everything each time. Of the core only
the types that go in and come out.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from scheduler.core.plan import Admit, Grow, Plan, Preempt, Shrink
from scheduler.core.reasons import PreemptRule, ReasonCode
from scheduler.core.snapshot import HoldingView, NodeView, PendingView, Snapshot
from scheduler.core.units import WorkloadId
from tests.core.build import (
    BY_NAME,
    Quota,
    cluster,
    cohort_of,
    holds,
    milli,
    queue_of,
    snapshot,
)
from tests.core.elastic import resized

FLEET = "fleet"
PARENTS = {"lab": FLEET, "vision": "lab", "a": "vision", "b": "vision", "c": "lab", "d": FLEET}
"""Cohorts and projects, each with what it hangs below."""
COHORTS, PROJECTS = ("lab", "vision"), ("a", "b", "c", "d")
CLUSTERS = ("c1", "c2")


@dataclass(frozen=True)
class Queue:
    held: bool = False
    min_run_time_s: int = 0


class World:
    """What there is: `asks` of all that was ever submitted, and where each of it is now."""

    def __init__(self) -> None:
        self.at = 1_000_000
        self.nodes: dict[str, tuple[str, NodeView]] = {}  # with the name of its cluster
        self.quotas: dict[tuple[str, str], Quota] = {}  # by member and flavor
        self.queues = dict.fromkeys(PROJECTS, Queue())
        self.asks: dict[WorkloadId, PendingView] = {}
        self.waiting: set[WorkloadId] = set()
        self.holding: dict[WorkloadId, HoldingView] = {}
        self.ended: set[WorkloadId] = set()

    def snapshot(self) -> Snapshot:
        by_cluster = [
            cluster(name, [node for of, node in self.nodes.values() if of == name])
            for name in CLUSTERS
        ]
        made = snapshot(
            clusters=by_cluster,
            cohorts=[
                cohort_of(name, self._rows(name), parent=PARENTS[name].removeprefix(FLEET))
                for name in COHORTS
            ],
            queues=[
                replace(
                    queue_of(name, self._rows(name), tenant=PARENTS[name].removeprefix(FLEET)),
                    held_by=("tenant t",) if of.held else (),
                    min_run_time_s=of.min_run_time_s,
                )
                for name, of in self.queues.items()
            ],
            pending=[self.asks[id] for id in sorted(self.waiting)],
            holding=self.holding.values(),
        )
        return replace(made, at=self.at)

    def submit(self, pending: PendingView) -> None:
        self.asks[pending.id] = replace(pending, submitted_at=self.at)
        self.waiting.add(pending.id)

    def carry_out(self, made: Plan) -> None:
        for admit in made.admits:
            held = holds(admit, self.asks[admit.workload])
            self.holding[admit.workload] = replace(held, admitted_at=self.at, started_at=self.at)
            self.waiting.remove(admit.workload)
        for id in {shrink.victim for shrink in made.shrinks}:
            gone = {p for s in made.shrinks if s.victim == id for p in s.placements}
            placements = [
                replace(p, leaving=p.leaving or p.id in gone) for p in self.holding[id].placements
            ]
            self.holding[id] = replace(self.holding[id], placements=tuple(placements))
        for grow in made.grows:
            self.holding[grow.workload] = resized(self.holding[grow.workload], made)
        for preempt in made.preempts:
            victim = self.holding[preempt.victim]
            self.holding[preempt.victim] = replace(victim, releasing=True)

    def end(self, id: WorkloadId) -> None:
        del self.holding[id]
        self.ended.add(id)

    def seen_gone(self, id: WorkloadId) -> None:
        """Evicted, and its pods are gone: it queues again."""
        del self.holding[id]
        self.waiting.add(id)

    def pods_seen_gone(self, id: WorkloadId) -> None:
        """Those that were told to go; the others run on."""
        held = self.holding[id]
        left = tuple(p for p in held.placements if not p.leaving)
        self.holding[id] = replace(held, placements=left)

    def _rows(self, member: str) -> dict[str, float | Quota]:
        return {flavor: quota for (of, flavor), quota in self.quotas.items() if of == member}

    # What must hold at any time.

    def check_everything_is_somewhere(self) -> None:
        places = [*self.waiting, *self.holding, *self.ended]
        assert sorted(places) == sorted(self.asks), "lost, or in two places"

    def check_nothing_is_held_twice(self) -> None:
        parts: set[tuple[str, int]] = set()
        cores: Counter[str] = Counter()
        memory: Counter[str] = Counter()
        for held in self.holding.values():
            for placement in held.placements:
                cores[placement.node] += placement.cpu_milli
                memory[placement.node] += placement.memory_mib
                for device, span in placement.spans:
                    for part in range(span.start, span.end):
                        assert (device, part) not in parts, f"{device} is held twice at {part}"
                        parts.add((device, part))
        for name, (_, node) in self.nodes.items():
            assert cores[name] <= node.cpu_milli, f"more cores are held than {name} has"
            assert memory[name] <= node.memory_mib, f"more memory is held than {name} has"

    # What must hold of a plan, before it is carried out.

    def check(self, made: Plan) -> None:
        decided = [
            *(a.workload for a in made.admits),
            *(id for hold in made.holds for id in hold.workloads),
        ]
        assert sorted(decided) == sorted(self.waiting), "each is decided once"
        for admit in made.admits:
            self._check_gang(admit)
        for grow in made.grows:
            self._check_growth(grow)
        self._check_quotas(made)
        self._check_evictions(made)
        self._check_guarantees(made)
        self._check_firm(made)

    def _check_gang(self, admit: Admit) -> None:
        asked = self.asks[admit.workload]
        (pod_set,) = asked.pod_sets
        assert pod_set.min_count <= len(admit.places) <= pod_set.count, "a gang in part"
        assert [place.rank for place in admit.places] == list(range(len(admit.places)))
        assert not self.queues[asked.project].held, "started from a held queue"
        for place in admit.places:
            name, node = self.nodes[place.node]
            assert name == admit.cluster, "a gang over two clusters"
            assert node.usable, "on a node that takes nothing new"
            assert place.flavor in pod_set.flavors, "of a flavor that it does not accept"
            usable = {d.id for d in node.devices if d.usable}
            on = {device for device, _ in place.spans}
            assert on <= usable, "on a device that takes nothing new, or of another node"
            assert len(on) == pod_set.gpu_count, "of as many devices as it asks for"
            assert {d.model for d in node.devices if d.id in on} <= {BY_NAME[place.flavor].model}

    def _check_growth(self, grow: Grow) -> None:
        held, asked = self.holding[grow.workload], self.asks[grow.workload]
        (pod_set,) = asked.pod_sets
        assert not held.releasing, "grew on its way out"
        assert not any(p.leaving for p in held.placements), "grew while pods of it go"
        assert not self.queues[asked.project].held, "grew in a held queue"
        assert len(held.placements) + len(grow.places) <= pod_set.count, "grew too large"
        for place in grow.places:
            name, node = self.nodes[place.node]
            assert name == held.cluster, "grew into another cluster"
            assert node.usable, "grew onto a node that takes nothing new"
            assert {place.flavor} == {p.flavor for p in held.placements}, "of another flavor"

    def usage(self, *, releasing: bool = True) -> Counter[tuple[str, str]]:
        """By project and flavor; without what is `releasing` if that is said."""
        used: Counter[tuple[str, str]] = Counter()
        for held in self.holding.values():
            for placement in held.placements:
                if releasing or not (held.releasing or placement.leaving):
                    used[held.project, placement.flavor] += placement.amount_milli
        return used

    def _started(self, made: Plan) -> Counter[tuple[str, str]]:
        used: Counter[tuple[str, str]] = Counter()
        for admit in made.admits:
            for place in admit.places:
                used[self.asks[admit.workload].project, place.flavor] += place.amount_milli
        for grow in made.grows:
            for place in grow.places:
                used[self.asks[grow.workload].project, place.flavor] += place.amount_milli
        return used

    def _check_quotas(self, made: Plan) -> None:
        """No start raises the use of a member beyond what it has and may borrow."""
        before, started = self.usage(), self._started(made)
        after = before + started
        for project, flavor in started:
            assert (project, flavor) in self.quotas, "started without any quota"
        for flavor in {flavor for _, flavor in started}:
            for member in (FLEET, *PARENTS):
                then, now = (self.used(member, flavor, of) for of in (before, after))
                most = self.most(member, flavor)
                assert now <= then or most is None or now <= most, f"{member} has too much"

    def used(self, member: str, flavor: str, usage: Mapping[tuple[str, str], int]) -> int:
        """What it uses of its own, and what its members use beyond what they keep."""
        below = sum(
            max(0, self.used(child, flavor, usage) - self._kept(child, flavor))
            for child in _children(member)
        )
        return usage.get((member, flavor), 0) + below

    def most(self, member: str, flavor: str) -> int | None:
        """What it has and may borrow; None is no limit."""
        quota = self.quotas.get((member, flavor))
        if member == FLEET:
            return self._capacity(member, flavor)
        if quota is None or quota.borrow is None:
            return None
        return self._capacity(member, flavor) + milli(quota.borrow)

    def nominal(self, member: str, flavor: str) -> int:
        quota = self.quotas.get((member, flavor))
        return milli(quota.nominal) if quota else 0

    def _capacity(self, member: str, flavor: str) -> int:
        """Its nominal, and what its members lend."""
        lent = sum(
            self._capacity(child, flavor) - self._kept(child, flavor)
            for child in _children(member)
        )
        return self.nominal(member, flavor) + lent

    def _kept(self, member: str, flavor: str) -> int:
        quota = self.quotas.get((member, flavor))
        if quota is None or quota.lend is None:
            return 0
        return max(0, self._capacity(member, flavor) - milli(quota.lend))

    def _check_evictions(self, made: Plan) -> None:
        waits = _waits(made)
        assert len({p.victim for p in made.preempts}) == len(made.preempts), "evicted twice"
        for shrink in made.shrinks:
            held, asked = self.holding[shrink.victim], self.asks[shrink.victim]
            left = [p for p in held.placements if not p.leaving and p.id not in shrink.placements]
            assert len(left) >= asked.pod_sets[0].min_count, "shrunk below its least"
            ranks = [p.rank for p in held.placements if p.id in shrink.placements]
            assert len(ranks) == len(shrink.placements) > 0, "shrunk by pods that it has not"
        for preempt in _evicting(made):
            victim, by = self.holding[preempt.victim], self.asks[preempt.preemptor]
            assert by.id in waits, "evicted for one who does not wait"
            assert not victim.releasing, "evicted before"
            if isinstance(preempt, Preempt):
                self._check_may_go(victim)
            if preempt.rule is PreemptRule.PRIORITY:
                assert victim.project == by.project, "by priority, of another project"
                assert victim.priority < by.priority, "by priority, and not lower"
            else:
                assert victim.project != by.project, "reclaimed from itself"
                of = {placement.flavor for placement in victim.placements}
                assert of == {_flavor(by)}, "reclaimed what is not asked for"

    def _check_may_go(self, victim: HoldingView) -> None:
        assert victim.preemptible, "evicted though it is not preemptible"
        ran_s = self.at - (victim.started_at or self.at)
        assert ran_s >= self.queues[victim.project].min_run_time_s, "evicted too early"

    def _check_guarantees(self, made: Plan) -> None:
        """Who is reclaimed from keeps what is guaranteed, and so does each above it that is not
        above who reclaims; that one stays within what is guaranteed to it, or to one above it that
        is not above whom it takes from.

        What a project waits for counts for it, so of one that waits too nothing is said here.
        """
        waiting = {above for id in _waits(made) for above in _path(self.asks[id].project)}
        kept, left = self.usage(releasing=False), self.usage(releasing=False)
        left.update(self._started(made))
        for preempt in _evicting(made):
            self._take(preempt, left)
            if preempt.rule is PreemptRule.PRIORITY:
                self._take(preempt, kept)
        for preempt in _evicting(made):
            if preempt.rule is PreemptRule.PRIORITY:
                continue
            victim, by = self.holding[preempt.victim], self.asks[preempt.preemptor]
            flavor = _flavor(by)
            asked = _least_milli(by)
            then = kept + Counter({(by.project, flavor): asked})
            mine, theirs = _path(by.project), _path(victim.project)
            assert any(
                self.used(member, flavor, then) <= self._capacity(member, flavor)
                for member in mine
                if member not in theirs
            ), "reclaimed beyond what is guaranteed"
            for member in theirs:
                if member not in mine and member not in waiting:
                    stays = self.used(member, flavor, left)
                    assert stays >= self._capacity(member, flavor), "reclaimed from a guarantee"

    def _check_firm(self, made: Plan) -> None:
        """What may not be preempted starts on nominal of its project, or of one above it, that is
        not used up by what others below that one use beyond their own."""
        then = self.usage(releasing=False)
        for admit in made.admits:
            asked = self.asks[admit.workload]
            flavor = _flavor(asked)
            then[asked.project, flavor] += sum(place.amount_milli for place in admit.places)
            assert asked.preemptible or any(
                self._drawn(member, flavor, then) <= self.nominal(member, flavor)
                for member in _path(asked.project)
            ), "it may not be preempted, and borrows"

    def _drawn(self, member: str, flavor: str, usage: Mapping[tuple[str, str], int]) -> int:
        beyond = (
            self._drawn(child, flavor, usage) - self.nominal(child, flavor)
            for child in _children(member)
        )
        return usage.get((member, flavor), 0) + sum(more for more in beyond if more > 0)

    def _take(self, preempt: Preempt | Shrink, used: Counter[tuple[str, str]]) -> None:
        victim = self.holding[preempt.victim]
        for placement in victim.placements:
            goes = not placement.leaving
            if isinstance(preempt, Shrink):
                goes = placement.id in preempt.placements
            if goes:
                used[victim.project, placement.flavor] -= placement.amount_milli


def _waits(made: Plan) -> set[WorkloadId]:
    """Those for which something was evicted, or is on its way back."""
    waiting = ReasonCode.WAITING_FOR_PREEMPTION
    return {id for id, reason in made.reasons().items() if reason.code is waiting}


def _evicting(made: Plan) -> list[Preempt | Shrink]:
    return [*made.preempts, *made.shrinks]


def _children(member: str) -> list[str]:
    return [child for child, parent in PARENTS.items() if parent == member]


def _path(member: str) -> list[str]:
    """It, and who is above it, without the fleet."""
    return [] if member == FLEET else [member, *_path(PARENTS[member])]


def _flavor(pending: PendingView) -> str:
    """The one that it accepts."""
    ((flavor,),) = (pod_set.flavors for pod_set in pending.pod_sets)
    return flavor


def _least_milli(pending: PendingView) -> int:
    (pod_set,) = pending.pod_sets
    a_pod = pod_set.gpu_count * pod_set.gpu_milli if pod_set.gpu_count else pod_set.cpu_milli
    return pod_set.min_count * a_pod
